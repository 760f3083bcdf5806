"""Relates recoveries that were found to the current error, and words them for it."""

import posixpath
import re
import sys
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from math import fsum
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from contextgraph.advising.channels import (
    SAME_TEMPLATE,
    Query,
    about_another,
    newest_first,
    signature_level,
)
from contextgraph.advising.gate import (
    CONSERVATIVE,
    Credits,
    Gate,
    RemedyFeatures,
    credits_for,
    may_be_shown,
    probability,
)
from contextgraph.model import (
    EXCEPTIONS,
    Agreement,
    ChannelRank,
    ErrorSignature,
    ErrorSolution,
    Family,
    FittedGate,
    Methodology,
    MethodologyStatus,
    RecoveryCandidate,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    ScopeLevel,
    SignatureLevel,
    State,
    Suggestion,
    Why,
)
from contextgraph.ports import Store
from contextgraph.ranking import (
    FixedCounts,
    bm25,
    ranks_in,
    word_counts,
)
from contextgraph.text import quoted_names
from contextgraph.trace import (
    ATTRIBUTE,
    CURRENT_FOLDER,
    ELSEWHERE,
    ITS_ARGUMENT,
    MISSING_MODULE,
    MISSING_PROGRAM,
    THE_REPOSITORY,
    AdviceKey,
    Construct,
    Edited,
    advice_id,
    advice_key,
    circumstances_of,
    could_apply,
    describe_remedy,
    edited,
    is_common_setting,
    is_general,
    is_hazardous,
    is_import,
    is_never_installed,
    is_own_module,
    is_retry,
    names_in,
    shows_cause,
)

_REMEMBERED = 4_096
# How much less a recovery counts for each circumstance in which its error was another.
_OTHERWISE = 0.3
_IMPORT_OF_ATTRIBUTE = Edited(Construct.IMPORT, ATTRIBUTE)
_WITH_PATH = frozenset(
    {RemedyKind.OPEN, RemedyKind.SEARCH, RemedyKind.RUN, RemedyKind.USE, RemedyKind.CREATE}
)
# What one tool of an agent does not find another may be about to create.
_OF_TOOLS = frozenset({Family.NOT_FOUND, Family.TOOL_USAGE})


Remedy: TypeAlias = tuple[RemedyAction, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A *remedy* as it may be shown, with its *description* and what makes it the same as others.

    The *key* has the pattern of each action, by which independent runs agree; where that says too
    little, the action without its numbers.
    """

    remedy: Remedy
    key: AdviceKey
    description: str

    def only(self, part: RemedyAction | RemedyPattern) -> "Form":
        """That action of the remedy whose key is *part*, by itself."""
        return _form((self.remedy[self.key.index(part)],))


class FoundRecovery(NamedTuple):
    """A recovery that may help, and in which form.

    *form* is in the words of the project where *is_near*: in the repository that asks, and not
    about other names; else in general terms. *is_exact*: the message is the same, too. *relevance*
    is BM25 for the message of the error; *similarity* is BM25 for the first line of the action that
    failed, or *relevance* where that is not known. *weight*, at most 1, says how far the
    circumstances of both errors agree. *is_withheld*: it is not advised, since it destroys work,
    avoids an exception in place of solving it, installs a program that then never worked, or failed
    before in this run. *is_supported*: the state shows what it takes for granted.
    """

    candidate: RecoveryCandidate
    form: Form
    level: SignatureLevel
    is_near: bool
    is_exact: bool
    relevance: float
    similarity: float
    weight: float
    is_withheld: bool
    is_supported: bool


class _Forms:
    """What *actions* say for any query, in the forms that are needed."""

    def __init__(self, actions: Remedy) -> None:
        self._actions = actions

    @cached_property
    def near(self) -> Form:
        """In the words of its project."""
        return _form(_of_same_repository(self._actions))

    @cached_property
    def near_about_others(self) -> Form:
        """In the words of its project, without paths: those of this state differ."""
        return _form(tuple(map(_without_path, self.near.remedy)))

    @cached_property
    def general(self) -> Form:
        """In general terms."""
        return _form(_general(self._actions))

    @cached_property
    def is_retry(self) -> bool:
        """Whether all that was done was to repeat what had failed."""
        return is_retry(self._actions)

    @cached_property
    def is_hazardous(self) -> bool:
        """Whether it is never advice."""
        return is_hazardous(self._actions)


class _Checks:
    """Cached checks of wordings and circumstances against the state of *query*."""

    def __init__(self, query: Query, signature: ErrorSignature) -> None:
        state = query.state
        current = frozenset(circumstances_of(signature, state.last_action, state.last_outcome))
        self.weight_of = cache(partial(_weight, signature.family, current))
        self.could_help = cache(partial(_could_help, query))
        self.has_evidence = cache(partial(_has_evidence, query))
        self.failed = cache(partial(_failed_before, query))


def recoveries_for(
    query: Query, signature: ErrorSignature, candidates: Iterable[RecoveryCandidate]
) -> Iterator[FoundRecovery]:
    """The *candidates* whose remedy may apply to the error of *query*, with their evidence."""
    checks = _Checks(query, signature)
    repo = query.state.repo.casefold()
    for candidate, about, score, similar in _scored(query, signature, candidates):
        is_near = candidate.repo.casefold() == repo and not about_another(signature, candidate)
        form = _near_form(query, signature, candidate, about) if is_near else about.general
        if checks.could_help(form) and (weight := checks.weight_of(candidate.circumstances)):
            level = signature_level(signature, candidate)
            is_exact = is_near and candidate.message == signature.message and level in SAME_TEMPLATE
            avoids = candidate.workaround and signature.family in EXCEPTIONS
            is_withheld = (
                avoids or _was_of_no_use(candidate) or checks.failed(form) or about.is_hazardous
            )
            yield FoundRecovery(
                candidate,
                form,
                level,
                is_near,
                is_exact,
                score,
                similar,
                weight,
                is_withheld,
                checks.has_evidence(form, _names_same(query, candidate), is_near),
            )


def _scored(
    query: Query, signature: ErrorSignature, candidates: Iterable[RecoveryCandidate]
) -> Iterator[tuple[RecoveryCandidate, _Forms, float, float]]:
    """Those that have something to say, and how similar their words are to message and attempt."""
    known = [
        (candidate, about)
        for candidate in candidates
        if not (about := _forms(candidate.actions)).is_retry
    ]
    texts = [_counted(candidate.words) for candidate, _ in known]
    relevance = bm25(word_counts(signature.message), texts)
    attempt = word_counts(query.state.last_action.partition("\n")[0])
    similarity = bm25(attempt, texts) if attempt else relevance
    for (candidate, about), score, similar in zip(known, relevance, similarity, strict=True):
        yield candidate, about, score, similar


def advice_ids(candidate: RecoveryCandidate) -> frozenset[str]:
    """The advice that *candidate* can be shown as: in either form, each action alone or all."""
    about = _forms(candidate.actions)
    if about.is_retry:
        return frozenset()
    remedies = {about.near.remedy, about.general.remedy}
    parts = {(action,) for remedy in remedies for action in remedy}
    return frozenset(advice_id(candidate, remedy) for remedy in remedies | parts)


def _weight(family: Family, ours: frozenset[str], circumstances: tuple[str, ...]) -> float:
    """How far the circumstances of two errors agree, 0 to 1; what is known of one alone half."""
    theirs = frozenset(circumstances)
    if not (ours and theirs):
        return 1.0
    is_other_tool = family in _OF_TOOLS and ours.isdisjoint(theirs)
    return 0.0 if is_other_tool else _OTHERWISE ** (len(ours ^ theirs) / 2)


@lru_cache(_REMEMBERED)
def _counted(words: str) -> FixedCounts:
    return FixedCounts(words.split())


_forms = lru_cache(_REMEMBERED)(_Forms)


@lru_cache(_REMEMBERED)
def _form(remedy: Remedy) -> Form:
    return Form(remedy, advice_key(remedy), describe_remedy(remedy))


def _of_same_repository(actions: Remedy) -> Remedy:
    """*actions* as they were done, but in general terms where these say all that there is.

    Of an edit sent again only what is of edits is kept.
    """
    if any(action.kind is RemedyKind.RESEND for action in actions):
        of_edits = (RemedyKind.RESEND, RemedyKind.OPEN)
        return tuple(action for action in _general(actions) if action.kind in of_edits) or actions
    return tuple(
        action.general if _is_complete(action.pattern) and is_general(action.pattern) else action
        for action in actions
    )


def _near_form(
    query: Query, signature: ErrorSignature, candidate: RecoveryCandidate, about: _Forms
) -> Form:
    """The wording of *about* in the repository of *candidate*, at an error of *signature*.

    Where the message names no path, the action that failed decides.
    """
    ours, theirs = quoted_names(signature.message), quoted_names(candidate.message)
    if ours and theirs:
        is_about_others = frozenset(ours).isdisjoint(theirs)
    else:
        replaced = about.near.remedy[0].replaced if about.near.remedy else ""
        is_about_others = bool(replaced) and replaced not in query.state.last_action
    return about.near_about_others if is_about_others else about.near


def _without_path(action: RemedyAction) -> RemedyAction:
    has_path = action.kind in _WITH_PATH and "<" in action.pattern.target
    return action.general if has_path and is_general(action.pattern) else action


def _is_complete(pattern: RemedyPattern) -> bool:
    """True where nothing but what *pattern* says matters: what was typed is of another task."""
    if pattern.kind is RemedyKind.USE:
        replaced = pattern.replaced.removesuffix(ITS_ARGUMENT)
        return "<" not in f"{pattern.target}{replaced}"
    return pattern.target == CURRENT_FOLDER


def _general(actions: Remedy) -> Remedy:
    """What *actions* come to in another repository: nothing of what is of one project."""
    return tuple(action.general for action in actions if is_general(action.pattern))


def _could_help(query: Query, form: Form) -> bool:
    """True for what says something, of which nothing contradicts the state of *query*."""
    actions = form.remedy
    return bool(form.description) and not any(
        _contradicts(query, action.pattern) for action in actions
    )


def _has_evidence(query: Query, form: Form, is_same_name: bool, is_near: bool) -> bool:
    return all(
        is_supported(query, action, is_same_name=is_same_name, is_near=is_near)
        for action in form.remedy
    )


def _failed_before(query: Query, form: Form) -> bool:
    return any(was_tried(query, action) for action in form.remedy)


def _was_of_no_use(candidate: RecoveryCandidate) -> bool:
    return candidate.error_type in MISSING_PROGRAM and not candidate.verified


def _names_same(query: Query, candidate: RecoveryCandidate) -> bool:
    """True where the first name in both messages is the same."""
    names = names_in(candidate.error_type, candidate.message).names
    return bool(names) and names[:1] == query.names.names[:1]


def _contradicts(query: Query, pattern: RemedyPattern) -> bool:
    """True for what cannot help in this state.

    The project's own module is not to be installed, nor one whose folder is shown; an attribute
    that a class lacks is not to be imported, and what the attempt did not do cannot be replaced.
    """
    state, names = query.state, query.names
    if pattern.kind is RemedyKind.INSTALL:
        module = names.fill(pattern.target)
        is_shown = f"/{module}/" in state.last_outcome
        never = is_never_installed(names.fill(MISSING_MODULE), state.last_action)
        return never or is_shown or is_own_module(module, state.repo, state.open_file)
    if edited(pattern.target) == _IMPORT_OF_ATTRIBUTE and query.signature is not None:
        return not query.signature.message.startswith("module ")
    return not could_apply(pattern, state.last_action, names, state.last_outcome)


# In Python modules and what annotations name are the usual imports; other names may be anything.
_IMPORTABLE = sys.stdlib_module_names | frozenset(typing.__all__)
# A file that is not found may be gone, or not be made yet; what an error names may be needed, and
# then the edit that drops it (without a target) only hides the error.
_NEVER_IN_GENERAL = (ELSEWHERE, "")
_LOADED_BY_NAME = re.compile(r"\b(?:import_module|__import__|_gcd_import)\(")
_IMPORT = re.compile(r"^[>\s]*((?:from\s+\S+\s+)?import\b[^\n]*)", re.MULTILINE)
# The places of a traceback, of Python and of pytest, from the outermost to the innermost.
_PLACES = re.compile(r'^\s*File "([^"\n]+)", line \d+|^([\w./-]+\.py):\d+: ', re.MULTILINE)


def is_supported(query: Query, action: RemedyAction, *, is_same_name: bool, is_near: bool) -> bool:
    """False where *action* needs evidence that the state of *query* does not have.

    *is_same_name*: what was cleared by it named the same thing as the error of *query*; *is_near*:
    in the same repository.
    """
    state, pattern = query.state, action.pattern
    if not _has_file(state, action) or not shows_cause(pattern, state):
        return False
    if action.is_general and pattern.target in _NEVER_IN_GENERAL:
        return False
    if is_import(pattern.target):
        return (is_same_name and is_near) or _is_importable(query, pattern)
    if pattern.kind is RemedyKind.INSTALL and pattern.target == MISSING_MODULE:
        return (is_same_name and is_near) or _is_imported(query)
    if pattern.kind is RemedyKind.SET_ENV and not is_common_setting(pattern):
        return pattern.target.partition("=")[0] in _shown(state)
    if pattern.kind is RemedyKind.CONFIGURE:
        is_done = f"{pattern.target}(" in state.last_action
        return not is_done and pattern.target.partition(".")[0] in _shown(state)
    timed_out = query.signature is not None and query.signature.family is Family.TIMEOUT
    return not (timed_out and pattern.kind is RemedyKind.OPEN)


def was_tried(query: Query, action: RemedyAction) -> bool:
    """True where the run did what *action* says before, and got no further."""
    state, pattern = query.state, action.pattern
    if any(line in state.failed_actions for line in (action.target, *action.values_of("command"))):
        return True
    if pattern.kind is RemedyKind.SET_ENV:
        return f"{action.target} {state.last_action}" in state.failed_actions
    if pattern.kind is RemedyKind.INSTALL:
        package = rf"(?<![\w-]){re.escape(query.names.fill(action.target))}(?![\w-])"
        what = r"\s\.(?=[\s[]|$)" if pattern.target == THE_REPOSITORY else package
        installing = re.compile(rf"\binstall\b.*{what}")
        return any(map(installing.search, state.failed_actions))
    if pattern.target == CURRENT_FOLDER:
        return any(_is_wider(tried, state.last_action) for tried in state.failed_actions)
    if not (pattern.kind is RemedyKind.USE and pattern.replaced and state.last_action):
        return False
    replaced = rf"(?<![\w-]){re.escape(pattern.replaced)}\b"
    instead = re.sub(replaced, lambda _: pattern.target, state.last_action)
    return instead != state.last_action and instead in state.failed_actions


def _is_wider(look: str, narrow: str) -> bool:
    """True where *look* says all that *narrow* says but for some arguments, or names the folders
    that those are in; options apart.
    """
    wide, wanted = (
        [word for word in line.split() if not word.startswith("-")] for line in (look, narrow)
    )
    if wide[:1] != wanted[:1]:
        return False
    return set(wide) < set(wanted) or {*wide[1:]} == {*map(posixpath.dirname, wanted[1:])}


def _is_importable(query: Query, pattern: RemedyPattern) -> bool:
    """True for a module of the language or the project, or a name that the task imports."""
    change = edited(pattern.target)
    name = query.names.fill(change.name).partition(".")[0] if change else ""
    if name in _IMPORTABLE or is_own_module(name, query.state.repo):
        return True
    return _imports(query.state.task_description, name)


def _is_imported(query: Query) -> bool:
    """True where the task or a file of the project imports the module that was not found.

    Agents invent modules in scripts of their own; what a setting or an argument names may be
    anything.
    """
    state, module = query.state, query.names.fill(MISSING_MODULE)
    if query.signature is not None and query.signature.error_type in MISSING_PROGRAM:
        return True
    if _imports(state.task_description, module):
        return True
    if _LOADED_BY_NAME.search(state.last_outcome):
        return _imports(state.last_outcome, module)
    places = _PLACES.findall(state.last_outcome)
    place = "".join(places[-1]) if places else ""
    return not place or ("/" in place and not _is_script(place, state.last_action))


def _imports(text: str, name: str) -> bool:
    """True where a line of *text* imports *name*, or from it."""
    return bool(name) and any(
        re.search(rf"\b{re.escape(name)}\b", statement) for statement in _IMPORT.findall(text)
    )


def _is_script(path: str, command: str) -> bool:
    """True for a file that *command* names without a folder: agents write their scripts there."""
    name = re.escape(posixpath.basename(path))
    return re.search(rf"(?<![\w/.-])(?:\./)?{name}(?!\w)", command) is not None


def _shown(state: State) -> str:
    return f"{state.last_action}\n{state.last_outcome}\n{state.current_error}"


def _has_file(state: State, action: RemedyAction) -> bool:
    """False where the state names no file as *action* edits."""
    shown = f"{_shown(state)}\n{state.open_file}\n{state.task_description}"
    return all(posixpath.basename(file) in shown for file in action.values_of("file"))


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
