"""Learns a run: one bundle, one transaction; or a file, while a server cannot be reached."""

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from msgspec import Struct

from contextgraph.config import data_folder
from contextgraph.errors import (
    AmbiguousRunError,
    DamagedRunError,
    ReadError,
    SettingsError,
    StoreError,
)
from contextgraph.inference.fitting import embedded
from contextgraph.learning.bundle import RunIds, bundle_of, renewed, run_ids, without_private_words
from contextgraph.model import (
    CLONE,
    Bundle,
    EmbeddedBundle,
    Learned,
    LearnReceipt,
    LearnStatus,
    Outcome,
    RawTrajectory,
    Trajectory,
    adds_to,
    forgotten_name,
    is_subagent,
)
from contextgraph.model.values import batched, checked, replace
from contextgraph.readers.format import SkippedError
from contextgraph.store.memory_store import Store
from contextgraph.store.protocols import EmbedderSource
from contextgraph.system.processes import replacing, written_at
from contextgraph.text import digest, is_id, mask_secrets, masked_name
from contextgraph.trace.owners import Session, Share

if TYPE_CHECKING:
    from contextgraph.config import Settings
    from contextgraph.model import RawTrajectory


_FORGOTTEN = "forgotten: `learn PATH --again` takes it back"
# A transaction costs as much as several runs; what is lost with it has to be learned again.
RUNS_AT_ONCE = 16
# Sessions that have as much in common with one are its copies or theirs, which are few: those that
# repeat the same part are found by it only where they own a part of it.
_BEGUN_ALIKE = 64


class _Matched(Struct, frozen=True):
    """Return what the memory holds of a run of *source*, and of an unfinished beginning."""

    ids: RunIds
    run: Learned | None
    beginning: Learned | None
    source: str


class Prepared(Struct, frozen=True):
    """A run that was read elsewhere, its ids as one of *source*, and what it teaches.

    That is None where it is known.
    """

    raw: RawTrajectory
    ids: RunIds
    made: Bundle | None
    source: str = ""


@checked
class MemoryWriter:
    """Learns runs into a store; *source* names who supplies them.

    *embedder* gives the model of their vectors. A run is stored without waiting for a model server.
    """

    def __init__(
        self,
        store: Store,
        embedder: EmbedderSource = lambda: None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        source: str = "",
        keeps_said: bool = True,
    ) -> None:
        self._source = checked_source(source)
        self._keeps_said = keeps_said
        self._store = store
        self._now = clock
        self._embedder = embedder
        self._prepared: dict[int, Prepared] = {}

    def prepared(self, raw: RawTrajectory, known: Container[str], source: str = "") -> Prepared:
        """Prepare *raw*, of *source*, for `take` in another process; a *known* run is not traced.

        Secrets are masked, except in a known run. It has its vector, unless that needs a server.
        """
        source, raw = raw.origin or source, without_private_words(raw)
        ids = run_ids(raw, source)
        if ids.id in known:
            return Prepared(raw, ids, None, source)
        bundle = bundle_of(raw, self._now(), ids.id)
        (made,) = embedded([bundle], False, self._embedder)
        return Prepared(made.bundle.raw, ids, made.bundle, source)

    def take(self, prepared: Prepared) -> RawTrajectory:
        """Register a *prepared* run and return it; write this same object later."""
        self._prepared[id(prepared.raw)] = prepared
        return prepared.raw

    def write(self, raw: RawTrajectory, source: str = "") -> LearnReceipt:
        """Learn *raw* from *source* in one durable transaction; an error means nothing was stored.

        A known run costs next to nothing, so an interrupted batch can be repeated.
        """
        return self.write_all([raw], source)[0]

    def write_trajectory(self, trajectory: RawTrajectory) -> str:
        """Learn *trajectory* as `write` does, and return its id."""
        return self.write(trajectory).trajectory_id

    def write_all(self, raws: Sequence[RawTrajectory], source: str = "") -> Sequence[LearnReceipt]:
        """Learn *raws* in one transaction: all are stored, or none and an error is raised.

        *source* replaces the source of the writer; raises `SettingsError` if it has characters
        other than letters, digits and ``_.:-``, and `SkippedError` for a session that was
        forgotten. If a run continues another one, or a stored one, each run is a transaction of its
        own.
        """
        self._check_forgotten(raws, source)
        matched = self._matched(raws, checked_source(source))
        if len(raws) > 1 and _go_on(matched):
            return [self.write(raw, source) for raw in raws]
        results = [
            self._continued(raw, known) or self._known_or_read(raw, known)
            for raw, known in zip(raws, matched, strict=True)
        ]
        bundles = [result for result in results if isinstance(result, Bundle)]
        begun_alike, is_repeated = self._begun_alike(bundles)
        if len(raws) > 1 and (begun_alike or is_repeated):
            for raw, known, result in zip(raws, matched, results, strict=True):
                if isinstance(result, Bundle):
                    self._prepared[id(raw)] = Prepared(raw, known.ids, result, known.source)
            return [self.write(raw, source) for raw in raws]
        if begun_alike:
            self._prepared.pop(id(raws[0]), None)
            return [self._owned(bundles[0], begun_alike, matched[0].source)]
        embedder = cache(self._embedder)  # which reads the memory
        new = embedded(bundles, False, embedder)
        names = {name for raw in raws for name in self.forgotten_names(raw, source)}
        added = [result.bundle for result in new]
        statuses = self._store.runs.add(added, unless=names) if new else ()
        if new and not statuses:  # one was forgotten meanwhile
            return self.write_all(raws, source)
        made = self._embedded_by_server(new, embedder)
        for raw in raws:
            self._prepared.pop(id(raw), None)
        stored = map(_receipt, made, statuses)
        receipts = [next(stored) if isinstance(result, Bundle) else result for result in results]
        return [
            self._joined(raw, known, receipt)
            for raw, known, receipt in zip(raws, matched, receipts, strict=True)
        ]

    def set_outcome(
        self,
        instance_id: str,
        solved: bool,
        *,
        agent: str = "",
        run: str = "",
        only_of: str | None = None,
    ) -> Sequence[str]:
        """Set whether the runs of an instance solved it; see `AgentMemory.set_outcome`."""
        runs = self._store.runs
        stored = runs.trajectories([run] if run else runs.ids(instance=instance_id)).values()
        chosen = [
            run.id
            for run in stored
            if run.instance_id == instance_id
            and agent in ("", run.agent)
            and only_of in (None, run.contributor)
        ]
        if len(chosen) > 1 and not agent:
            raise AmbiguousRunError(f"{instance_id} has several runs; name one, or an agent")
        runs.set_outcome(chosen, Outcome.SOLVED if solved else Outcome.FAILED)
        return chosen

    def supplier(self, raw: RawTrajectory, source: str = "") -> str:
        """Return who counts as having supplied *raw*, which *source* (the setting) hands in.

        The clone in which it was read, unless the source is distrusted.
        """
        source = source or self._source
        if raw.origin and source not in self._store.exposures.record([]).distrusted:
            return raw.origin
        return source

    def forgotten_names(self, raw: RawTrajectory, source: str = "") -> tuple[str, ...]:
        """Return by what *raw* is known where it was forgotten: as anybody's or its supplier's."""
        session = mask_secrets(raw.session)
        suppliers = dict.fromkeys(("", self.supplier(raw, source)))
        parts = {None, raw.started_at if is_subagent(raw.agent) else None} if session else ()
        return tuple(forgotten_name(session, by, part) for by in suppliers for part in parts)

    def _check_forgotten(self, raws: Sequence[RawTrajectory], source: str) -> None:
        names = {name: raw for raw in raws for name in self.forgotten_names(raw, source)}
        for name in self._store.exposures.forgotten(names) if names else ():
            raw = names[name]
            raise SkippedError(raw.source or raw.instance_id, "", _FORGOTTEN)

    def _matched(self, raws: Sequence[RawTrajectory], source: str) -> list[_Matched]:
        """Return what the memory holds of each run, by its id or that of its beginning.

        Of a named source also what the owner has.
        """
        suppliers = [self.supplier(raw, source) for raw in raws]
        runs = [self._ids(raw, by) for raw, by in zip(raws, suppliers, strict=True)]
        owners = [run_ids(raw).id if by else "" for raw, by in zip(raws, suppliers, strict=True)]
        asked = [run_id for ids in runs for run_id in (ids.id, *ids.beginnings)]
        with self._store.snapshot():
            learned = self._store.runs.learned([*asked, *filter(None, owners)])
            of_owner = self._of_owner(owners, learned) if any(owners) else learned
            return [
                _Matched(
                    ids, learned.get(ids.id) or of_owner.get(own), _beginning(ids, learned), by
                )
                for ids, own, by in zip(runs, owners, suppliers, strict=True)
            ]

    def _of_owner(self, ids: Iterable[str], learned: Mapping[str, Learned]) -> dict[str, Learned]:
        """Return the *learned* runs with these *ids* that the owner supplied."""
        runs = {learned[one].trajectory_id for one in ids if one in learned}
        nodes = self._store.runs.trajectories(runs)
        own = {run.id for run in nodes.values() if not run.contributor}
        return {one: known for one, known in learned.items() if known.trajectory_id in own}

    def _ids(self, raw: RawTrajectory, source: str) -> RunIds:
        prepared = self._prepared.get(id(raw))
        is_made = prepared is not None and prepared.source == source
        return prepared.ids if prepared and is_made else run_ids(raw, source)

    def _bundle(self, raw: RawTrajectory, identity: str, source: str) -> Bundle:
        prepared = self._prepared.get(id(raw))
        made = prepared.made if prepared and prepared.ids.id == identity else None
        is_joined = made is not None and raw.repo.casefold() in self._store.runs.names()
        if made is None or is_joined:
            bundle = self._taught(raw, identity)
        else:
            bundle = replace(made, raw=raw)
        given = replace(
            bundle.trajectory, contributor=source, change=raw.change, learned_at=self._now()
        )
        owners_id = run_ids(raw).id if source else ""
        return replace(bundle, trajectory=given, is_searched=self._keeps_said, owners_id=owners_id)

    def _taught(self, raw: RawTrajectory, identity: str) -> Bundle:
        """Return what *raw* teaches its repository, by the name that this has in the memory.

        The run itself keeps the name that was read, so that names can be split again.
        """
        joined = self._store.runs.names().get(raw.repo.casefold())
        if joined is None:
            return bundle_of(raw, self._now(), identity)
        made = bundle_of(replace(raw, repo=joined.now), self._now(), identity)
        return replace(made, raw=replace(made.raw, repo=masked_name(raw.repo)))

    def _reread(self, raw: RawTrajectory, before: Trajectory) -> Bundle:
        """Return what the run *before* teaches now, as *raw*."""
        identity = run_ids(raw, before.contributor).id
        return renewed(self._taught(raw, identity), before)

    def _known_or_read(self, raw: RawTrajectory, matched: _Matched) -> LearnReceipt | Bundle:
        """The receipt of a run that is known and gains nothing; what any other teaches."""
        known = matched.run
        if known is None:
            return self._bundle(raw, matched.ids.id, matched.source)
        identity = known.trajectory_id
        if matched.source == "" or adds_to(raw, known):
            before = self._store.runs.trajectories([identity]).get(identity)
            supplier = before.contributor if before else ""
            if before and matched.source == "" and supplier:  # the owner has it, too
                bundle = self._bundle(raw, identity, "")
                taken = self._replaced(
                    dict.fromkeys((identity, *self._copies(raw, before)), bundle)
                )
                return taken.get(identity) or _known_receipt(known)
            if adds_to(raw, known) and _may_change(matched.source, supplier):
                return self._bundle(raw, identity, matched.source)
        receipt = _known_receipt(known)
        if known.trajectory_id == matched.ids.id:
            return receipt
        stored = self._store.runs.raw(known.trajectory_id)
        if stored is None or not raw.session:
            return receipt
        own = Session(raw).without(Share(Session(stored).inherited))
        kept = len(own.steps) if own and stored.session == raw.session else 0
        return replace(receipt, copied=len(raw.steps) - kept)

    def _copies(self, raw: RawTrajectory, of: Trajectory) -> list[str]:
        """Return the ids of the copies of *raw* that further sources than that of *of* supplied."""
        runs, own = self._store.runs, run_ids(raw).id
        others = runs.trajectories(runs.ids(instance=of.instance_id)).values()
        candidates = (
            run.id
            for run in others
            if run.contributor and run.id != of.id and run.total_steps == of.total_steps
        )
        stored = ((run_id, runs.raw(run_id)) for run_id in candidates)
        return [run_id for run_id, log in stored if log and run_ids(log).id == own]

    def _continued(self, raw: RawTrajectory, matched: _Matched) -> LearnReceipt | None:
        """The receipt of a run that took the place of its beginning; None for any other."""
        if matched.run is not None or matched.beginning is None:
            return None
        former = matched.beginning.trajectory_id
        before = self._store.runs.trajectories([former]).get(former)
        bundle = self._bundle(raw, matched.ids.id, matched.source)
        # Logs without an instance are named after their files, often by the same name.
        if before is None or _of_other_tasks(before, bundle.trajectory):
            return None
        if not _may_change(matched.source, before.contributor):
            return None
        # A log that was cut at its start has lost the request.
        if before.task and not raw.task and (stored := self._store.runs.raw(former)):
            bundle = self._bundle(replace(raw, task=stored.task), matched.ids.id, matched.source)
        receipt = self._replaced({former: bundle}).get(former)
        if receipt is None:  # another process has replaced it meanwhile
            return self.write(raw, matched.source)
        return replace(receipt, continues=former)

    def _joined(self, raw: RawTrajectory, matched: _Matched, receipt: LearnReceipt) -> LearnReceipt:
        """*receipt*, or that of the one run that *raw* and a stored log are both a part of.

        The other may be shorter, if another process has just learned it, or longer.
        """
        is_open = raw.outcome is Outcome.UNKNOWN and raw.exit_status is None
        if receipt.status is not LearnStatus.CREATED or not is_open:
            return receipt
        with self._store.snapshot():
            beginning = _beginning(matched.ids, self._store.runs.learned(matched.ids.beginnings))
            longer = None if beginning else self._longer(receipt.trajectory_id)
        if beginning:
            return self._continued(raw, replace(matched, run=None, beginning=beginning)) or receipt
        if longer is None:
            return receipt
        return self._replaced({receipt.trajectory_id: longer}).get(receipt.trajectory_id, receipt)

    def _begun_alike(self, bundles: Sequence[Bundle]) -> tuple[Sequence[str], bool]:
        """Return the ids of stored runs that begin as one of *bundles*; True where two of them do.

        A few of very many may be left out.
        """
        digests = [digest for made in bundles for digest in Session(made.raw).digests]
        own = {made.trajectory.id for made in bundles}
        found = self._store.runs.opened(digests, _BEGUN_ALIKE + len(own)) if digests else ()
        return [run for run in found if run not in own], len({*digests}) < len(digests)

    def _owned(self, bundle: Bundle, begun_alike: Sequence[str], source: str) -> LearnReceipt:
        """Store what a session owns of *bundle*, and take it from runs that copied it.

        *begun_alike* are the ids of stored runs that may have the same beginning. Where all of it
        is copied, nothing is stored, and the receipt is that of its owner.
        """
        own = Session(bundle.raw, source)
        place, owner, left = Share(own.inherited), "", dict[str, RawTrajectory | None]()
        status = LearnStatus.CREATED
        for run, other in self._sessions(begun_alike, source):
            shared = own.shared(other)
            if other.goes_on_as(own, shared) and _may_change(source, other.source):
                status, left[run] = LearnStatus.UPDATED, None
                place = max(place, Share(other.inherited))
            elif own.goes_on_as(other, shared):
                place, owner = Share(own.length), run
            elif (owned := own.owned_by(other, shared)) > place:
                place, owner = owned, run
            elif (owned := other.owned_by(own, shared)).messages > other.inherited:
                left[run] = other.without(owned)
        raw = own.without(place)
        copied = len(bundle.raw.steps) - (len(raw.steps) if raw else 0)
        if raw is None:
            return replace(_known_receipt(self._store.runs.learned([owner])[owner]), copied=copied)
        if place.messages > own.inherited:
            (matched,) = self._matched([raw], source)
            result = self._continued(raw, matched) or self._known_or_read(raw, matched)
            if isinstance(result, LearnReceipt):
                return replace(result, copied=copied)
            bundle = result
        before = self._store.runs.trajectories(left)
        corrected = {
            run: self._reread(rest, before[run]) if rest else bundle
            for run, rest in left.items()
            if run in before
        }
        embedder = cache(self._embedder)
        new, *again = embedded([bundle, *corrected.values()], False, embedder)
        given = dict(zip(corrected, (made.bundle for made in again), strict=True))
        if given:
            replaced = self._store.runs.replace(given, added=[new.bundle])
        else:
            replaced, (status,) = (), self._store.runs.add([new.bundle])
        (made, *_) = self._embedded_by_server([new, *again], embedder)
        return replace(_receipt(made, status), copied=copied, corrected=tuple(replaced))

    def _sessions(self, runs: Sequence[str], source: str) -> Iterator[tuple[str, Session]]:
        """The stored *runs* with their ids that *source* can be compared with.

        Damaged runs are left out, and runs of other named sources: none takes from another.
        """
        for run, trajectory in self._store.runs.trajectories(runs).items():
            if source and trajectory.contributor not in ("", source):
                continue
            with suppress(DamagedRunError):
                if raw := self._store.runs.raw(run):
                    yield run, Session(raw, trajectory.contributor)

    def _longer(self, identity: str) -> Bundle | None:
        """The bundle of a stored run that begins with the stored run *identity*."""
        runs = self._store.runs
        own = runs.trajectories([identity])[identity]
        others = runs.trajectories(runs.ids(instance=own.instance_id)).values()
        for run in others:
            if (run.agent, run.contributor) != (own.agent, own.contributor):
                continue
            if run.total_steps <= own.total_steps:
                continue
            stored = runs.raw(run.id) if not _of_other_tasks(run, own) else None
            if stored and identity in run_ids(stored, run.contributor).beginnings:
                begun = runs.raw(identity) if own.task and not stored.task else None
                stored = replace(stored, task=begun.task) if begun else stored
                return renewed(self._taught(stored, run.id), run)
        return None

    def _replaced(self, bundles: Mapping[str, Bundle]) -> dict[str, LearnReceipt]:
        """Replace runs by *bundles*, by their ids; the receipts of those still known."""
        if not bundles:
            return {}
        embedder = cache(self._embedder)
        kept = [replace(bundle, is_searched=self._keeps_said) for bundle in bundles.values()]
        made = dict(zip(bundles, embedded(kept, False, embedder), strict=True))
        known = self._store.runs.replace({former: result.bundle for former, result in made.items()})
        stored = self._embedded_by_server([made[former] for former in known], embedder)
        return {
            former: _receipt(result, LearnStatus.UPDATED)
            for former, result in zip(known, stored, strict=True)
        }

    def _embedded_by_server(
        self, stored: Sequence[EmbeddedBundle], embedder: EmbedderSource
    ) -> Sequence[EmbeddedBundle]:
        """*stored* bundles, with the vectors that a server gives them, which are stored, too."""
        if any(result.bundle.embedded or result.failure for result in stored):
            return stored
        made = embedded([result.bundle for result in stored], True, embedder)
        given = {result.bundle.trajectory.id: result.bundle.embedded for result in made}
        runs = {run: embedded_run for run, embedded_run in given.items() if embedded_run}
        try:
            for space in {run.space for run in runs.values()}:
                self._store.vectors.add(
                    space, {run: embedded_run.vector for run, embedded_run in runs.items()}
                )
        except StoreError as error:
            return [replace(bundle, failure=str(error)) for bundle in stored]
        return made

    def rewrite_all(
        self,
        on_damaged: Callable[[str, DamagedRunError], None] | None = None,
    ) -> Iterator[LearnReceipt]:
        """Read all stored runs again, several per transaction; yield a receipt for each.

        *on_damaged* is called with the id of each run that cannot be read; without it the error is
        raised.
        """
        yield from self.rewrite(self._store.runs.ids(), on_damaged)

    def rewrite(
        self,
        ids: Iterable[str],
        on_damaged: Callable[[str, DamagedRunError], None] | None = None,
    ) -> Iterator[LearnReceipt]:
        """Read the stored runs *ids* again, as `rewrite_all` does; yield a receipt for each."""
        for some in batched(ids, RUNS_AT_ONCE):
            yield from self._replaced(self._read_again(some, on_damaged)).values()

    def correct(self, raws: Mapping[str, RawTrajectory]) -> None:
        """Let stored runs, by their ids, be *raws*: what is known of their outcomes stays."""
        before = self._store.runs.trajectories(raws)
        self._replaced(
            {run: self._reread(raw, before[run]) for run, raw in raws.items() if run in before}
        )

    def _read_again(
        self,
        ids: Sequence[str],
        on_damaged: Callable[[str, DamagedRunError], None] | None,
    ) -> dict[str, Bundle]:
        """Return what these runs teach, by their ids."""
        bundles = {}
        for identity, before in self._store.runs.trajectories(ids).items():
            try:
                raw = self._store.runs.raw(identity)
            except DamagedRunError as error:
                if on_damaged is None:
                    raise
                on_damaged(identity, error)
                continue
            if not raw:
                continue
            try:
                bundles[identity] = self._reread(raw, before)
            except ReadError as error:
                damaged = DamagedRunError(f"run {identity}: {error.reason}")
                if on_damaged is None:
                    raise damaged from error
                on_damaged(identity, damaged)
        return bundles


def checked_source(source: str) -> str:
    """Return *source*; raises `SettingsError` if it is not a name, or may be a secret."""
    # Of a clone it has the path of its repository.
    name = source.replace("/", ".") if source.startswith(CLONE) else source
    if source and (not is_id(name) or masked_name(source) != source):
        raise SettingsError(
            f"source {source!r}: only letters, digits and _.:- are allowed, at most 128, and no "
            "secret"
        )
    return source


def _may_change(source: str, supplier: str) -> bool:
    """Return True where *source* may change a run of *supplier*: its own, or anybody's as owner."""
    return source in ("", supplier)


def _go_on(matched: Sequence[_Matched]) -> bool:
    """Return True if a run continues another one of *matched*, or a stored one."""
    ids = {known.ids.id for known in matched}
    return any(
        (known.run is None and known.beginning is not None)
        or not ids.isdisjoint(known.ids.beginnings)
        for known in matched
    )


def _beginning(ids: RunIds, known: Mapping[str, Learned]) -> Learned | None:
    """The longest unfinished run that the run of *ids* goes on with.

    What goes on with a beginning itself is known by the id of that, too, and stays.
    """
    begun = (known[beginning] for beginning in ids.beginnings if beginning in known)
    own = (run for run in begun if run.trajectory_id in ids.beginnings)
    return next((run for run in own if run.is_open), None)


def _of_other_tasks(run: Trajectory, other: Trajectory) -> bool:
    return bool(run.task and other.task) and run.task.split() != other.task.split()


def _known_receipt(known: Learned) -> LearnReceipt:
    return LearnReceipt(
        known.trajectory_id,
        LearnStatus.UNCHANGED,
        known.fragments,
        known.error_patterns,
        known.to_embed,
        known.outcome,
        outcome_source=known.outcome_source,
    )


def _receipt(made: EmbeddedBundle, status: LearnStatus) -> LearnReceipt:
    bundle = made.bundle
    return LearnReceipt(
        trajectory_id=bundle.trajectory.id,
        status=status,
        fragments=len(bundle.fragments),
        error_patterns=len(bundle.errors),
        to_embed=0 if bundle.embedded else 1,
        outcome=bundle.trajectory.outcome,
        outcome_source=bundle.trajectory.outcome_source,
        not_embedded=made.failure,
        usage=made.usage,
    )


class WaitingRun(NamedTuple):
    """A run that waits in a file, and the name of who supplied it: see `AgentMemory.learn`."""

    path: Path
    raw: "RawTrajectory"
    source: str


class Spool:
    """The runs that wait for the memory of *settings*: one file each, readable by the owner only.

    They are stored as they were read, with secrets masked; those of a source in its own folder.
    """

    def __init__(self, settings: "Settings") -> None:
        memory = f"{settings.address}\n{settings.tenant}"
        name = digest(memory)
        self._source = settings.source
        self.folder = Path(data_folder(), "spool", name)

    def put(self, raw: "RawTrajectory", source: str = "") -> WaitingRun:
        """Store *raw* durably; the same run is stored once.

        *source* is by default that of the settings.
        """
        source = source or self._source
        import io

        from contextgraph.learning import masked
        from contextgraph.readers import write_jsonl

        record = io.BytesIO()
        write_jsonl([masked(raw, with_playbooks=True)[0]], record)
        name = hashlib.blake2b(record.getvalue(), digest_size=16).hexdigest()
        try:
            folder = self.folder / f"source-{quote(source, safe='')}" if source else self.folder
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / f"{name}.jsonl"
            with replacing(path, sync=True) as part:
                part.write_bytes(record.getvalue())
            return WaitingRun(path, raw, source)
        except OSError as error:
            reason = error.strerror or error
            raise SettingsError(f"{self.folder} cannot be written: {reason}") from error

    def __iter__(self) -> Iterator[WaitingRun]:
        """Return the runs that wait now, oldest first; each is read on demand."""
        return self._read(sorted(self._files(), key=written_at))

    def _read(self, paths: list[Path]) -> Iterator[WaitingRun]:
        from contextgraph.readers import read_file

        for path in paths:
            try:
                with path.open("rb") as file:
                    runs = [*read_file(file, str(path))]
            except FileNotFoundError:
                continue  # another process has learned it
            for raw in runs:
                if isinstance(raw, ReadError):
                    raise raw
                named = path.parent != self.folder
                source = unquote(path.parent.name.removeprefix("source-")) if named else ""
                yield WaitingRun(path, raw, source)

    def __len__(self) -> int:
        return len(self._files())

    def _files(self) -> list[Path]:
        return [*self.folder.glob("*.jsonl"), *self.folder.glob("source-*/*.jsonl")]
