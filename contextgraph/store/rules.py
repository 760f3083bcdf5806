"""Rules that all stores share."""

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple, TypeVar

from msgspec import Struct

from contextgraph import model
from contextgraph.errors import DamagedRunError, ReadError, SpaceMismatchError, StoreError
from contextgraph.model import adds_to, precedes
from contextgraph.model.codec import from_bytes, from_json, json_bytes, json_of
from contextgraph.model.values import replace
from contextgraph.store.protocols import OnDamaged
from contextgraph.system.processes import Process, has_ended, load
from contextgraph.text import TASK_CHARS, words
from contextgraph.trace import command_lines, passages_of, remedy_key

# How many of the newest runs an error tally names.
TALLY_RUNS = 10
# So many of the newest runs that met an error are among its relations.
EXPLAINED_RUNS = 100
# Of each advice so many of the newest reported contexts count.
REPORTS_USED = 100

_ITEMS_AT_ONCE = 256

Run = TypeVar("Run", model.Trajectory, model.RawTrajectory)
Item = TypeVar("Item")
Stored = TypeVar("Stored")
Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)
Cached = TypeVar("Cached")

_HELPED = {None: "not known", True: "yes", False: "no"}

# Measured on a run of 75 kB: 0.4 of the time that zlib 1 takes, and 13 % smaller.
_COMPRESSION = 1
_this_thread = threading.local()


def packed(raw: model.RawTrajectory) -> bytes:
    """Return *raw* as compressed bytes.

    Raises `StoreError` for a text that is not valid Unicode, or a time without zone.
    """
    name = f"run {raw.instance_id or raw.source}"
    for step in raw.steps:
        for time in (step.timestamp, step.messaged_at):
            if time is not None and time.tzinfo is None:  # it could not be read again
                raise StoreError(f"{name} cannot be stored: {time.isoformat()} has no time zone")
    data = json_bytes(raw, name)
    if (compress := getattr(_this_thread, "compress", None)) is None:
        load("zstandard")
        import zstandard

        # Making one takes as long as compressing a run; it must not be used by two threads at once.
        compress = zstandard.ZstdCompressor(_COMPRESSION, write_checksum=True).compress
        _this_thread.compress = compress
    compressed: bytes = compress(data)
    return compressed


def unpacked(data: bytes, identity: str) -> model.RawTrajectory:
    """Return the run *identity*, read from the *data* of `packed`; raises `DamagedRunError`."""
    load("zstandard")
    import zstandard

    try:
        return from_bytes(model.RawTrajectory, zstandard.decompress(data))
    except (zstandard.ZstdError, ValueError, ReadError) as error:
        raise DamagedRunError(f"run {identity} is damaged: {error}") from error


class PackedRun(Struct, frozen=True):
    """A bundle, its facts and its raw run in the form in which they are stored, its passages.

    *machine* is the part of its facts that is read of many runs at once.
    """

    bundle: model.Bundle
    facts: str
    machine: str
    raw: bytes
    passages: Sequence[model.Passage] = ()


def pack(bundles: Iterable[model.Bundle]) -> list[PackedRun]:
    """Return *bundles* to be written; raises `StoreError` for a text that is not valid Unicode."""
    return [*map(_packed, bundles)]


def _packed(bundle: model.Bundle) -> PackedRun:
    run, facts, passages = bundle.trajectory, bundle.facts, _said_in(bundle)
    has_turns = any(one.kind is model.PassageKind.TURN and not one.by_agent for one in passages)
    if run.has_turns is not has_turns:
        bundle = replace(bundle, trajectory=replace(run, has_turns=has_turns))
    machine = json_of(model.RunMachine(facts.environment, facts.losses))
    return PackedRun(bundle, json_of(facts), machine, packed(bundle.raw), passages)


def _said_in(bundle: model.Bundle) -> Sequence[model.Passage]:
    run = bundle.trajectory
    if not bundle.is_searched:
        return ()
    return passages_of(bundle.raw, run.id, run.repo, run.seen_at)


def independent(given: Mapping[str, PackedRun]) -> Iterator[dict[str, PackedRun]]:
    """Yield *given* in their order, in groups in which no two name the same run."""
    group: dict[str, PackedRun] = {}
    named: set[str] = set()
    for former, run in given.items():
        ids = {former, run.bundle.trajectory.id}
        if not named.isdisjoint(ids):
            yield group
            group, named = {}, set()
        group[former] = run
        named |= ids
    yield group


def learning(
    runs: Iterable[model.Trajectory], known: Mapping[str, model.Trajectory]
) -> tuple[list[model.LearnStatus], dict[str, model.Trajectory]]:
    """Return the status of each of *runs* beside those *known*, and changed runs by id.

    Of changed runs the outcome, or what became of the change, is to be stored.
    """
    stored, changed = dict(known), dict[str, model.Trajectory]()
    statuses = []
    for run in runs:
        before = stored.get(run.id)
        if before is None:
            stored[run.id], status = run, model.LearnStatus.CREATED
        elif adds_to(run, before):
            stored[run.id] = changed[run.id] = _merged(run, before)
            status = model.LearnStatus.UPDATED
        else:
            status = model.LearnStatus.UNCHANGED
        statuses.append(status)
    return statuses, changed


def _merged(given: model.Trajectory, known: model.Trajectory) -> model.Trajectory:
    """*given*, with what is *known* of its outcome and its change where it does not say more."""
    changed = given.change is not model.ChangeStatus.UNKNOWN
    run = given if changed else replace(given, change=known.change)
    return run if precedes(given, known) else with_outcome_of(run, known)


def with_outcome_of(run: Run, judged: model.Trajectory) -> Run:
    """Return *run* with the outcome and the ending of *judged*."""
    return replace(
        run,
        outcome=judged.outcome,
        outcome_source=judged.outcome_source,
        exit_status=judged.exit_status,
    )


def as_judged(run: Run, judged: model.Trajectory) -> Run:
    """Return *run* with the outcome, the ending and the change of *judged*."""
    return replace(with_outcome_of(run, judged), change=judged.change)


def with_history(bundle: model.Bundle, known: Sequence[model.Trajectory]) -> model.Bundle:
    """*bundle* with what does not depend on how a log is read: what was *known* of its run.

    That is an outcome that the one of *bundle* does not precede, a change where that of *bundle* is
    unknown, and when it was learned first. What another source says of it does not count.
    """
    own = [run for run in known if run.contributor == bundle.trajectory.contributor]
    judged = [run for run in own if run.outcome is not model.Outcome.UNKNOWN]
    learned_at = min(run.learned_at for run in known)
    changes = (run.change for run in (bundle.trajectory, *own))
    change = next(
        (status for status in changes if status is not model.ChangeStatus.UNKNOWN),
        model.ChangeStatus.UNKNOWN,
    )
    trajectory = replace(bundle.trajectory, learned_at=learned_at, change=change)
    for run in judged[:1]:
        if not precedes(trajectory, run):
            trajectory = with_outcome_of(trajectory, run)
    return replace(bundle, trajectory=trajectory)


def check_bundle(bundle: model.Bundle) -> None:
    """Raise `StoreError` where something in *bundle* refers to what is not in it."""
    run = bundle.trajectory.id
    fragments = {fragment.id for fragment in bundle.fragments}
    if len(fragments) < len(bundle.fragments):
        raise StoreError(f"run {run} has two fragments of one id")
    errors = {error.id for error in bundle.errors}
    edges = [(edge.fragment_id, edge.error_id) for edge in bundle.caused]
    edges += [(edge.fragment_id, edge.error_id) for edge in bundle.recovered]
    missing = {edge[0] for edge in edges} - fragments | {edge[1] for edge in edges} - errors
    if missing:
        raise StoreError(f"run {run} refers to {min(missing)}, which it does not hold")


class StoredLease(NamedTuple):
    """Holder of the lease, its end, and its process; None where that is not known."""

    holder: str | None
    expires_at: datetime
    process: Process | None = None

    def is_free_for(self, holder: str, now: datetime) -> bool:
        """Return whether *holder* may take it."""
        if self.holder in (None, holder) or self.expires_at <= now:
            return True
        return self.process is not None and has_ended(self.process)


def file_names(fragment: model.Fragment) -> set[str]:
    """Return the names, without folders, of files that *fragment* touches."""
    paths = (*fragment.files, fragment.open_file or "")
    return {path.rpartition("/")[2] for path in paths} - {""}


class MetError(NamedTuple):
    """An error that a run met, at how many *steps*, and whether an answer shows it *cleared*."""

    error: model.ErrorPattern
    steps: int
    cleared: bool


def met_errors(bundle: model.Bundle) -> list[MetError]:
    """Return the errors of *bundle*, in their order."""
    counted: Counter[str] = Counter()
    for caused in bundle.caused:
        counted[caused.error_id] += len(caused.steps)
    steps = {error.id: counted[error.id] for error in bundle.errors} | {**(bundle.met or {})}
    cleared = {recovered.error_id for recovered in bundle.recovered if recovered.verified}
    return [MetError(error, steps[error.id], error.id in cleared) for error in bundle.errors]


def note_text(value: model.Note) -> str:
    """Return the text by which a note is found and embedded."""
    return "\n".join(filter(None, (value.title, value.summary, value.content, *value.tags)))


@lru_cache(8_192)
def note_of(text: str) -> model.Note:
    """Return the note encoded as *text*; cached, as those of a repository are read often."""
    return from_json(model.Note, text)


def scored_words(message: str, remedy: str, actions: Sequence[model.RemedyAction]) -> str:
    """Return words to compare a recovery with an error by; see `RecoveryCandidate`.

    *remedy* is the description of its *actions*.
    """
    lines = (message, remedy, *command_lines(actions))
    return " ".join(words("\n".join(lines)[:TASK_CHARS]))


def trajectory_text(trajectory: model.Trajectory) -> str:
    """Return the text in which the words of a run are searched."""
    return f"{trajectory.task}\n{trajectory.summary}"


def with_report(
    shown: model.Exposure, helped: bool, item: int | None = None, source: str = ""
) -> model.Exposure | None:
    """Return *shown* with the report of *source* about it, or about its *item* (from 1).

    Return None if there is such a report already, or no such item.
    """
    reported = replace(shown, source=shown.source or source)
    if item is None:
        if shown.helped is not None:
            return None
        items = shown.items
        if not shown.is_withheld:
            items = tuple(
                replace(shown_item, helped=helped) if shown_item.helped is None else shown_item
                for shown_item in items
            )
        return replace(reported, helped=helped, items=items)
    if shown.is_withheld or not 1 <= item <= len(shown.items):
        return None
    before, shown_item, after = shown.items[: item - 1], shown.items[item - 1], shown.items[item:]
    if shown_item.helped is not None:
        return None
    return replace(reported, items=(*before, replace(shown_item, helped=helped), *after))


def reports_of(
    bundles: Iterable[model.Bundle], shown: Iterable[model.Exposure]
) -> list[model.Exposure]:
    """Return the reports of *bundles* on what was *shown*: whether it cleared their error.

    A context is not reported when its run never met the error; of several runs the first decides.
    A context that is about no error, such as a start, is reported by those of its items that later
    cleared an error as they say. Histories of clones report nothing: anybody wrote them.
    """
    waiting = {context.context_id: context for context in shown if context.helped is None}
    reported = []
    for bundle in bundles:
        if bundle.trajectory.contributor.startswith(model.CLONE):
            continue
        met = {error.id for error in bundle.errors}
        for seen in bundle.exposures:
            exposure = waiting.get(seen.context_id)
            if exposure and exposure.error_id in met:
                del waiting[seen.context_id]
                reported.append(_observed(exposure, seen, bundle))
            elif exposure and exposure.error_id is None:
                followed = _followed(exposure, seen, bundle)
                waiting[seen.context_id] = followed
                reported += [followed] if followed != exposure else []
    return reported


def _observed(
    exposure: model.Exposure, seen: model.SeenContext, bundle: model.Bundle
) -> model.Exposure:
    """*exposure* as the run of *bundle* went on: an item that it did not try gets no credit."""
    clearances = [
        recovery
        for recovery in bundle.recovered
        if recovery.verified
        and recovery.error_id == exposure.error_id
        and recovery.cleared_step > seen.step
    ]
    cleared = bool(clearances)
    worked = frozenset(
        remedy_key(action.pattern for clearance in clearances for action in clearance.actions)
    )
    tried = frozenset(remedy_key(seen.tried))
    items = exposure.items
    if not exposure.is_withheld:
        items = tuple(
            replace(item, helped=_effect(item, cleared, worked, tried))
            if item.helped is None
            else item
            for item in items
        )
    source = exposure.source or bundle.trajectory.contributor
    return replace(exposure, helped=cleared, items=items, source=source)


def _followed(
    exposure: model.Exposure, seen: model.SeenContext, bundle: model.Bundle
) -> model.Exposure:
    """*exposure*, about no error, with the items that say how the run then cleared one."""
    cleared = frozenset(remedy_key(seen.cleared))
    items = tuple(
        replace(item, helped=True)
        if item.helped is None and not cleared.isdisjoint(remedy_key(item.patterns))
        else item
        for item in exposure.items
    )
    if items == exposure.items:
        return exposure
    source = exposure.source or bundle.trajectory.contributor
    return replace(exposure, items=items, source=source)


def _effect(
    item: model.ShownItem,
    cleared: bool,
    worked: frozenset[model.RemedyAction | model.RemedyPattern],
    tried: frozenset[model.RemedyAction | model.RemedyPattern],
) -> bool | None:
    """Return True if *item* was done and the error *cleared*; None if it was not tried."""
    said = frozenset(remedy_key(item.patterns))
    if not said:
        return cleared
    if said <= worked:
        return True
    return False if said <= tried else None


class RemovedMethodology(NamedTuple):
    """History of a methodology that is being removed."""

    id: str
    error_id: str
    superseded_by: str | None


def made_stale(removed: Iterable[RemovedMethodology]) -> list[str]:
    """Return ids of errors to consolidate again.

    These are the errors of methodologies that go together with the one that superseded them.
    """
    gone = list(removed)
    ids = {methodology.id for methodology in gone}
    return sorted(
        {methodology.error_id for methodology in gone if methodology.superseded_by in ids}
    )


def paged(
    page: Callable[[str, int], Sequence[tuple[str, Stored]]],
    read: Callable[[Stored], Item],
    on_damaged: OnDamaged | None = None,
) -> Iterator[Item]:
    """Yield all items in the order of their ids.

    *page* returns the next ones after an id with what is stored of them, *read* makes items of
    that. Those that cannot be read are given to *on_damaged*; without it the first is raised.
    """
    after = ""
    while stored := page(after, _ITEMS_AT_ONCE):
        for id_, one in stored:
            try:
                item = read(one)
            except StoreError as error:
                if on_damaged is None:
                    raise
                on_damaged(id_, error)
            else:
                yield item
        after = stored[-1][0]


def check_space(active: model.Space | None, vector: model.Vector) -> None:
    """Raise `SpaceMismatchError` where *vector* is not of the *active* space."""
    if active is None or active.name != vector.space:
        name = active.name if active else "none yet"
        raise SpaceMismatchError(
            f"a query has a vector of space {vector.space}, the memory's space is {name}"
        )


def explained_context(
    exposure: model.Exposure, known: Mapping[str, tuple[str, str]]
) -> model.Explanation:
    """Return a context that was shown; *known* has label and name of items that still exist."""
    facts: dict[str, model.Json] = {
        "shown_at": f"{exposure.shown_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "helped": _HELPED[exposure.helped],
    }
    if exposure.source:
        facts["reported_by"] = exposure.source
    if exposure.is_withheld:
        facts["withheld"] = "yes"
    items = (
        model.Relation(
            "SHOWN",
            True,
            item.id,
            *known.get(item.id, ("gone", item.id)),
            {"advice": item.advice, "helped": _HELPED[item.helped]},
        )
        for item in exposure.items
    )
    name = f"context {exposure.context_id}"
    return model.Explanation(exposure.context_id, "Context", name, facts, in_order(items))


def tally_of(counted: Iterable[tuple[str, *tuple[int, ...]]]) -> model.ShownTally:
    """Return sums by error: contexts, advice, known, cleared, followed, right, wrong items, tokens.

    Contexts without an error are under the empty id.
    """
    of_errors = {error: counts[1:] for error, *counts in counted}
    total = [*map(sum, zip(*of_errors.values(), strict=True))] or [0] * 7
    of_none = of_errors.pop("", [0] * 7)
    return model.ShownTally(
        shown=total[0],
        at_errors=total[0] - of_none[0],
        known=total[1] - of_none[1],
        cleared=total[2] - of_none[2],
        followed=total[3],
        helped={error: counts[4] for error, counts in sorted(of_errors.items()) if counts[4]},
        wrong=total[5] - of_none[5],
        tokens=total[6],
        known_at={error: counts[1] for error, counts in sorted(of_errors.items()) if counts[1]},
    )


def in_order(relations: Iterable[model.Relation]) -> tuple[model.Relation, ...]:
    """Return *relations* ordered by type and id, then by their properties."""
    return tuple(
        sorted(
            relations,
            key=lambda edge: (
                edge.type,
                edge.outgoing,
                edge.id,
                repr(sorted(edge.properties.items())),
            ),
        )
    )


@lru_cache(1)
def gate_of(text: str) -> model.MemoryGate:
    """Return the gate encoded as *text*; cached, as each query at an error reads it."""
    return from_json(model.MemoryGate, text)
