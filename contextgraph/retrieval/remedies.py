"""At an error: one list of remedies, each once, by the agreement of independent instances."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import log1p
from typing import TypeAlias

from contextgraph.model import (
    Agreement,
    ChannelRank,
    ErrorSignature,
    ErrorSolution,
    Methodology,
    MethodologyStatus,
    RecoveryCandidate,
    RemedyAction,
    RemedyKind,
    ScopeLevel,
    SignatureLevel,
    Suggestion,
    Why,
)
from contextgraph.ports import Store
from contextgraph.ranking import bm25, ranks_in, word_counts
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
from contextgraph.retrieval.score import about_another, signature_level
from contextgraph.trace import (
    AdviceKey,
    advice_id,
    advice_key,
    command_lines,
    describe_remedy,
    is_general,
    is_hazardous,
    is_own_module,
    is_retry,
)

NAMED_RUNS = 10
_REMEMBERED = 8_192
_SAME_TEMPLATE = (SignatureLevel.PLACE, SignatureLevel.TEMPLATE)

Remedy: TypeAlias = tuple[RemedyAction, ...]
# Where instances are compared, the nearest first.
GROUPS = (
    (ScopeLevel.REPO, SignatureLevel.TEMPLATE),
    (ScopeLevel.GENERAL, SignatureLevel.TEMPLATE),
    (ScopeLevel.GENERAL, SignatureLevel.TYPE),
)


@dataclass(frozen=True, slots=True)
class Found:
    """A recovery that may help, and what to advise of it.

    *remedy* is in the words of the project where *is_near*: in the repository that asks, and not
    about other names; else in general terms.
    """

    candidate: RecoveryCandidate
    remedy: Remedy
    level: SignatureLevel
    is_near: bool
    relevance: float

    @property
    def instance(self) -> str:
        """The instance of its run: several runs of one are not independent evidence."""
        return self.candidate.trajectory.instance_id


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
        return tuple(sorted({one.candidate.trajectory.contributor for one in self.found}))

    @property
    def is_of_one_run(self) -> bool:
        """True where no second run supports it."""
        return len({one.candidate.trajectory.id for one in self.found}) == 1


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
    found = _found(query, signature, candidates)
    groups: dict[AdviceKey, list[Found]] = {}
    for one in found:
        # What is never advised is still one way in which the error was cleared.
        if not is_hazardous(one.candidate.recovered.actions):
            groups.setdefault(advice_key(one.remedy), []).append(one)
    cleared = {group: _instances(found, group) for group in GROUPS}
    most = max((one.relevance for one in found), default=0.0) or 1.0
    entries = [_entry(key, same, cleared, most) for key, same in groups.items()]
    return tuple(sorted(entries, key=_order))


def _order(entry: Entry) -> tuple[object, ...]:
    return -entry.probability, entry.is_of_one_run, *_place(entry.best)


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
    unique = {_identity(one): one for one in chain.from_iterable(found.values())}
    entries: Sequence[Entry] = entries_of(query, unique.values())
    ids = {one.key: advice_id(query.signature, one.best.remedy) for one in entries}
    known = credits_for(store, [*ids.values()])
    entries = _trusted(query, unique.values(), entries, known)
    ranks = _ranks(entries, found)
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
    known: Credits,
) -> Sequence[Entry]:
    """*entries* without quarantined ones, which speak against no other any more.

    Where runs have several sources, neither does what only one instance or source supports speak
    against the rest.
    """

    def without(left_out: Sequence[Entry]) -> Sequence[Entry]:
        gone = {_identity(one.candidate) for entry in left_out for one in entry.found}
        return entries_of(query, [one for one in candidates if _identity(one) not in gone])

    def is_harmful(entry: Entry) -> bool:
        return known.of(advice_id(query.signature, entry.best.remedy)).is_quarantined

    harmful = [one for one in entries if is_harmful(one)]
    kept = without(harmful) if harmful else entries
    if not known.several_sources:
        return kept
    others = [one for one in kept if not known.is_active(one.instances, len(one.sources))]
    return [*without([*harmful, *others]), *others] if others else kept


def _advice_order(one: Advice) -> tuple[bool, float, bool]:
    is_first = one.is_active and one.entry.probability >= CONSERVATIVE.floor
    return not is_first, -one.score, one.entry.is_of_one_run


def shown_of(
    query: Query, advice: Sequence[Advice], gate: Gate, limit: int
) -> tuple[tuple[Suggestion, ...], tuple[ErrorSolution, ...]]:
    """The first *limit* of *advice* that *gate* admits, with their ranks in one order."""
    passes = gate.admits([one.entry.probability for one in advice])
    admitted = [one for one, is_shown in zip(advice, passes, strict=True) if is_shown]
    suggestions, solutions = [], []
    for rank, one in enumerate(admitted[:limit], start=1):
        if one.methodology is None:
            solutions.append(_solution(query, one, rank))
        else:
            suggestions.append(_suggestion(query, one, one.methodology, rank))
    return tuple(suggestions), tuple(solutions)


def _found(
    query: Query, signature: ErrorSignature, candidates: Iterable[RecoveryCandidate]
) -> list[Found]:
    useful = [one for one in candidates if not is_retry(one.recovered.actions)]
    texts = [_text_of(one) for one in useful]
    found = []
    for one, relevance in zip(useful, bm25(word_counts(signature.message), texts), strict=True):
        here = one.trajectory.repo.casefold() == query.state.repo.casefold()
        is_near = here and not about_another(signature, one.recovered)
        actions = one.recovered.actions
        remedy = _of_same_repository(actions) if is_near else _general(actions)
        if remedy and _description(remedy) and not _contradicts(query, remedy):
            level = signature_level(signature, one)
            found.append(Found(one, remedy, level, is_near, relevance))
    return found


def _text_of(candidate: RecoveryCandidate) -> Counter[str]:
    recovered = candidate.recovered
    return word_counts(f"{recovered.message}\n{_words_of(recovered.actions)}")


@lru_cache(_REMEMBERED)
def _words_of(actions: Remedy) -> str:
    return "\n".join((describe_remedy(actions), *command_lines(actions)))


@lru_cache(_REMEMBERED)
def _description(remedy: Remedy) -> str:
    return describe_remedy(remedy)


@lru_cache(_REMEMBERED)
def _of_same_repository(actions: Remedy) -> Remedy:
    """*actions* as they were done, but an edit sent again in general terms, where there are any."""
    if not any(one.kind is RemedyKind.RESEND for one in actions):
        return actions
    of_edits = (RemedyKind.RESEND, RemedyKind.OPEN)
    return tuple(one for one in _general(actions) if one.kind in of_edits) or actions


@lru_cache(_REMEMBERED)
def _general(actions: Remedy) -> Remedy:
    """What *actions* come to in another repository: nothing of what is of one project."""
    return tuple(one.general for one in actions if is_general(one.pattern))


def _contradicts(query: Query, remedy: Remedy) -> bool:
    """True for what cannot help in this state: the project's own module is not to be installed."""
    installed = (one.pattern.target for one in remedy if one.kind is RemedyKind.INSTALL)
    state, fill = query.state, query.names.fill
    return any(is_own_module(fill(one), state.repo, state.open_file) for one in installed)


def _instances(found: Iterable[Found], group: tuple[ScopeLevel, SignatureLevel]) -> set[str]:
    scope, level = group
    levels = _SAME_TEMPLATE if level is SignatureLevel.TEMPLATE else (*_SAME_TEMPLATE, level)
    return {
        one.instance
        for one in found
        if one.level in levels and (one.is_near or scope is ScopeLevel.GENERAL)
    }


def _entry(
    key: AdviceKey,
    found: Sequence[Found],
    cleared: Mapping[tuple[ScopeLevel, SignatureLevel], set[str]],
    most: float,
) -> Entry:
    did = {group: _instances(found, group) for group in GROUPS}
    ordered = tuple(sorted(found, key=_place))
    here, anywhere, same_type = (len(did[group]) / (len(cleared[group]) + 1) for group in GROUPS)
    features = RemedyFeatures(
        template_here=here,
        template_anywhere=anywhere,
        type_anywhere=same_type,
        relevance=max(one.relevance for one in found) / most,
        instances=log1p(len({one.instance for one in found})),
    )
    nearest = next((group for group in GROUPS if did[group]), None)
    agreement = Agreement(len(did[nearest]), len(cleared[nearest]), *nearest) if nearest else None
    return Entry(key, ordered, features, agreement, probability(features))


def _place(found: Found) -> tuple[bool, bool, float, str, str, int]:
    """What is shown for a remedy: the nearest, then the most exact, then the most relevant."""
    return (
        not found.is_near,
        found.level not in _SAME_TEMPLATE,
        -found.relevance,
        *_identity(found.candidate),
    )


def _identity(candidate: RecoveryCandidate) -> tuple[str, str, int]:
    recovered = candidate.recovered
    return recovered.fragment_id, recovered.error_id, recovered.error_step


def _ranks(
    entries: Sequence[Entry], found: Mapping[str, Sequence[RecoveryCandidate]]
) -> dict[AdviceKey, tuple[ChannelRank, ...]]:
    known = {name: {_identity(one) for one in candidates} for name, candidates in found.items()}
    return ranks_in(
        {
            name: [
                (entry.key, entry.probability)
                for entry in entries
                if any(_identity(one.candidate) in of_channel for one in entry.found)
            ]
            for name, of_channel in known.items()
        }
    )


def _methodology_for(entry: Entry, methodologies: Sequence[Methodology]) -> Methodology | None:
    """The first of *methodologies* that is about this remedy."""
    if len(entry.best.remedy) != 1:
        return None
    pattern = entry.best.remedy[0].pattern
    return next(
        (one for one in methodologies if any(by.pattern == pattern for by in one.remedies)), None
    )


def _why(advice: Advice) -> Why:
    entry = advice.entry
    runs = newest_first(one.candidate.trajectory for one in entry.found)
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
    trajectory, recovered = best.candidate.trajectory, best.candidate.recovered
    return ErrorSolution(
        fragment_id=recovered.fragment_id,
        trajectory_id=trajectory.id,
        instance_id=trajectory.instance_id,
        repo=trajectory.repo,
        error_type=best.candidate.error.error_type,
        signature_level=best.level,
        actions=best.remedy,
        description=query.names.fill(_description(best.remedy)),
        workaround=recovered.workaround,
        score=advice.score,
        why=_why(advice),
        rank=rank,
        probability=advice.entry.probability,
        advice=advice.id,
    )


def _suggestion(query: Query, advice: Advice, by: Methodology, rank: int) -> Suggestion:
    """The remedy in words, then what a language model worded of the methodology."""
    remedy = advice.entry.best.remedy
    return Suggestion(
        id=by.id,
        situation=by.situation,
        strategy="\n".join((query.names.fill(_description(remedy)), *by.strategy.split("\n")[1:])),
        confidence=by.confidence,
        status=str(by.status if advice.is_active else MethodologyStatus.PROBATION),
        scope=ScopeLevel.GENERAL if by.repo is None else ScopeLevel.REPO,
        score=advice.score,
        why=_why(advice),
        remedies=remedy,
        rank=rank,
        probability=advice.entry.probability,
        advice=advice.id,
    )
