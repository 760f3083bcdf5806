"""Ranks remedies of an error by the agreement of independent instances."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from operator import attrgetter
from typing import TypeAlias

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
from contextgraph.retrieval.credit import Credits, credits_for
from contextgraph.retrieval.fuse import newest_first
from contextgraph.retrieval.gate import (
    CONSERVATIVE,
    Gate,
    RemedyFeatures,
    may_be_shown,
    probability,
)
from contextgraph.retrieval.query import Query
from contextgraph.retrieval.recoveries import Form, Found, found_for
from contextgraph.retrieval.score import SAME_TEMPLATE
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
    found: tuple[Found, ...]
    features: RemedyFeatures
    agreement: Agreement | None
    probability: float

    @property
    def best(self) -> Found:
        """The recovery that is shown."""
        return self.found[0]

    @property
    def instances(self) -> int:
        """How many independent instances did it."""
        return len({one.instance for one in self.found})

    @property
    def sources(self) -> tuple[str, ...]:
        """Who supplied the runs that did it."""
        return tuple(sorted({one.candidate.contributor for one in self.found}))


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
    found = found_for(query, signature, candidates)
    groups = _grouped(found)
    _simplify(groups)
    cleared = _shares(found)
    most = _relevance(found)
    totals = [fsum(one.values()) for one in cleared]
    entries = [_entry(key, same, cleared, totals, most, query.gate) for key, same in groups.items()]
    return tuple(sorted(entries, key=_order))


def _grouped(found: Iterable[Found]) -> dict[AdviceKey, list[Found]]:
    """Those of *found* that may be advised, by key."""
    by_form: dict[Form, list[Found]] = {}
    for one in found:
        # What is never advised is still one way in which the error was cleared.
        if not one.is_withheld:
            by_form.setdefault(one.form, []).append(one)
    groups: dict[AdviceKey, list[Found]] = {}
    for form, same in by_form.items():
        groups.setdefault(form.key, []).extend(same)
    return groups


def _simplify(groups: dict[AdviceKey, list[Found]]) -> None:
    """Let remedies of several actions count for that one of them which most did alone."""
    single = {key: len({one.instance for one in found}) for key, found in groups.items()}
    for key in [key for key in groups if len(key) > 1]:
        parts = [(part,) for part in key if (part,) in single]
        if parts:
            most = max(parts, key=single.__getitem__)
            for one in groups.pop(key):
                groups[most].append(one._replace(form=one.form.only(*most)))


def _order(entry: Entry) -> tuple[object, ...]:
    return -entry.probability, *_place(entry.best)


def advice_of(
    query: Query,
    found: Mapping[str, Sequence[RecoveryCandidate]],
    methodologies: Sequence[Methodology],
    store: Store,
) -> tuple[Advice, ...]:
    """What *found* (by channel) and *methodologies* advise about the error, the best first.

    A remedy that a methodology is about is worded by it; what harmed is left out. What is not
    active comes after all active advice that is probable enough to be shown.
    """
    by_channel = {name: {_identity(one): one for one in of_name} for name, of_name in found.items()}
    unique = {key: one for of_name in by_channel.values() for key, one in of_name.items()}
    entries: Sequence[Entry] = entries_of(query, unique.values())
    ids = {one.key: advice_id(query.signature, one.best.form.remedy) for one in entries}
    known = credits_for(store, [*ids.values()])
    harmful = [one for one in entries if known.of(ids[one.key]).is_quarantined]
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
        gone = {_identity(one.candidate) for entry in left_out for one in entry.found}
        return entries_of(query, [one for one in candidates if _identity(one) not in gone])

    remaining = without(harmful) if harmful else entries
    if not known.several_sources:
        return remaining
    others = [one for one in remaining if not known.is_active(one.instances, len(one.sources))]
    return [*without([*harmful, *others]), *others] if others else remaining


def _advice_order(one: Advice) -> tuple[bool, float]:
    is_first = one.is_active and one.entry.probability >= CONSERVATIVE.min_precision
    return not is_first, -one.score


def shown_of(
    query: Query, advice: Sequence[Advice], gate: Gate, limit: int
) -> tuple[tuple[Suggestion, ...], tuple[ErrorSolution, ...]]:
    """The first *limit* of *advice* that *gate* admits, with their ranks in one order."""
    admitted = [one for one in advice if gate.admits(one.entry.features, one.entry.probability)]
    suggestions, solutions = [], []
    for rank, one in enumerate(admitted[:limit], start=1):
        if one.methodology is None:
            solutions.append(_solution(query, one, rank))
        else:
            suggestions.append(_suggestion(query, one, one.methodology, rank))
    return tuple(suggestions), tuple(solutions)


def _shares(found: Iterable[Found]) -> tuple[Shares, Shares, Shares]:
    """By group of `GROUPS`, the instances of *found* with how much each counts.

    Several runs of one instance count once, by the one whose circumstances agree best.
    """
    here: Shares = {}
    anywhere: Shares = {}
    of_type: Shares = {}
    for one in found:
        if one.level is SignatureLevel.FAMILY:
            continue
        instance, weight = one.instance, one.weight
        if of_type.get(instance, 0.0) < weight:
            of_type[instance] = weight
        if one.level is not SignatureLevel.TYPE:
            if anywhere.get(instance, 0.0) < weight:
                anywhere[instance] = weight
            if one.is_near and here.get(instance, 0.0) < weight:
                here[instance] = weight
    return here, anywhere, of_type


def _relevance(found: Sequence[Found]) -> tuple[float, float]:
    """The greatest relevance for the message and similarity of the attempt."""
    return (
        max([one.relevance for one in found], default=0.0),
        max([one.similarity for one in found], default=0.0),
    )


def _entry(
    key: AdviceKey,
    found: Sequence[Found],
    cleared: Sequence[Shares],
    totals: Sequence[float],
    most: tuple[float, float],
    gate: FittedGate,
) -> Entry:
    did = _shares(found)
    nearest = next((at for at, one in enumerate(did) if one), None)
    agreement = (
        Agreement(len(did[nearest]), len(cleared[nearest]), *GROUPS[nearest])
        if nearest is not None
        else None
    )
    relevance, attempt = (
        value / (limit or 1.0) for value, limit in zip(_relevance(found), most, strict=True)
    )
    agreed = _agreed(found, did, totals, agreement)
    features = RemedyFeatures(*agreed, relevance, attempt)
    ordered = tuple(sorted(found, key=_place))
    return Entry(key, ordered, features, agreement, probability(features, gate))


def _agreed(
    found: Sequence[Found],
    did: Sequence[Shares],
    totals: Sequence[float],
    agreement: Agreement | None,
) -> tuple[float, float, float]:
    """`same_template`, `unsupported` and `same_type` of `RemedyFeatures`."""
    is_exact = any(one.is_exact for one in found)
    doubt = _DOUBT_IF_EXACT if is_exact else _DOUBT
    _, of_template, of_type = (
        fsum(one.values()) / (total + doubt) for one, total in zip(did, totals, strict=True)
    )
    is_only_one = is_exact and agreement is not None and agreement.cleared == 1
    is_repeated = len({one.instance for one in found}) > 1
    if (is_repeated or is_only_one) and any(one.is_supported for one in found):
        return of_template, 0.0, of_type
    return 0.0, of_template, 0.0


def _place(found: Found) -> tuple[bool, bool, bool, float, float, str, str, int]:
    """Supported ones first, then the nearest, the most exact, that of the nearest attempt."""
    return (
        not found.is_supported,
        not found.is_near,
        found.level not in SAME_TEMPLATE,
        -found.similarity,
        -found.relevance,
        *_identity(found.candidate),
    )


def _ranks(
    entries: Sequence[Entry], found: Mapping[str, Collection[tuple[str, str, int]]]
) -> dict[AdviceKey, tuple[ChannelRank, ...]]:
    return ranks_in(
        {
            name: [
                (entry.key, entry.probability)
                for entry in entries
                if any(_identity(one.candidate) in of_channel for one in entry.found)
            ]
            for name, of_channel in found.items()
        }
    )


def _methodology_for(entry: Entry, methodologies: Sequence[Methodology]) -> Methodology | None:
    """The first of *methodologies* that is about this remedy."""
    if len(entry.best.form.remedy) != 1:
        return None
    pattern = entry.best.form.remedy[0].pattern
    return next(
        (one for one in methodologies if any(by.pattern == pattern for by in one.remedies)), None
    )


def _why(advice: Advice) -> Why:
    entry = advice.entry
    runs = newest_first(one.candidate for one in entry.found)
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
