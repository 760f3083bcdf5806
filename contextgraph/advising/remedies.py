"""Ranks remedies of an error by the agreement of independent instances."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from operator import attrgetter
from typing import TypeAlias

from contextgraph.advising.credit import Credits, credits_for
from contextgraph.advising.fuse import newest_first
from contextgraph.advising.gate import (
    CONSERVATIVE,
    Gate,
    RemedyFeatures,
    may_be_shown,
    probability,
)
from contextgraph.advising.query import Query
from contextgraph.advising.recoveries import (
    Form,
    FoundRecovery,
    recoveries_for,
)
from contextgraph.advising.score import SAME_TEMPLATE
from contextgraph.model import (
    Agreement,
    ChannelRank,
    ErrorSolution,
    FittedGate,
    Methodology,
    MethodologyStatus,
    RecoveryCandidate,
    ScopeLevel,
    SignatureLevel,
    Suggestion,
    Why,
)
from contextgraph.ports import Store
from contextgraph.ranking import ranks_in
from contextgraph.trace import AdviceKey, advice_id

NAMED_RUNS = 10
# So many more instances, without evidence, keep one or two from looking like agreement. Of recorded
# errors with the very same message in the same repository, what one instance did cleared 22 of 40;
# of others 23 of 178.
_DOUBT, _DOUBT_IF_EXACT = 2, 1

_identity = attrgetter("fragment_id", "error_id", "error_step")

Shares: TypeAlias = dict[str, float]
# Where instances are compared, the nearest first.
GROUPS = (
    (ScopeLevel.REPO, SignatureLevel.TEMPLATE),
    (ScopeLevel.GENERAL, SignatureLevel.TEMPLATE),
    (ScopeLevel.GENERAL, SignatureLevel.TYPE),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One remedy of a ranking: recoveries with the same *key*, the first to be shown for it."""

    key: AdviceKey
    recoveries: tuple[FoundRecovery, ...]
    features: RemedyFeatures
    agreement: Agreement | None
    probability: float

    @property
    def best(self) -> FoundRecovery:
        """The recovery that is shown."""
        return self.recoveries[0]

    @property
    def instances(self) -> int:
        """How many independent instances did it."""
        return len({recovery.candidate.instance_id for recovery in self.recoveries})

    @property
    def sources(self) -> tuple[str, ...]:
        """Who supplied the runs that did it."""
        return tuple(sorted({recovery.candidate.contributor for recovery in self.recoveries}))


@dataclass(frozen=True, slots=True)
class Advice:
    """An entry with the methodology that words it, if any; *score* is probability times trust.

    *id* is that by which its effect is recorded. Not *is_active*: one instance, or one source alone
    supports it.
    """

    id: str
    entry: Entry
    methodology: Methodology | None
    score: float
    ranks: tuple[ChannelRank, ...]
    is_active: bool


def entries_of(query: Query, candidates: Iterable[RecoveryCandidate]) -> tuple[Entry, ...]:
    """The remedies of *candidates* for the error of *query*, the most probable first."""
    signature = query.signature
    if signature is None:
        return ()
    recoveries = [*recoveries_for(query, signature, candidates)]
    groups = _grouped(recoveries)
    _simplify(groups)
    cleared = _shares(recoveries)
    most = _relevance(recoveries)
    totals = [fsum(shares.values()) for shares in cleared]
    entries = [_entry(key, same, cleared, totals, most, query.gate) for key, same in groups.items()]
    return tuple(sorted(entries, key=_order))


def _grouped(recoveries: Iterable[FoundRecovery]) -> dict[AdviceKey, list[FoundRecovery]]:
    """Those of *recoveries* that may be advised, by key."""
    by_form: dict[Form, list[FoundRecovery]] = {}
    for recovery in recoveries:
        # What is never advised is still one way in which the error was cleared.
        if not recovery.is_withheld:
            by_form.setdefault(recovery.form, []).append(recovery)
    groups: dict[AdviceKey, list[FoundRecovery]] = {}
    for form, same in by_form.items():
        groups.setdefault(form.key, []).extend(same)
    return groups


def _simplify(groups: dict[AdviceKey, list[FoundRecovery]]) -> None:
    """Let remedies of several actions count for that one of them which most did alone."""
    single = {
        key: len({recovery.candidate.instance_id for recovery in recoveries})
        for key, recoveries in groups.items()
    }
    for key in [key for key in groups if len(key) > 1]:
        parts = [(part,) for part in key if (part,) in single]
        if parts:
            most = max(parts, key=single.__getitem__)
            for recovery in groups.pop(key):
                groups[most].append(recovery._replace(form=recovery.form.only(*most)))


def _order(entry: Entry) -> tuple[object, ...]:
    return -entry.probability, *_place(entry.best)


def advice_of(
    query: Query,
    candidates: Mapping[str, Sequence[RecoveryCandidate]],
    methodologies: Sequence[Methodology],
    store: Store,
) -> tuple[Advice, ...]:
    """What *candidates* (by channel) and *methodologies* advise about the error, the best first.

    A remedy that a methodology is about is worded by it; what harmed is left out. What is not
    active comes after all active advice that is probable enough to be shown.
    """
    by_channel = {
        name: {_identity(candidate): candidate for candidate in group}
        for name, group in candidates.items()
    }
    unique = {key: candidate for group in by_channel.values() for key, candidate in group.items()}
    entries: Sequence[Entry] = entries_of(query, unique.values())
    ids = {entry.key: advice_id(query.signature, entry.best.form.remedy) for entry in entries}
    known = credits_for(store, [*ids.values()])
    harmful = [entry for entry in entries if known.of(ids[entry.key]).is_quarantined]
    entries = _trusted(query, unique.values(), entries, harmful, known)
    ranks = _ranks(entries, by_channel)
    advice = [
        Advice(
            ids[entry.key],
            entry,
            by,
            entry.probability * known.of(ids[entry.key]).trust,
            ranks[entry.key],
            known.is_active(entry.instances, len(entry.sources)),
        )
        for entry in entries
        for by in [_methodology_for(entry, methodologies)]
        if by is None or (may_be_shown(by) and not known.of(by.id).is_quarantined)
    ]
    return tuple(sorted(advice, key=_advice_order))


def _trusted(
    query: Query,
    candidates: Collection[RecoveryCandidate],
    entries: Sequence[Entry],
    harmful: Sequence[Entry],
    known: Credits,
) -> Sequence[Entry]:
    """*entries* without the *harmful* ones, which speak against no other any more.

    Where runs have several sources, neither does what only one instance or source supports speak
    against the rest.
    """

    def without(left_out: Sequence[Entry]) -> Sequence[Entry]:
        gone = {
            _identity(recovery.candidate) for entry in left_out for recovery in entry.recoveries
        }
        kept = (candidate for candidate in candidates if _identity(candidate) not in gone)
        return entries_of(query, kept)

    remaining = without(harmful) if harmful else entries
    if not known.several_sources:
        return remaining
    others = [
        entry for entry in remaining if not known.is_active(entry.instances, len(entry.sources))
    ]
    return [*without([*harmful, *others]), *others] if others else remaining


def _advice_order(advice: Advice) -> tuple[bool, float]:
    is_first = advice.is_active and advice.entry.probability >= CONSERVATIVE.min_precision
    return not is_first, -advice.score


def shown_of(
    query: Query, advice: Sequence[Advice], gate: Gate, limit: int
) -> tuple[tuple[Suggestion, ...], tuple[ErrorSolution, ...]]:
    """The first *limit* of *advice* that *gate* admits, with their ranks in one order."""
    admitted = [item for item in advice if gate.admits(item.entry.features, item.entry.probability)]
    suggestions, solutions = [], []
    for rank, item in enumerate(admitted[:limit], start=1):
        if item.methodology is None:
            solutions.append(_solution(query, item, rank))
        else:
            suggestions.append(_suggestion(query, item, item.methodology, rank))
    return tuple(suggestions), tuple(solutions)


def _shares(recoveries: Iterable[FoundRecovery]) -> tuple[Shares, Shares, Shares]:
    """By group of `GROUPS`, the instances of *recoveries* with how much each counts.

    Several runs of one instance count once, by the one whose circumstances agree best.
    """
    here: Shares = {}
    anywhere: Shares = {}
    of_type: Shares = {}
    for recovery in recoveries:
        if recovery.level is SignatureLevel.FAMILY:
            continue
        instance, weight = recovery.candidate.instance_id, recovery.weight
        if of_type.get(instance, 0.0) < weight:
            of_type[instance] = weight
        if recovery.level is not SignatureLevel.TYPE:
            if anywhere.get(instance, 0.0) < weight:
                anywhere[instance] = weight
            if recovery.is_near and here.get(instance, 0.0) < weight:
                here[instance] = weight
    return here, anywhere, of_type


def _relevance(recoveries: Sequence[FoundRecovery]) -> tuple[float, float]:
    """The greatest relevance for the message and similarity of the attempt."""
    return (
        max([recovery.relevance for recovery in recoveries], default=0.0),
        max([recovery.similarity for recovery in recoveries], default=0.0),
    )


def _entry(
    key: AdviceKey,
    recoveries: Sequence[FoundRecovery],
    cleared: Sequence[Shares],
    totals: Sequence[float],
    most: tuple[float, float],
    gate: FittedGate,
) -> Entry:
    did = _shares(recoveries)
    nearest = next((at for at, shares in enumerate(did) if shares), None)
    agreement = (
        Agreement(len(did[nearest]), len(cleared[nearest]), *GROUPS[nearest])
        if nearest is not None
        else None
    )
    relevance, attempt = (
        value / (limit or 1.0) for value, limit in zip(_relevance(recoveries), most, strict=True)
    )
    agreed = _agreed(recoveries, did, totals, agreement)
    features = RemedyFeatures(*agreed, relevance, attempt)
    ordered = tuple(sorted(recoveries, key=_place))
    return Entry(key, ordered, features, agreement, probability(features, gate))


def _agreed(
    recoveries: Sequence[FoundRecovery],
    did: Sequence[Shares],
    totals: Sequence[float],
    agreement: Agreement | None,
) -> tuple[float, float, float]:
    """`same_template`, `unsupported` and `same_type` of `RemedyFeatures`."""
    is_exact = any(recovery.is_exact for recovery in recoveries)
    doubt = _DOUBT_IF_EXACT if is_exact else _DOUBT
    _, of_template, of_type = (
        fsum(shares.values()) / (total + doubt) for shares, total in zip(did, totals, strict=True)
    )
    is_only_one = is_exact and agreement is not None and agreement.cleared == 1
    is_repeated = len({recovery.candidate.instance_id for recovery in recoveries}) > 1
    if (is_repeated or is_only_one) and any(recovery.is_supported for recovery in recoveries):
        return of_template, 0.0, of_type
    return 0.0, of_template, 0.0


def _place(recovery: FoundRecovery) -> tuple[bool, bool, bool, float, float, str, str, int]:
    """Supported ones first, then the nearest, the most exact, that of the nearest attempt."""
    return (
        not recovery.is_supported,
        not recovery.is_near,
        recovery.level not in SAME_TEMPLATE,
        -recovery.similarity,
        -recovery.relevance,
        *_identity(recovery.candidate),
    )


def _ranks(
    entries: Sequence[Entry], by_channel: Mapping[str, Collection[tuple[str, str, int]]]
) -> dict[AdviceKey, tuple[ChannelRank, ...]]:
    return ranks_in(
        {
            name: [
                (entry.key, entry.probability)
                for entry in entries
                if any(_identity(recovery.candidate) in candidates for recovery in entry.recoveries)
            ]
            for name, candidates in by_channel.items()
        }
    )


def _methodology_for(entry: Entry, methodologies: Sequence[Methodology]) -> Methodology | None:
    """The first of *methodologies* that is about this remedy."""
    if len(entry.best.form.remedy) != 1:
        return None
    pattern = entry.best.form.remedy[0].pattern
    return next(
        (
            methodology
            for methodology in methodologies
            if any(by.pattern == pattern for by in methodology.remedies)
        ),
        None,
    )


def _why(advice: Advice) -> Why:
    entry = advice.entry
    runs = newest_first(recovery.candidate for recovery in entry.recoveries)
    return Why(
        channels=advice.ranks,
        scope=ScopeLevel.REPO if entry.best.is_near else ScopeLevel.GENERAL,
        support=len(runs),
        trajectories=runs[:NAMED_RUNS],
        signature_level=entry.best.level,
        agreement=entry.agreement,
        instances=entry.instances,
        sources=entry.sources,
        is_active=advice.is_active,
    )


def _solution(query: Query, advice: Advice, rank: int) -> ErrorSolution:
    best = advice.entry.best
    done = best.candidate
    return ErrorSolution(
        fragment_id=done.fragment_id,
        trajectory_id=done.trajectory_id,
        instance_id=done.instance_id,
        repo=done.repo,
        error_type=done.error_type,
        signature_level=best.level,
        actions=best.form.remedy,
        description=query.names.fill(best.form.description),
        workaround=done.workaround,
        score=advice.score,
        why=_why(advice),
        rank=rank,
        probability=advice.entry.probability,
        advice=advice.id,
    )


def _suggestion(query: Query, advice: Advice, by: Methodology, rank: int) -> Suggestion:
    form = advice.entry.best.form
    return Suggestion(
        id=by.id,
        situation=by.situation,
        strategy=query.names.fill(form.description),
        confidence=by.confidence,
        status=str(by.status if advice.is_active else MethodologyStatus.PROBATION),
        scope=ScopeLevel.GENERAL if by.repo is None else ScopeLevel.REPO,
        score=advice.score,
        why=_why(advice),
        remedies=form.remedy,
        rank=rank,
        probability=advice.entry.probability,
        advice=advice.id,
        words=by.words or None,
    )
