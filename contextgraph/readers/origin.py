"""Who vouches for a run: decided by where it was read, never by what it says."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from contextgraph.model import CLONE, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.readers.repository import GitFolder, local_name, remote_name
from contextgraph.text import is_id, regex

# At the top of a working tree; in a worktree or submodule of git `.git` is a file.
_TOPS_OF_GIT = (".git", ".jj")
_TOPS = (".hg", ".svn", ".sl", ".bzr", ".pijul", "_darcs", "CVS", ".fslckout", "_FOSSIL_")
_BARE = ("HEAD", "objects", "refs")  # of git; it can hold other files, too
# Folders of packages, which their authors fill.
_PACKAGES = frozenset({"node_modules", "site-packages", "dist-packages", "vendor"})
STREAM = "stdin"
_NOT_IN_IDS = regex(r"[^\w.:/-]+", re.ASCII)
_NAME_CHARS = 80
_ID_CHARS = 120
_DIGEST_BYTES = 4


def clone_name(root: str, inner: str = "") -> str:
    """Return the repository of the checkout at *root*, with its host where git knows a remote.

    Else its name is of its place, so that no other folder has it. What another program
    checked out may hold settings of git as files.
    A repository *inner* in it, such as a submodule, is neither this one nor the one that its own
    remote names, which the outer one chose: its name is that of the outer one and its folder.
    """
    found = GitFolder.around(root)
    is_its_own = found and found.root == os.path.abspath(root)
    is_of_git = is_its_own and not _has_any(root, _TOPS)
    named = remote_name(found.remote(), with_host=True) if found and is_of_git else ""
    if not named:
        # Working trees of one repository are one source.
        name = local_name(root) if is_its_own else f"local/{Path(root).name}"
        place = blake2b(os.fsencode(_shared(root)), digest_size=_DIGEST_BYTES).hexdigest()
        named = f"{name[:_NAME_CHARS]}:{place}"
    if inner:
        named += ":" + os.path.relpath(inner, root).replace(os.sep, ".")
    return _NOT_IN_IDS.sub("-", named)[:_ID_CHARS]


def repository_of(origin: str) -> str:
    """Return the repository of the clone that is the *origin* of a run."""
    named = origin.removeprefix(CLONE)
    return remote_name(named) or named


def confined(run: RawTrajectory) -> RawTrajectory:
    """Return *run*, which was sent, about the repository of the clone that it names as its origin.

    An origin that is no clone says nothing: who sends a run is known by other means.
    """
    if not run.origin:
        return run
    named = run.origin.removeprefix(CLONE)
    if named == run.origin or not is_id(named.replace("/", ".")):
        return replace(run, origin="")
    named = remote_name(named, with_host=True) or named
    origin = f"{CLONE}{named}"
    return replace(run, origin=origin, repo=repository_of(origin))


@cache
def _is_checkout(folder: str) -> bool:
    """Return True for the top of what a program for versions checked out, or a bare repository."""
    bare = (os.path.join(folder, name) for name in _BARE)
    return _has_any(folder, (*_TOPS_OF_GIT, *_TOPS)) or all(map(os.path.lexists, bare))


def _has_any(folder: str, names: Iterable[str]) -> bool:
    return any(os.path.lexists(os.path.join(folder, name)) for name in names)


def _inner(root: str, file: str) -> str:
    """Return the top of another repository in *root* that *file* is in; empty without one.

    A working tree of the same repository counts as that repository.
    """
    path = os.path.abspath(file)
    path = path if path.startswith(root + os.sep) else os.path.realpath(file)  # through a link
    folder = os.path.dirname(path)
    while len(folder) > len(root) and not _is_checkout(folder):
        folder = os.path.dirname(folder)
    if len(folder) <= len(root):
        return ""
    return "" if _shared(root) == _shared(folder) else folder


def _shared(top: str) -> str:
    """Return the folder that all working trees of the repository at *top* share."""
    found = GitFolder.around(top)
    return found.shared if found and found.root == top else top


def _is_from_elsewhere(root: str) -> bool:
    """Return whether the checkout at *root* came from a remote, or by another program than git."""
    found = GitFolder.around(root)
    return not found or found.root != root or bool(found.remote()) or _has_any(root, _TOPS)


def _is_pointed_at(file: str, root: str, named: str) -> bool:
    """Return whether the path *named* is below *root*, and leads to *file*, which is not hidden."""
    path = os.path.abspath(file)
    if any(part.startswith(".") for part in os.path.relpath(path, root).split(os.sep)):
        return False
    return os.path.abspath(named).startswith(root + os.sep)


class Vouched(NamedTuple):
    """What the owner vouches for: histories in *folders*, and *data* that is pointed at."""

    folders: Sequence[str] = ()
    data: bool = False


NOTHING_VOUCHED = Vouched()


class Origins:
    """Finds out whose words a history is; those in the *trusted* folders are the owner's.

    So are those in a checkout that holds one of the folders *own*. *has_session* says whether a
    client of this machine has a session.
    """

    def __init__(
        self,
        trusted: Vouched,
        own: Iterable[Path],
        has_session: Callable[[str], bool] = lambda session: False,
    ) -> None:
        self._trusted = [Path(folder).resolve() for folder in trusted.folders]
        self._has_data = trusted.data
        self._own = [place for folder in own for place in (folder.absolute(), folder.resolve())]
        self._has_session = has_session

    def clone(self, file: "os.PathLike[str] | str") -> str:
        """Return the top of the checkout of another that *file* is in; empty where it is in none.

        Of a submodule that is the outermost one, whose owner vouches for all of it. Both the path
        and what its links lead to count.
        """
        if self.is_trusted(file):
            return ""
        # A folder that `..` leaves is none that the file is in.
        for path in (Path(os.path.abspath(file)), Path(file).resolve()):
            for folder in reversed(path.parents):
                if _is_checkout(str(folder)) and not self._holds_own(folder):
                    return str(folder)
        return ""

    def is_trusted(self, file: "os.PathLike[str] | str") -> bool:
        """Return whether *file* is in a folder whose histories are the owner's.

        A checkout has to be named itself, in another one, such as a submodule, too; so have
        packages that a program installed.
        """
        real = Path(file).resolve()
        above = [
            folder
            for folder in self._trusted
            if real.is_relative_to(folder) and not _PACKAGES & {*real.relative_to(folder).parts}
        ]
        if not above:
            return False
        of_file = self._repositories(real.parents)
        return not of_file or any(
            of_file[0] in self._repositories((folder, *folder.parents)) for folder in above
        )

    def repository(self, folder: Path) -> str:
        """Return the name of the repository that *folder* is in; empty where it is in none."""
        tops = self._tops((folder, *folder.parents))
        return clone_name(tops[0]) if tops else ""

    def checkouts(self, folder: Path) -> list[Path]:
        """Return the checkouts of others below *folder*, but not those in them."""
        found = list[Path]()
        for place, names, _ in os.walk(folder):
            if place != str(folder) and self._tops([Path(place)]):
                found.append(Path(place))
                names.clear()
            names[:] = [name for name in names if name[0] != "." and name not in _PACKAGES]
        return found

    def _repositories(self, folders: Iterable[Path]) -> list[str]:
        """Return the repositories that *folders* are the tops of, each by what its trees share."""
        return [*map(_shared, self._tops(folders))]

    def _tops(self, folders: Iterable[Path]) -> list[str]:
        """Return those of *folders* that are the tops of checkouts of others."""
        return [str(one) for one in folders if _is_checkout(str(one)) and not self._holds_own(one)]

    def _holds_own(self, folder: Path) -> bool:
        return any(place.is_relative_to(folder) for place in self._own)

    def of_stream(self, run: RawTrajectory) -> RawTrajectory:
        """Return *run*, read from standard input: of data nobody knows where it was read."""
        return run if run.session or self._has_data else replace(run, origin=STREAM)

    def of(self, run: RawTrajectory, file: str, path: str) -> RawTrajectory | None:
        """Return *run*, read from *file*, with its origin; None where the owner's client has it.

        A history in a checkout is of this clone, and about its repository alone. So is data of a
        benchmark, whose runs belong to no session, unless the *path* to read points at it: at more
        than the checkout. Then it is about what it names, and the caller's where they say whose
        it is, or git cloned the checkout from nowhere.
        """
        root = self.clone(file)
        if not root:
            return run
        is_data = not run.session and _is_pointed_at(file, root, path)
        if is_data and (self._has_data or not _is_from_elsewhere(root)):
            return run
        if run.session and self._has_session(run.session):
            return None
        origin = f"{CLONE}{clone_name(root, _inner(root, file))}"
        if is_data:
            return replace(run, origin=origin)
        return replace(run, origin=origin, repo=repository_of(origin), folder=root)
