"""The memory on a Neo4j server, shared by teams: 5.26 LTS and later."""

from collections.abc import Iterable, Mapping, Sequence

from contextgraph.model import Bundle, Fragment, Learned, LearnStatus, RawTrajectory, Trajectory
from contextgraph.store.neo4j_store import bundles, trajectories
from contextgraph.store.neo4j_store.bundles import Packed
from contextgraph.store.neo4j_store.connection import Connection
from contextgraph.store.raw import packed


class Neo4jStore:
    """A `GraphStore` on the server at *address*; methods as in the ports.

    *address* is ``neo4j://`` or ``bolt://``, its path the name of the database; *auth* is (user,
    password). Nothing is opened until first used. Threads and processes may share it. With
    *read_only* a memory that does not exist is not created: reading raises `MemoryNotFoundError`.
    """

    def __init__(
        self,
        address: str,
        auth: tuple[str, str] | None = None,
        tenant: str = "default",
        read_only: bool = False,
    ) -> None:
        self.tenant = tenant
        self._connection = Connection(address, auth, tenant, read_only=read_only)

    def add_bundle(self, bundle: Bundle) -> LearnStatus:
        given = [Packed(bundle, packed(bundle.raw))]
        return self._connection.write(bundles.add_bundles, given)[0]

    def replace_bundle(self, bundle: Bundle) -> None:
        given = Packed(bundle, packed(bundle.raw))
        self._connection.write(bundles.replace_bundle, given)

    def learned(self, trajectory_id: str) -> Learned | None:
        return self._connection.read(trajectories.learned, trajectory_id)

    def trajectory(self, trajectory_id: str) -> Trajectory | None:
        return self._connection.read(trajectories.trajectory, trajectory_id)

    def trajectory_ids(self) -> Sequence[str]:
        return self._connection.read(trajectories.trajectory_ids)

    def raw_trajectory(self, trajectory_id: str) -> RawTrajectory | None:
        return self._connection.read(trajectories.raw_trajectory, trajectory_id)

    def fragments_of(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[Fragment]]:
        return self._connection.read(trajectories.fragments_of, tuple(trajectory_ids))

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        return self._connection.write(trajectories.forget, tuple(trajectory_ids))

    def close(self) -> None:
        self._connection.close()
