"""The gate: trust in advice, the probability that an item helps, when it is shown, what is right.

`does_the_same` is the rule by which a remedy is right; evaluation uses it, too. Which remedies are
one is decided by `remedy_key` alone. docs/evaluation.md states the rule with examples. Changing it
changes every figure: measure both versions under one rule.
"""

import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import log1p, sqrt
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from contextgraph.knowledge.fitted import fitted
from contextgraph.model import (
    Action,
    AdviceRecord,
    Count,
    Effect,
    Evidence,
    Exposure,
    FittedModel,
    Likeness,
    MemoryGate,
    Methodology,
    MethodologyStatus,
    Remedy,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    ShownItem,
    independent,
)
from contextgraph.model.values import replace
from contextgraph.store.memory_store import ALL, Store
from contextgraph.text import regex
from contextgraph.trace import (
    EDITED,
    IMPORTS,
    ActionReading,
    Names,
    is_hazardous,
    read_action,
    remedy_key,
)
from contextgraph.trace.advice import leaves_open

# Fitted by `python -m benchmarks.gate` (see benchmarks/README.md): a logistic regression on
# recoveries of recorded runs, each judged by those of other instances, then isotonic calibration.
SHIPPED = fitted("remedies")


def stored_gate(store: Store) -> MemoryGate:
    """Return the gate fitted on *store*; an empty one without one, or if it has other features."""
    known = store.exposures.gate() or MemoryGate()
    is_known = known.model is None or known.model.weights.keys() == SHIPPED.weights.keys()
    return known if is_known else MemoryGate()


def probability(counts: Iterable[Count], model: FittedModel = SHIPPED) -> float:
    """Return how probable it is that a remedy with these *counts* clears the error, 0 to 1."""
    return model.probability({one.likeness: one.share for one in counts})


def ranked_counts(counts: Iterable[Count], model: FittedModel) -> tuple[Count, ...]:
    """Return *counts*, those first that raise the probability most."""
    return tuple(sorted(counts, key=lambda one: -model.weights[one.likeness] * one.share))


# The distance in time where that is not known: tasks are as probable then as by the other features
# alone.
TYPICAL_DISTANCE = 0.2
# Long tasks share many words; that they share more than this says nothing. Any two texts share a
# word.
_MOST_SHARED, _LEAST_SHARED = 10, 2


class CaseFeatures(NamedTuple):
    """Features of the probability of a past run.

    *similarity* of the tasks is from 0 to 1, *shared* the number of words that both have,
    *closeness* the score of the run over that of the best one, and *lead* how far the best one is
    before the next: where several are as close, none may be meant. *distance* is the share of the
    past tasks that are nearer in time, by days: what people link, they often do in one week.
    """

    similarity: float
    shared: int
    closeness: float
    lead: float = 0.0
    distance: float = TYPICAL_DISTANCE

    @property
    def columns(self) -> tuple[float, ...]:
        """The features as the regression takes them."""
        shared = log1p(min(self.shared, _MOST_SHARED))
        return self.similarity, shared, self.closeness, self.lead, self.distance


def case_probability(features: CaseFeatures) -> float:
    """Return the probability that people would link the task of a past run to the query."""
    if features.shared < _LEAST_SHARED:
        return 0.0
    return fitted("tasks").probability(dict(zip(features._fields, features.columns, strict=True)))


# What an average step adds to the prompt of an agent (65 kB in 29 steps): a text of this length
# costs as much as the step that it may save (docs/evaluation.md).
TOKENS_OF_A_STEP = 500
# Reading one line in its fence, in steps of an agent.
READING = 65 / TOKENS_OF_A_STEP
# An alarm saves the rest of the loop, but no more than readers saw of it who judged such texts.
MOST_OF_LOOP = 10
# From this probability on a remedy is worth the interruption of an agent that did not ask.
SURE = 0.7
# Steps that it is expected to spare such an agent; with fewer, earlier ones did it in their next
# step, and so will this one. In 70 sessions of Claude Code each text that saved something had 1.9
# or more, each that the agent did anyway less than .5. With .7 one that saves in 39 sessions of
# mini-swe-agent is lost.
INTERRUPTION = 0.5


class Gate(Struct, frozen=True):
    """Decides what may be shown to an agent that asks.

    *min_precision* is the least probability of a remedy, which must also have evidence; at 0 no
    remedy is held back. The probability is that the run did the very same thing; what it did
    not do may help as well. What is shown unasked has at least `SURE`, and times the steps that
    it spares at least `INTERRUPTION`.
    *min_case_precision* is that of a past run in a ranking and of the first one of its repository
    in the text, and *close_case_precision* that of another one there (docs/retrieval.md).
    *min_note_precision* is the least probability that a note answers the title of the task,
    *min_lesson_precision* that a lesson helps with the request, *min_written_precision* with what
    an agent is about to write, and *min_session_precision* that of a session that is named beside
    it.
    """

    min_precision: float = 0.2
    min_case_precision: float = 0.1
    # From this probability on .79 of the past runs that come first were linked to the task, and
    # most of the others are about the same issue (docs/measurements.md).
    close_case_precision: float = 0.65
    min_note_precision: float = 0.4
    # At prompts of a team none of the nine texts between .3 and .42 helped; of the requests about
    # decisions the least probable right one has .43. Of two texts about a document that was about
    # to be written, .38 and .4, one spared a correction.
    min_lesson_precision: float = 0.42
    min_written_precision: float = 0.35
    # At prompts of a team 9 of the 11 sessions that were probable at .9 were about the
    # same; at .75 half of them.
    min_session_precision: float = 0.97

    def refusal(self, remedy: Remedy) -> str:
        """Return why *remedy* is not worth showing; empty where it is."""
        if not self.min_precision:
            return ""
        # Recorded runs count some remedies without evidence as right: `install <the missing
        # module>` is what cleared such an error, whichever module was named.
        if not remedy.is_supported:
            return "neither the error nor the command says that it applies here"
        met_here = any(one.likeness is Likeness.MESSAGE_HERE for one in remedy.why.counts)
        if remedy.why.instances < ACTIVE_FROM and not met_here:
            return "only one earlier task did it"
        if remedy.probability < self.min_precision:
            return f"improbable: {self.min_precision:.2f} is needed"
        return ""


def may_be_shown(methodology: Methodology) -> bool:
    """Return False for a methodology that harmed, was replaced, or is never advice."""
    withdrawn = (MethodologyStatus.QUARANTINED, MethodologyStatus.RETIRED)
    return methodology.status not in withdrawn and not is_hazardous(methodology.remedies)


CONSERVATIVE = Gate()
# What a ranking is before any item is held back.
UNGATED = Gate(0.0, 0.0, 0.0, 0.0, 0.0)


# Advice is trusted fully until shown otherwise: as if it had helped this often already.
PRIOR_SUCCESSES = 1
QUARANTINE_BELOW = 1 / 3
# How often unknown errors are cleared.
UNKNOWN_RATE = 0.5
# So many independent instances, and sources where runs have several, make advice active.
ACTIVE_FROM = 2
# Each round shares credit by what the round before made of the items; it settles in a few.
_ROUNDS = 8
_LEAST_SHARE = 0.01
_DIGITS = 4

# One-sided 95 %.
Z = 1.645
TWO_SIDED = 1.96


class Credit(Struct, frozen=True):
    """Shares of reports in which tried advice *helped* and *failed*.

    *base* is the share of its errors that are cleared without it. *by_hand*: it was quarantined by
    hand. *accusers* is the number of sources that reported failures.
    """

    helped: float = 0.0
    failed: float = 0.0
    base: float = UNKNOWN_RATE
    by_hand: bool = False
    accusers: int = 0

    @property
    def trust(self) -> float:
        """Its successes over those at the base rate, 0 to 1.

        Both with a prior of one, so that silence costs nothing.
        """
        expected = (self.helped + self.failed) * self.base
        return min(1.0, (self.helped + PRIOR_SUCCESSES) / (expected + PRIOR_SUCCESSES))

    @property
    def is_quarantined(self) -> bool:
        """True where it clears errors far less often than they are cleared anyway, or by hand."""
        return self.by_hand or self.trust < QUARANTINE_BELOW


# Of advice of which nothing was reported.
_UNTRIED = Credit()


def is_supported(sources: Collection[str], *, several_sources: bool) -> bool:
    """Return whether several sources, or the owner, who has no name, say something."""
    return not several_sources or "" in sources or independent(sources) >= ACTIVE_FROM


class _Event(NamedTuple):
    """A report of a *source* about *names* that were tried together."""

    source: str
    base: float
    helped: bool
    names: tuple[str, ...]


# (name, source) -> helped, failed, and the sum of both by base rate.
_Counts = Mapping[tuple[str, str], tuple[float, float, float]]


def credits_of(
    record: AdviceRecord, key: Callable[[ShownItem], str] = lambda item: item.advice
) -> dict[str, Credit]:
    """Return credits by advice (or another *key* of items), for all that *record* names.

    What was tried together shares a success by how often each succeeded, and a failure by how often
    each failed; failures of harmful advice are not shared. So honest advice recovers from having
    been shown beside bad advice. Where runs or reports have several sources, those that one of them
    reports count at most as much as all others do, and distrusted ones for nothing.
    """
    distrusted = record.distrusted
    several = record.several_sources or any(
        exposure.source for exposure in record.exposures if exposure.helped is not None
    )
    events = [
        event
        for exposure in record.exposures
        if exposure.source not in distrusted
        for event in _events(exposure, record, key)
    ]
    harmful = set[str]()
    while True:
        credit: dict[str, Credit] = {}
        for _ in range(_ROUNDS if events else 0):
            credit = _combined(_shared(events, credit), several_sources=several)
        worst = min(
            (
                (known.trust, name)
                for name, known in credit.items()
                if known.is_quarantined and name not in harmful
            ),
            default=None,
        )
        if worst is None:
            break
        harmful.add(worst[1])
        events = [_explained(event, worst[1]) for event in events]
    for verdict in record.verdicts:
        if verdict.is_quarantined:
            known = credit.get(verdict.advice, _UNTRIED)
            credit[verdict.advice] = replace(known, by_hand=True)
    return credit


def base_rate(record: AdviceRecord, error_id: str | None) -> float:
    """Return how often an error is cleared, 0 to 1, by the rule of succession."""
    runs, cleared = record.base_rates.get(error_id or "", (0, 0))
    return (cleared + 1) / (runs + 2)


def _events(
    exposure: Exposure, record: AdviceRecord, key: Callable[[ShownItem], str]
) -> Iterator[_Event]:
    released = {
        verdict.advice: verdict.decided_at
        for verdict in record.verdicts
        if not verdict.is_quarantined
    }
    base = base_rate(record, exposure.error_id)
    for helped in (True, False):
        names = {key(item) for item in exposure.items if item.helped is helped}
        counted = [
            name for name in names if released.get(name, exposure.shown_at) <= exposure.shown_at
        ]
        if counted:
            yield _Event(exposure.source, base, helped, tuple(sorted(counted)))


def _explained(event: _Event, harmful: str) -> _Event:
    """*event*, whose failure counts only for the *harmful* name if that was tried."""
    is_explained = not event.helped and harmful in event.names
    return event._replace(names=(harmful,)) if is_explained else event


def _shared(events: Sequence[_Event], credit: Mapping[str, Credit]) -> _Counts:
    """Return the reports of each source about each name, shared by their *credit* so far."""
    counts: defaultdict[tuple[str, str], tuple[float, float, float]] = defaultdict(
        lambda: (0, 0, 0)
    )
    for event in events:
        rates = [_rate(credit.get(name, _UNTRIED)) for name in event.names]
        parts = [max(_LEAST_SHARE, rate if event.helped else 1 - rate) for rate in rates]
        for name, part in zip(event.names, parts, strict=True):
            share = part / sum(parts)
            helped, failed, bases = counts[name, event.source]
            counts[name, event.source] = (
                helped + share * event.helped,
                failed + share * (not event.helped),
                bases + share * event.base,
            )
    return counts


def _rate(credit: Credit) -> float:
    """Return how often advice succeeded, with one prior trial at the base rate."""
    return (credit.helped + credit.base) / (credit.helped + credit.failed + 1)


def _combined(counts: _Counts, *, several_sources: bool) -> dict[str, Credit]:
    """The credit of each name from all sources; reports without a source are the owner's own."""
    totals: defaultdict[str, float] = defaultdict(float)
    for (name, _), (helped, failed, _) in counts.items():
        totals[name] += helped + failed
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    accusers: Counter[str] = Counter()
    for (name, source), parts in counts.items():
        own = parts[0] + parts[1]
        accusers[name] += parts[1] > 0
        counted = min(1.0, (totals[name] - own) / own) if several_sources and source else 1.0
        sums[name] = [total + counted * part for total, part in zip(sums[name], parts, strict=True)]
    return {
        name: Credit(
            round(helped, _DIGITS),
            round(failed, _DIGITS),
            bases / (helped + failed) if helped + failed else UNKNOWN_RATE,
            accusers=accusers[name],
        )
        for name, (helped, failed, bases) in sums.items()
    }


def wilson(successes: float, trials: float, z: float = Z) -> tuple[float, float]:
    """Return the interval of the true share, 0 to 1, by the score method (Wilson 1927).

    With p = successes / trials: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n); nothing is
    known without trials. The default *z* leaves 5 % below the lower bound.
    """
    if trials <= 0:
        return 0.0, 1.0
    share = successes / trials
    middle = share + z * z / (2 * trials)
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def difference(
    successes: float,
    trials: float,
    base_successes: float,
    base_trials: float,
    z: float = Z,
) -> tuple[float, float, float]:
    """Return how much more often it goes well with than without, -1 to 1, and the interval of that.

    Newcombe's hybrid score interval for a difference of shares (1998, method 10):
    d - √((p₁ - l₁)² + (u₂ - p₂)²) and d + √((u₁ - p₁)² + (p₂ - l₂)²), with Wilson's bounds. Where
    nothing is known of one side, that may go as well or as badly as any.
    """
    low, high = wilson(successes, trials, z)
    base_low, base_high = wilson(base_successes, base_trials, z)
    if trials <= 0 or base_trials <= 0:
        return 0.0, low - base_high, high - base_low
    share, base = successes / trials, base_successes / base_trials
    return (
        share - base,
        share - base - sqrt((share - low) ** 2 + (base_high - base) ** 2),
        share - base + sqrt((high - share) ** 2 + (base - base_low) ** 2),
    )


def effect_of(exposures: Iterable[Exposure]) -> Effect:
    """Return how contexts went that were shown or withheld by chance, where that was reported."""
    drawn = [
        exposure
        for exposure in exposures
        if exposure.is_withheld is not None and exposure.helped is not None
    ]
    withheld = [bool(exposure.helped) for exposure in drawn if exposure.is_withheld]
    shown = [bool(exposure.helped) for exposure in drawn if not exposure.is_withheld]
    counts = len(shown), sum(shown), len(withheld), sum(withheld)
    return Effect(
        *counts, *difference(sum(shown), len(shown), sum(withheld), len(withheld), TWO_SIDED)
    )


def least_lift(successes: float, trials: float, base_successes: float, base_trials: float) -> float:
    """Return by how much at least advice lifts the base rate, 0 to 1; 0 where that is not sure."""
    return max(0.0, difference(successes, trials, base_successes, base_trials)[1])


class Credits(Struct, frozen=True):
    """The credit of advice by its id, and whether the runs of the memory have several sources.

    What *distrusted* ones supplied counts for nothing.
    """

    by_name: Mapping[str, Credit]
    several_sources: bool
    distrusted: frozenset[str] = frozenset()

    def of(self, name: str) -> Credit:
        """Return the credit of the advice, or item, *name*."""
        return self.by_name.get(name, _UNTRIED)

    def is_active(self, instances: int, sources: Collection[str]) -> bool:
        """Return whether so many independent instances, and these sources, make advice active."""
        enough = is_supported(sources, several_sources=self.several_sources)
        return enough and instances >= ACTIVE_FROM

    def is_silenced(self, name: str, sources: Collection[str]) -> bool:
        """Return whether the advice *name*, which *sources* support, is not shown.

        What several sources agree on only several can silence.
        """
        credit = self.of(name)
        if not credit.is_quarantined:
            return False
        is_agreed = self.several_sources and independent(sources) >= ACTIVE_FROM
        return credit.by_hand or not is_agreed or credit.accusers >= ACTIVE_FROM


NO_CREDITS = Credits({}, several_sources=False)


def credits_for(
    store: Store,
    names: Iterable[str],
    key: Callable[[ShownItem], str] = lambda item: item.advice,
    *,
    hops: int = 1,
) -> Credits:
    """Return the credit of *names*, which are the *key* of items that may have been shown.

    What was shown together shares the credit by how each of them did elsewhere: that is looked up
    for what was shown beside *names*, and so on for so many *hops*.
    """
    wanted = set(names)
    record = store.exposures.record(sorted(wanted))
    for _ in range(hops):
        beside = {key(item) for exposure in record.exposures for item in exposure.items} - wanted
        if not beside:
            break
        wanted |= beside
        record = store.exposures.record(sorted(wanted))
    return Credits(credits_of(record, key), record.several_sources, record.distrusted)


def evidence_of(store: Store, name: str) -> Evidence | None:
    """Return the evidence of the advice or methodology *name*; None if never shown."""
    record = store.exposures.record([name])
    verdict = next((verdict for verdict in record.verdicts if verdict.advice == name), None)
    shown = list(shown_as(store, name))
    if not shown and verdict is None:
        return None
    tried = [(exposure.source, item.helped) for exposure, item in shown if item.helped is not None]
    cleared = sum(helped for _, helped in tried)
    errors = record.base_rates.values()
    runs, runs_cleared = sum(counts[0] for counts in errors), sum(counts[1] for counts in errors)
    is_id = any(name == item.id for _, item in shown)
    known = credits_for(store, [name], attrgetter("id" if is_id else "advice")).of(name)
    return Evidence(
        sum(not exposure.is_withheld for exposure, _ in shown),
        len(tried),
        cleared,
        runs,
        runs_cleared,
        *difference(cleared, len(tried), runs_cleared, runs, TWO_SIDED),
        sources=_by_source(tried),
        trust=known.trust,
        is_quarantined=known.is_quarantined,
        by_hand="" if verdict is None else "quarantined" if verdict.is_quarantined else "released",
        randomised=effect_of(exposure for exposure, _ in shown),
    )


def shown_as(store: Store, name: str) -> Iterator[tuple[Exposure, ShownItem]]:
    """Yield the items as which the advice or methodology *name* was shown, the newest first."""
    for exposure in store.exposures.newest(ALL, name=name):
        yield from ((exposure, item) for item in exposure.items if name in (item.id, item.advice))


def _by_source(tried: Sequence[tuple[str, bool]]) -> dict[str, tuple[int, int]]:
    """Source -> how often it *tried* the advice, and how often that cleared the error."""
    effects: dict[str, list[bool]] = {}
    for source, helped in sorted(tried):
        effects.setdefault(source, []).append(helped)
    return {source: (len(some), sum(some)) for source, some in effects.items()}


# Of the identifiers that two changes add (or only drop), so large a share must be common to both.
SHARED_CHANGE = 0.4
# In another file one common identifier may be chance.
SHARED_ELSEWHERE = 2

# Agents name one file in several ways; its last parts are what they have in common.
_PARTS_COMPARED = 2
_PLACEHOLDER_OF_PATH = regex(r"<.*(?:path|elsewhere|folder)")
_FILE_NAME = regex(r"\.[A-Za-z]\w{0,4}$")
_IDENTIFIER = regex(r"[A-Za-z_]\w+")
_CODE_KINDS = frozenset({RemedyKind.EDIT, RemedyKind.CONFIGURE, RemedyKind.RESEND})


class RepoRemedy(Struct, frozen=True):
    """The *actions* of one remedy that can be advice, as done in *repo*."""

    repo: str
    actions: tuple[RemedyAction, ...]

    def __bool__(self) -> bool:
        """False where nothing was done that could help again."""
        return bool(self.actions)


def remedy_of(actions: Iterable[RemedyAction], repo: str) -> RepoRemedy:
    """Return the remedy of *actions*, without retries and looking around."""
    counted = (
        action
        for action in actions
        if action.kind is not RemedyKind.RETRY and not _is_lookup(action)
    )
    return RepoRemedy(repo.casefold(), tuple(counted))


def does_the_same(done: RepoRemedy, advised: RepoRemedy, names: Names) -> bool:
    """Return whether following *advised* does a part of what was *done*.

    *names* are those in the message of the error that was cleared.
    """
    here = done.repo == advised.repo
    return any(
        same_action(action, other, names, here=here)
        for action in done.actions
        for other in advised.actions
    )


def first_match(done: RepoRemedy, advised: Sequence[RepoRemedy], names: Names) -> int | None:
    """Return the rank, from 1, of the first of *advised* that does the same; None for none."""
    ranked = enumerate(advised, start=1)
    return next((rank for rank, remedy in ranked if does_the_same(done, remedy, names)), None)


def kind_of_command(reading: ActionReading) -> str:
    """Return the program or tool of a command; `edit` for all that change files."""
    return "edit" if reading.kind.changes_files else reading.verb


def kinds_of_commands(advised: RepoRemedy) -> frozenset[str]:
    """Return the kinds of command that *advised* consists of."""
    return frozenset(kind for action in advised.actions for kind in _kinds(action))


def _kinds(action: RemedyAction) -> Iterator[str]:
    if action.kind in _CODE_KINDS:
        yield "edit"
    lines = (action.target, *action.values_of("command"))
    if action.kind is RemedyKind.INSTALL:
        lines = lines[1:] or ("pip install",)
    for line in lines:
        if line and not line.startswith("<"):
            yield kind_of_command(read_action(Action(line.split()[0], line), None, None))


def same_action(done: RemedyAction, advised: RemedyAction, names: Names, *, here: bool) -> bool:
    """Return whether following *advised* does what was *done*.

    *here*: both are of one repository, where paths, commands and code can be compared; advice from
    elsewhere is its pattern, with the names of the error at hand.
    """
    if done.kind is not advised.kind:
        return False
    if _defines(done) and _defines(advised) and is_concrete(advised):
        return (here or _imports(done)) and _head(done) == _head(advised)
    equal = remedy_key([done.pattern], names) == remedy_key([advised.pattern], names)
    closed = equal and (not is_open(done.pattern) or _is_spelled_out(done))
    if not here or not is_concrete(advised):
        return closed
    return _is_about(advised, names) if closed else _same_target(done, advised, names)


def clues_of(action: RemedyAction, names: Names) -> frozenset[str]:
    """Return index keys under which actions that may agree with *action* are found."""
    target, replaced = action.pattern.target, action.pattern.replaced
    clues = {" ".join(action.target.split()), " ".join(_head(action)), *_places(action)}
    clues |= {f"{target} for {replaced}", f"{names.fill(target)} for {names.fill(replaced)}"}
    clues |= {" ".join(line) for line in _lines(action)}
    clues |= {*action.values_of("adds"), *action.values_of("drops")}
    return frozenset(f"{action.kind} {clue}" for clue in clues)


def is_open(pattern: RemedyPattern) -> bool:
    """Return True for a *pattern* without a definite path, code or command."""
    return (
        pattern.kind is RemedyKind.OTHER
        or leaves_open(pattern.target)
        or any(map(leaves_open, pattern.parameters))
        or (pattern.kind is RemedyKind.EDIT and pattern.target in EDITED)
    )


def is_concrete(action: RemedyAction) -> bool:
    """Return True for a concrete *action*, False for one in general terms."""
    return action.target != action.pattern.target or bool(action.parameters)


def _is_lookup(action: RemedyAction) -> bool:
    """True for a search or listing that only showed what to do."""
    pattern = action.pattern
    looks = action.kind is RemedyKind.SEARCH and not pattern.target.startswith("<")
    return looks and not (action.replaced or pattern.replaced or pattern.parameters)


def _is_about(action: RemedyAction, names: Names) -> bool:
    """True where *action* deals with the names that its pattern has placeholders for."""
    pattern = f"{action.pattern.target} {action.pattern.replaced}"
    values = (value for _, value in action.parameters)
    text = _spelling(" ".join((action.target, action.replaced, *values)))
    pairs = zip(names.names, names.roles, strict=True)
    return all(_spelling(name).partition(".")[0] in text for name, role in pairs if role in pattern)


def _spelling(name: str) -> str:
    return name.lower().replace("_", "-")


def _defines(action: RemedyAction) -> bool:
    """True for a definition that a refused edit lacked."""
    return bool(action.values_of("placing"))


def _imports(action: RemedyAction) -> bool:
    return action.pattern.target in IMPORTS


def _head(action: RemedyAction) -> list[str]:
    """The line of a definition without its parameters: an import in full."""
    return action.target.partition("(")[0].split()


def _is_spelled_out(action: RemedyAction) -> bool:
    """True for an `import name`, which no module was left out of."""
    return _imports(action) and action.target.split() == ["import", *action.values_of("adds")]


def _same_target(done: RemedyAction, advised: RemedyAction, names: Names) -> bool:
    """Return whether both actions, of one kind and repository, did the same thing."""
    if done.kind is RemedyKind.RESEND:
        return not _lines(done).isdisjoint(_lines(advised))
    if done.kind in _CODE_KINDS:
        return _same_code(done, advised, names)
    if done.target.split() == advised.target.split():
        return True
    return not _places(done).isdisjoint(_places(advised))


def _lines(action: RemedyAction) -> frozenset[tuple[str, ...]]:
    """The lines that made the difference, but for those that stand in any text, as `else:`."""
    return frozenset(
        (name, *value.split())
        for name, value in action.parameters
        if name in ("with", "without") and _IDENTIFIER.search(value.partition("#")[0]) is not None
    )


def _same_code(done: RemedyAction, advised: RemedyAction, names: Names) -> bool:
    """Return whether two changes add the same identifiers, or, adding none, drop the same."""
    ours, theirs = set(done.values_of("adds")), set(advised.values_of("adds"))
    if not ours and not theirs:
        ours, theirs = set(done.values_of("drops")), set(advised.values_of("drops"))
    shared = ours & theirs
    if not shared or done.values_of("file") == advised.values_of("file"):
        return bool(shared)
    if len(shared) < SHARED_ELSEWHERE and shared.isdisjoint(names.names):
        return False
    return 2 * len(shared) / (len(ours) + len(theirs)) >= SHARED_CHANGE


def _places(action: RemedyAction) -> frozenset[str]:
    """The paths that were right, by their last parts."""
    words = [word for word in action.values_of("to") if not word.isdecimal()]
    paths = {word for word in words if "/" in word or _FILE_NAME.search(word)}
    if words and _PLACEHOLDER_OF_PATH.match(action.pattern.target):
        paths.add(words[-1])
    tails = (posixpath.normpath(path).strip("/").split("/")[-_PARTS_COMPARED:] for path in paths)
    return frozenset("/".join(tail) for tail in tails) - {"", ".", ".."}
