"""Evidence: what earlier runs did about an error, what is the same of it, how probable it is."""

import posixpath
import re
import sys
import typing
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache, cached_property, lru_cache, partial
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from contextgraph.advising.channels import (
    SAME_TEMPLATE,
    Query,
    about_another,
    harness,
    signature_level,
)
from contextgraph.advising.counts import Contribution, Counts, likenesses_of
from contextgraph.advising.gate import NO_CREDITS, Credits, is_open, probability, ranked_counts
from contextgraph.model import (
    EXCEPTIONS,
    ChannelRank,
    ErrorSignature,
    Family,
    Likeness,
    Methodology,
    PipelineStep,
    RecoveryCandidate,
    Remedy,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    ScopeLevel,
    SignatureLevel,
    Silence,
    State,
    Why,
)
from contextgraph.model.values import replace
from contextgraph.text import FixedCounts, bm25, quoted_names, regex, word_counts
from contextgraph.text.strings import is_cut
from contextgraph.trace import (
    EDITED,
    IMPORTS,
    MISSING_PROGRAM,
    Construct,
    Edited,
    RemedyKey,
    advice_id,
    circumstances_of,
    could_apply,
    describe_remedy,
    is_common_setting,
    is_general,
    is_hazardous,
    is_never_installed,
    is_own_module,
    is_retry,
    names_in,
    remedy_key,
    shows_cause,
    template_of,
)
from contextgraph.trace.advice import INSTEAD, Term
from contextgraph.trace.applicability import detour

NAMED_RUNS = 10
# A package may lie in a folder of its name; two folders do not repeat themselves.
_LEAST_REPEATED = 2
_REMEMBERED = 4_096
# Commands of the interface of SWE-agent, which no shell has.
AGENT_TOOLS = frozenset(
    "open goto create edit scroll_up scroll_down search_dir search_file find_file submit".split()
)
# How much an instance that came with the package counts beside one of the memory.
_SHIPPED = 0.5
# Tasks of a repository that cleared an error: then what comes with the package is not asked.
_ENOUGH_HERE = 2
_OF_ANOTHER = "it helped another agent"
_OF_ANOTHER_REPOSITORY = "it helped in another repository"
# Done by this agent, in this repository or in another.
_OWN = frozenset({(True, True), (True, False)})
# The fragment, error and step of a recovery.
_Key: TypeAlias = tuple[str, str, int]
recovery_key = attrgetter("fragment_id", "error_id", "error_step")
# How much less a recovery counts for each circumstance in which its error was another.
_OTHERWISE = 0.3
_SUBCOMMAND = regex(r"[A-Za-z][A-Za-z_-]*")
_IMPORT_OF_ATTRIBUTE = Edited(Construct.IMPORT, Term.ATTRIBUTE).target
_WITH_PATH = frozenset(
    {RemedyKind.OPEN, RemedyKind.SEARCH, RemedyKind.RUN, RemedyKind.USE, RemedyKind.CREATE}
)
# What one tool of an agent does not find another may be about to create.
_OF_TOOLS = frozenset({Family.NOT_FOUND, Family.TOOL_USAGE})
Actions: TypeAlias = tuple[RemedyAction, ...]


class Wording(Struct, frozen=True, eq=False):
    """Some *actions* as they may be said, with their *description*.

    The *key* decides which remedies are the same: see `contextgraph.trace.advice`.
    """

    actions: Actions
    key: RemedyKey
    description: str

    def only(self, part: RemedyAction | RemedyPattern) -> "Wording":
        """Return the remedy reduced to the action with the key *part*."""
        return _wording((self.actions[self.key.index(part)],))


class _Equivalent(NamedTuple):
    """Recoveries of earlier runs (*done*) that say the same about the error at hand.

    Their *wording* is in the words of the project where *is_near*: in the repository that asks, and
    not about other names; else in general terms. *parts* is all that they did. *weight*, at most 1,
    says how far the circumstances of both errors agree: with 0 they are no evidence. *silence* is
    why they are never advised, empty where they may be. *is_supported*: the state shows what they
    take for granted.
    *order* is by support, then runs of the memory, nearness and likeness.
    """

    wording: Wording
    parts: RemedyKey
    level: SignatureLevel
    is_near: bool
    likenesses: tuple[Likeness, ...]
    weight: float
    silence: str
    is_supported: bool
    order: tuple[object, ...]
    done: list[RecoveryCandidate]

    @property
    def place(self) -> tuple[object, _Key]:
        """Their order, then that of the first of them."""
        return self.order, min(map(recovery_key, self.done))


class _Wordings:
    """The wordings of some *actions*, made when they are needed."""

    def __init__(self, actions: Actions) -> None:
        self.is_retry = is_retry(actions)
        self.key = remedy_key(actions)  # however they are worded
        self._actions = actions

    @cached_property
    def near(self) -> Wording:
        """In the words of its project."""
        return _wording(_as_done(self._actions))

    @cached_property
    def near_about_others(self) -> Wording:
        """In the words of its project, without paths: those of this state differ."""
        return _wording(
            tuple(
                action.general
                if action.kind in _WITH_PATH
                and "<" in action.pattern.target
                and is_general(action.pattern)
                else action
                for action in self.near.actions
            )
        )

    @cached_property
    def general(self) -> Wording:
        """In general terms."""
        return _wording(_general(self._actions))


def found(query: Query, candidates: Iterable[RecoveryCandidate]) -> tuple[list[Remedy], Counts]:
    """Return the remedies that *candidates* are for the error of *query*, and their counts.

    Each candidate is given once. Remedies that are never advised come last. Repeating what failed
    is no remedy.
    """
    related, contributions = _related(query, candidates)
    groups = _same(related)
    remedies = []
    for group in groups:
        remedy = _remedy(query, group)
        remedies.append(remedy)
        # A remedy that is never advised is counted apart.
        counted_as = remedy.advice, remedy.silence is not None
        for one in group:
            instances = {done.instance_id for done in one.done}
            contributions.append(
                Contribution(counted_as, one.parts, instances, one.likenesses, one.weight)
            )
    return remedies, Counts(contributions)


def _related(
    query: Query, candidates: Iterable[RecoveryCandidate]
) -> tuple[list[_Equivalent], list[Contribution]]:
    """Relate *candidates* to the error of *query*.

    Those apart that only repeated what failed: their tasks cleared it, too.
    """
    signature, state = query.signature, query.state
    if signature is None:
        return [], []
    repo = state.repo.casefold()
    levels = _levels(signature, repo, candidates)
    # By identity, as equal actions of a store are one object: hundreds are slow to hash.
    actions_of = {id(one.actions): one.actions for one, _ in levels}
    wordings = {key: _wordings(actions) for key, actions in actions_of.items()}
    farther = _farther(signature, state, levels)
    ours = circumstances_of(signature, state.last_action, state.last_outcome)
    relating = _Relating(
        query,
        signature,
        ours,
        cache(partial(_weight, signature.family, frozenset(ours))),
        cache(partial(_fitting, query)),
        cache(partial(_never, query)),
        cache(partial(is_supported, query, _Shown.by(state))),
    )
    known, repeated = [], []
    for (one, level), distance in zip(levels, farther, strict=True):
        if wordings[id(one.actions)].is_retry:
            likenesses = likenesses_of(query, one, level, ours)
            repeated.append(Contribution(None, (), (one.instance_id,), likenesses, weight=0.0))
        else:
            known.append((one, level, distance))
    attempt = word_counts(state.last_action.partition("\n")[0] or signature.message)
    similarities = bm25(attempt, [_counted(one.words) for one, _, _ in known])
    # Hundreds of runs may have met one error and done the same about it.
    groups: dict[tuple[object, ...], _Equivalent] = {}
    for (candidate, level, distance), similarity in zip(known, similarities, strict=True):
        actions, is_here = id(candidate.actions), candidate.repo.casefold() == repo
        said = (
            actions, candidate.error_id, candidate.message, candidate.words,
            candidate.circumstances, candidate.verified, level, is_here, distance,
            not candidate.trajectory_id,
        )  # fmt: skip
        about = groups.get(said)
        if about is None:
            about = groups[said] = relating.equivalent(
                candidate, wordings[actions], level, similarity, distance, is_here=is_here
            )
        about.done.append(candidate)
    return [*groups.values()], repeated


class _Relating(NamedTuple):
    """Relates recoveries to the error *signature* of *query*, met in circumstances as *ours*.

    The functions are those of this module, each asked once about a wording.
    """

    query: Query
    signature: ErrorSignature
    ours: tuple[str, ...]
    weight_of: Callable[[tuple[str, ...]], float]
    fitting: Callable[[Wording, bool], tuple[Wording, str]]
    never: Callable[[Wording, bool], str]
    is_supported: Callable[[Wording, bool], bool]

    def equivalent(
        self,
        done: RecoveryCandidate,
        about: _Wordings,
        level: SignatureLevel,
        similarity: float,
        farther: str,
        *,
        is_here: bool,
    ) -> _Equivalent:
        """Return what *done*, worded by *about*, says of the error at *level*.

        *farther* is why it does not count where something nearer is known, else empty. *is_here*:
        it is of the repository that asks.
        """
        query = self.query
        is_near = is_here and not about_another(self.signature, done)
        wording = _near_wording(query, self.signature, done, about) if is_near else about.general
        wording, silence = self.fitting(wording, is_near)
        silence = silence or farther
        weight = 0.0 if silence else self.weight_of(done.circumstances)
        if not done.trajectory_id:
            weight *= _SHIPPED
        if not (silence or weight):
            silence = "it helped another tool"
        is_idle = done.error_type in MISSING_PROGRAM and not done.verified
        # Who names no repository may be in any, and in that one.
        is_asked = is_near or not query.state.repo
        names = names_in(done.error_type, done.message).names if is_asked else ()
        is_same = bool(names) and names[:1] == query.names.names[:1]
        likenesses = likenesses_of(query, done, level, self.ours)
        is_by_another = any(one.kind is RemedyKind.USE for one in wording.actions)
        is_fitting = self.is_supported(wording, is_same) and not (
            is_by_another and _is_of_another_program(self.signature, done, level)
        )
        order = (
            not is_fitting,
            not done.trajectory_id,  # it came with the package
            not is_near,
            level not in SAME_TEMPLATE,
            -similarity,
            -len(likenesses),
        )
        return _Equivalent(
            wording if wording.key else about.near,
            about.key,
            level,
            is_near,
            likenesses,
            weight,
            silence or self.never(wording, is_idle),
            is_fitting,
            order,
            [],
        )


def _farther(
    error: ErrorSignature,
    state: State,
    levels: Sequence[tuple[RecoveryCandidate, SignatureLevel]],
) -> list[str]:
    """Return for each of *levels* why it does not count, done farther away than what is known.

    What another harness or machine needed counts where no run of this agent cleared such an error;
    in the repository of *state* where none cleared this one there, and then it alone.
    """
    repo, own = state.repo.casefold(), {"", harness(state.agent)}
    if own == {""}:
        own.update(harness(one.agent) for one, _ in levels)
    places = [
        (
            harness(one.agent) in own,
            level in SAME_TEMPLATE
            and one.repo.casefold() == repo
            and not about_another(error, one),
        )
        for one, level in levels
    ]
    of_runs = {
        place
        for place, (one, level) in zip(places, levels, strict=True)
        if one.trajectory_id and level is not SignatureLevel.FAMILY
    }
    has_own_here, has_own = (True, True) in of_runs, not of_runs.isdisjoint(_OWN)
    if has_own_here or not has_own:
        return ["" if is_own or not has_own else _OF_ANOTHER for is_own, _ in places]
    away = _OF_ANOTHER_REPOSITORY if (False, True) in places else ""
    return ["" if is_here else away if is_own else _OF_ANOTHER for is_own, is_here in places]


def _levels(
    signature: ErrorSignature, repo: str, candidates: Iterable[RecoveryCandidate]
) -> list[tuple[RecoveryCandidate, SignatureLevel]]:
    """Return *candidates* and how exactly their errors agree with *signature*.

    What comes with the package is left out where enough tasks of *repo* cleared such an error.
    """
    of_error: dict[tuple[str, str | None], SignatureLevel] = {}
    levels = []
    for one in candidates:
        level = of_error.get((one.error_id, one.location))
        if level is None:
            level = signature_level(signature, one)
            of_error[one.error_id, one.location] = level
        levels.append((one, level))
    tasks_here = {
        one.instance_id
        for one, level in levels
        if level in SAME_TEMPLATE and one.trajectory_id and one.repo.casefold() == repo
    }
    if len(tasks_here) >= _ENOUGH_HERE:
        levels = [(one, level) for one, level in levels if one.trajectory_id]
    return levels


def _fitting(query: Query, wording: Wording, is_near: bool) -> tuple[Wording, str]:
    """Return *wording* without ways that lead nowhere, and why it has nothing to say, or empty."""
    ways = tuple([action for action in wording.actions if not _is_no_way(query, action)])
    if not ways and wording.actions:
        return wording, "no folder has what is missing"
    if ways != wording.actions:
        wording = _wording(ways)
    return wording, _unfit(query, wording, is_near)


def _unfit(query: Query, wording: Wording, is_near: bool) -> str:
    """Return why *wording* has nothing to say in the state of *query*; empty where it has."""
    if not wording.description:
        return "it is specific to another repository"
    if any(_contradicts(query, action.pattern) for action in wording.actions):
        return "it does not fit the last command or the error"
    tools: set[str] = set()
    for action in wording.actions:
        if action.pattern.target in (Term.FILE_TO_EDIT, Term.FILE_TO_LOOK_AT):
            tools.add("open")
        else:
            words = (action.target, action.pattern.target, *action.pattern.parameters)
            tools |= AGENT_TOOLS.intersection(word.partition(" ")[0] for word in words)
    if tools and query.state.tools:
        named = (*query.state.failed_actions, query.state.last_action)
        known = {*query.state.tools, *(line.partition(" ")[0] for line in named)}
        if tools.isdisjoint(known):
            return f"it needs the tool {min(tools)}, which this agent does not have"
    is_of_another = is_near and any(_is_of_another_task(query, one) for one in wording.actions)
    return "it was for another task" if is_of_another else ""


def _is_no_way(query: Query, action: RemedyAction) -> bool:
    """Return whether *action* enters a folder that has nothing to do with the error of *query*.

    No folder has a program that is not installed, but the root has the modules of the project. A
    run that entered `a/b/a/b` was in `a/b` all the time.
    """
    error, state = query.signature, query.state
    if error is None or action.kind is not RemedyKind.CWD:
        return False
    parts = action.target.strip("/").split("/")
    for length in range(_LEAST_REPEATED, len(parts) // 2 + 1):
        if parts[-2 * length : -length] == parts[-length:]:
            return True
    program = "".join(query.names.names[:1])
    is_missing = error.error_type in MISSING_PROGRAM and "/" not in program
    return is_missing and not is_own_module(
        program, state.repo, state.open_file, state.repo_summary
    )


def _is_of_another_task(query: Query, action: RemedyAction) -> bool:
    """Return whether *action* is a command that failed in another way and does something else.

    As reading another file, other tests, or `git -C a/b diff` in place of `git -C b diff` where
    `git -C b add` failed: what differs from the command that failed is its task.
    """
    attempt = query.state.last_action
    if action.kind is not RemedyKind.RUN or not action.replaced or action.replaced in attempt:
        return False
    program, *given = action.target.split() or ("",)
    failed, replaced = attempt.split(), action.replaced.split()
    if [program] != failed[:1]:
        return False
    files = {posixpath.basename(word.rstrip("/")) for word in given if "/" in word or "." in word}
    use = _subcommand(given)
    is_other_use = use != "" and [program] == replaced[:1] and use in replaced and use not in failed
    return is_other_use or (
        bool(files) and files.isdisjoint(posixpath.basename(word.rstrip("/")) for word in failed)
    )


def _subcommand(arguments: Sequence[str]) -> str:
    """Return the first of *arguments* that is neither an option nor its value; empty for a path."""
    before = ""
    for word in arguments:
        is_bare = _SUBCOMMAND.fullmatch(word) is not None
        if not word.startswith("-") and (is_bare or not before.startswith("-")):
            return word if is_bare else ""
        before = word
    return ""


def _never(query: Query, wording: Wording, is_idle: bool) -> str:
    """Return why *wording*, which is evidence of another way, is not said; empty where it may be.

    *is_idle*: the program was missing, and never ran. What is said counts: in general terms the
    text of an edit is not.
    """
    if is_idle:
        return "what it installed never worked afterwards"
    if is_hazardous(wording.actions):
        return "it repeats a command that is not known to be harmless"
    is_tried = any(was_tried(query, action) for action in wording.actions)
    return "the run tried it, and got no further" if is_tried else ""


def advice_ids(candidate: RecoveryCandidate) -> frozenset[str]:
    """Return ids of advice that *candidate* can be shown as: both forms, each action or all."""
    about = _wordings(candidate.actions)
    if about.is_retry:
        return frozenset()
    remedies = {about.near.actions, about.general.actions}
    parts = {(action,) for remedy in remedies for action in remedy}
    return frozenset(advice_id(candidate, remedy) for remedy in remedies | parts)


def _weight(family: Family, ours: frozenset[str], circumstances: tuple[str, ...]) -> float:
    """Return the agreement of circumstances of two errors, 0 to 1; known of one alone: half."""
    theirs = frozenset(circumstances)
    if not (ours and theirs):
        return 1.0
    is_other_tool = family in _OF_TOOLS and ours.isdisjoint(theirs)
    return 0.0 if is_other_tool else _OTHERWISE ** (len(ours ^ theirs) / 2)


@lru_cache(_REMEMBERED)
def _counted(words: str) -> FixedCounts:
    return FixedCounts(words.split())


_wordings = lru_cache(_REMEMBERED)(_Wordings)


@lru_cache(_REMEMBERED)
def _wording(actions: Actions) -> Wording:
    return Wording(actions, remedy_key(actions), describe_remedy(actions))


def _as_done(actions: Actions) -> Actions:
    """*actions* as they were done, but in general terms where these say all that there is.

    Of an edit sent again only what is of edits is kept. Commands that are only examples are left
    out where they cannot be said.
    """
    if any(action.kind is RemedyKind.RESEND for action in actions):
        of_edits = (RemedyKind.RESEND, RemedyKind.OPEN)
        done = tuple(action for action in _general(actions) if action.kind in of_edits) or actions
    else:
        done = tuple(
            action.general
            if _is_complete(action.pattern) and is_general(action.pattern)
            else action
            for action in actions
        )
    if not is_hazardous(done):
        return done
    return tuple(
        replace(
            action, parameters=tuple(pair for pair in action.parameters if pair[0] != "command")
        )
        if action.kind in (RemedyKind.SET_ENV, RemedyKind.CREATE)
        else action
        for action in done
    )


def _near_wording(
    query: Query, signature: ErrorSignature, candidate: RecoveryCandidate, about: _Wordings
) -> Wording:
    """The wording of *about* in the repository of *candidate*, at an error of *signature*.

    Where the message names no path, the actions that failed decide. One action that may not be said
    as it was done is worded in general terms, but for a package, which these name, too.
    """
    ours, theirs = quoted_names(signature.message), quoted_names(candidate.message)
    if ours and theirs:
        is_about_others = frozenset(ours).isdisjoint(theirs)
    else:
        replaced = [one.replaced for one in about.near.actions if one.replaced]
        last = query.state.last_action
        is_about_others = bool(replaced) and not any(one in last for one in replaced)
    wording = about.near_about_others if is_about_others else about.near
    if len(wording.actions) != 1 or wording.actions[0].kind is RemedyKind.INSTALL:
        return wording
    is_better = is_hazardous(wording.actions) and about.general.description
    return about.general if is_better else wording


def _is_complete(pattern: RemedyPattern) -> bool:
    """True where nothing but what *pattern* says matters: what was typed is of another task."""
    if pattern.kind is RemedyKind.USE:
        replaced = pattern.replaced.removesuffix(Term.ITS_ARGUMENT)
        return "<" not in f"{pattern.target}{replaced}"
    return pattern.target == Term.CURRENT_FOLDER


def _general(actions: Actions) -> Actions:
    """Word *actions* for another repository, without anything specific to one project."""
    return tuple(action.general for action in actions if is_general(action.pattern))


def _contradicts(query: Query, pattern: RemedyPattern) -> bool:
    """True for what cannot help in this state.

    The project's own module is not to be installed, nor one whose folder is shown; an attribute
    that a class lacks is not to be imported, and what the attempt did not do cannot be replaced.
    """
    state, names = query.state, query.names
    if pattern.kind is RemedyKind.INSTALL:
        module = names.fill(pattern.target)
        never = is_never_installed(names.fill(Term.MISSING_MODULE), state.last_action)
        is_shown = f"/{module}/" in state.last_outcome
        return (
            never
            or is_shown
            or is_own_module(module, state.repo, state.open_file, state.repo_summary)
        )
    if pattern.target == _IMPORT_OF_ATTRIBUTE and query.signature is not None:
        return not query.signature.message.startswith("module ")
    return not could_apply(pattern, state.last_action, names, state.last_outcome)


# In Python modules and what annotations name are the usual imports; other names may be anything.
_IMPORTABLE = sys.stdlib_module_names | frozenset(typing.__all__)
# A file that is not found may be gone, or not be made yet; what an error names may be needed, and
# then the edit that drops it (without a target) only hides the error.
_NEVER_IN_GENERAL = (Term.ELSEWHERE, "")
_OF_FOLDERS = frozenset(
    {"FileNotFoundError", "ImportError", "ModuleNotFoundError", "NotADirectoryError"}
)
_LOADED_BY_NAME = regex(r"\b(?:import_module|__import__|_gcd_import)\(")
_IMPORT = regex(r"^[>\s]*((?:from\s+\S+\s+)?import\b[^\n]*)", re.MULTILINE)
# The places of a traceback, of Python and of pytest, from the outermost to the innermost.
_PLACES = regex(r'^\s*File "([^"\n]+)", line \d+|^([\w./-]+\.py):\d+: ', re.MULTILINE)


class _Shown(NamedTuple):
    """The texts of a state that may show a name: *here* those of its last step, *all* of them."""

    here: str
    all: str

    @classmethod
    def by(cls, state: State) -> "_Shown":
        """Return the texts of *state*."""
        here = f"{state.last_action}\n{state.last_outcome}\n{state.current_error}"
        return cls(here, f"{here}\n{state.open_file}\n{state.task_description}")


def is_supported(query: Query, shown: _Shown, wording: Wording, is_same: bool) -> bool:
    """Return False if an action of *wording* needs evidence that the state of *query* lacks.

    *is_same*: in the same repository, or one that is not named, it cleared an error about the same
    thing.
    """
    return all(_has_evidence(query, shown, action, is_same) for action in wording.actions)


def _has_evidence(query: Query, shown: _Shown, action: RemedyAction, is_same: bool) -> bool:
    state, pattern = query.state, action.pattern
    if any(posixpath.basename(file) not in shown.all for file in action.values_of("file")):
        return False
    if not shows_cause(pattern, state) or not (is_same or _may_be_its_cause(query, pattern)):
        return False
    if action.is_general and pattern.target in _NEVER_IN_GENERAL:
        return False
    if pattern.target in IMPORTS:
        return is_same or _is_importable(query, pattern)
    if pattern.kind is RemedyKind.INSTALL and pattern.target == Term.MISSING_MODULE:
        return is_same or _is_imported(query)
    if pattern.kind is RemedyKind.SET_ENV and not is_common_setting(pattern):
        return pattern.target.partition("=")[0] in shown.here
    if pattern.kind is RemedyKind.CONFIGURE:
        is_done = f"{pattern.target}(" in state.last_action
        return not is_done and pattern.target.partition(".")[0] in shown.here
    timed_out = query.signature is not None and query.signature.family is Family.TIMEOUT
    return not (timed_out and pattern.kind is RemedyKind.OPEN)


def _may_be_its_cause(query: Query, pattern: RemedyPattern) -> bool:
    """False where the message shows that what *pattern* changes is not the cause of the error.

    No source folder has a module that is not the project's; most exceptions do not come of the
    folder.
    """
    error, state = query.signature, query.state
    is_of_modules = pattern.kind is RemedyKind.SET_ENV and pattern.target.startswith("PYTHONPATH=")
    if is_of_modules and Term.MISSING_MODULE in query.names.roles:
        module = query.names.fill(Term.MISSING_MODULE)
        return is_own_module(module, state.repo, state.open_file, state.repo_summary)
    if pattern.kind is not RemedyKind.CWD or error is None:
        return True
    return error.family not in EXCEPTIONS or error.error_type in _OF_FOLDERS


def _is_of_another_program(
    error: ErrorSignature, done: RecoveryCandidate, level: SignatureLevel
) -> bool:
    """True where *error*, like that of *done* at *level*, is worded in another way.

    Other languages, and other versions of a program, have errors of the same type. A program that
    is missing is named.
    """
    if error.error_type in MISSING_PROGRAM:
        return False
    if error.message == done.message:
        return level is SignatureLevel.FAMILY
    ours, theirs = template_of(error.message, ()), template_of(done.message, ())
    return level not in SAME_TEMPLATE or ours != theirs


def was_tried(query: Query, action: RemedyAction) -> bool:
    """Return True if the run did what *action* says before, without success."""
    state, pattern = query.state, action.pattern
    if any(line in state.failed_actions for line in (action.target, *action.values_of("command"))):
        return True
    if pattern.kind is RemedyKind.SET_ENV:
        is_set = action.target in state.last_action.split()
        return is_set or f"{action.target} {state.last_action}" in state.failed_actions
    if pattern.kind is RemedyKind.INSTALL:
        package = rf"(?<![\w-]){re.escape(query.names.fill(action.target))}(?![\w-])"
        # In general terms from wherever it was run: `pip install -e path/to/it`.
        editable = r"|\s(?:-e|--editable)(?=[\s=])" if action.is_general else ""
        local = rf"(?:\s\.(?=[\s[]|$){editable})"
        what = local if pattern.target == Term.THE_REPOSITORY else package
        installing = re.compile(rf"\binstall\b.*{what}")
        return any(map(installing.search, state.failed_actions))
    if pattern.target == Term.CURRENT_FOLDER:
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
    change = EDITED.get(pattern.target)
    name = query.names.fill(change.name).partition(".")[0] if change else ""
    state = query.state
    if name in _IMPORTABLE or is_own_module(name, state.repo, listed=state.repo_summary):
        return True
    return _imports(state.task_description, name)


def _is_imported(query: Query) -> bool:
    """True where the task or a file of the project imports the module that was not found.

    Agents invent modules in scripts of their own; what a setting or an argument names may be
    anything.
    """
    state, module = query.state, query.names.fill(Term.MISSING_MODULE)
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


def _same(related: Iterable[_Equivalent]) -> list[tuple[_Equivalent, ...]]:
    """Group what is *related* by what it says, best first; those last that are never advised.

    Remedies of several actions count for that one of them which most did alone.
    """
    groups: dict[RemedyKey, list[_Equivalent]] = {}
    never: dict[RemedyKey, list[_Equivalent]] = {}
    by_wording: dict[tuple[Wording, bool], list[_Equivalent]] = {}
    for one in related:
        by_wording.setdefault((one.wording, bool(one.silence)), []).append(one)
    for (wording, is_silenced), worded in by_wording.items():
        (never if is_silenced else groups).setdefault(wording.key, []).extend(worded)
    single = {
        key: len({done.instance_id for one in group for done in one.done})
        for key, group in groups.items()
    }
    for key in [key for key in groups if len(key) > 1]:
        parts = [(part,) for part in key if (part,) in single]
        if parts:
            most = max(parts, key=single.__getitem__)
            for one in groups.pop(key):
                groups[most].append(one._replace(wording=one.wording.only(*most)))
    made = [
        tuple(sorted(group, key=attrgetter("place")))
        for group in (*groups.values(), *never.values())
    ]
    return sorted(made, key=lambda group: (bool(group[0].silence), group[0].place))


def counted(
    query: Query,
    remedies: Sequence[Remedy],
    counts: Counts,
    known: Credits = NO_CREDITS,
    methodologies: Sequence[Methodology] = (),
) -> list[Remedy]:
    """Return *remedies* with their probabilities by *counts*, most probable first.

    What harmed speaks against no other remedy; nor, where runs have several sources, does what one
    instance or source alone supports against the rest, against what the owner did, or against what
    another source did. A remedy that
    one of *methodologies* is about has it.
    """
    harmful = {one.advice for one in remedies if known.is_silenced(one.advice, one.why.sources)}
    alone = {
        one.advice
        for one in remedies
        if not (one.silence or known.is_active(one.why.instances, one.why.sources))
    }
    against = alone - harmful if known.several_sources else set[str]()
    own = {one.advice for one in remedies if one.advice in against and "" in one.why.sources}
    foreign = against - own
    # By several instances; each is of one source.
    by_source = {one.advice: one.why.sources for one in remedies if one.advice in foreign}

    nothing, beside_own, beside_agreed = (
        frozenset([(advice, False) for advice in some])
        for some in (set[str](), harmful | foreign, harmful | against)
    )
    rated = []
    for one in remedies:
        if one.silence or one.advice in harmful:
            left_out = nothing
        elif one.advice in foreign:
            rest = (other for other, of in by_source.items() if {*of}.isdisjoint(one.why.sources))
            left_out = frozenset((advice, False) for advice in harmful.union(rest))
        else:
            left_out = beside_own if one.advice in own else beside_agreed
        key = remedy_key(one.actions)
        counted_as = one.advice, one.silence is not None
        found = counts.of(counted_as, key, left_out)
        likely = scored = 0.0 if one.silence else probability(found, query.model)
        if one.advice in foreign and one.silence is None:
            # A source makes up any number.
            as_one = counts.of(counted_as, key, left_out, as_one=True)
            scored = probability(as_one, query.model)
        score = known.of(one.advice).trust * scored
        order = (
            one.silence is not None,
            one.advice in against,
            one.advice in foreign,
            -(score if one.advice in foreign else likely),
            one.advice if one.advice in foreign else "",
        )
        rated.append((order, one, found, likely, score))
    rated.sort(key=itemgetter(0))
    about = {does.pattern: by for by in reversed(methodologies) for does in by.remedies}
    ranked = []
    for rank, (_, one, found, likely, score) in enumerate(rated, 1):
        by = about.get(one.actions[0].pattern) if len(one.actions) == 1 else None
        why = replace(
            one.why,
            channels=(ChannelRank("error", rank, score),),
            counts=ranked_counts(found, query.model),
            is_active=one.advice not in alone,
        )
        of = by and replace(by, sources=())
        ranked.append(replace(one, why=why, probability=likely, score=score, methodology=of))
    return ranked


def _remedy(query: Query, group: Sequence[_Equivalent]) -> Remedy:
    """Return the remedy that *group*, of one key, did; it is said as the first of them did it."""
    best = group[0]
    done = min(best.done, key=recovery_key)
    others = [done for one in group for done in one.done]
    seen: dict[str, datetime] = {}
    elsewhere: set[str] = set()
    instances: set[str] = set()
    spared = list[int]()
    for one in others:
        instances.add(one.instance_id)
        if one.trajectory_id:
            seen[one.trajectory_id] = one.seen_at
            if not one.advised:  # else it was spared them
                spared.append(detour(one.actions, one.family, one.cleared_step - one.error_step))
        else:
            elsewhere.add(one.instance_id)
    silence = best.silence
    if not (seen or silence) and any(is_open(action.pattern) for action in best.wording.actions):
        silence = "it leaves open what to do, and no run of this memory did it"
    runs = tuple(sorted(sorted(seen), key=seen.__getitem__, reverse=True))
    return Remedy(
        actions=best.wording.actions,
        description=_description(query, best.wording),
        advice=advice_id(query.signature, best.wording.actions),
        fragment_id=done.fragment_id,
        trajectory_id=done.trajectory_id,
        instance_id=done.instance_id,
        repo=done.repo,
        error_type=done.error_type,
        signature_level=best.level,
        why=Why(
            channels=(),
            scope=ScopeLevel.REPO if best.is_near else ScopeLevel.GENERAL,
            support=len(runs) + len(elsewhere),
            trajectories=runs[:NAMED_RUNS],
            signature_level=best.level,
            instances=len(instances),
            sources=tuple(sorted({one.contributor for one in others})),
            saves=sum(spared) / len(spared) if spared else 1.0,
        ),
        workaround=done.workaround,
        is_supported=any(one.is_supported for one in group),
        silence=Silence(PipelineStep.FOUND, silence) if silence else None,
    )


def _description(query: Query, wording: Wording) -> str:
    """Word what was done for the error at hand: it names nothing that only another run typed."""
    attempt = query.state.last_action
    others = [
        action
        for action in wording.actions
        if action.replaced
        and not action.is_general
        and ((attempt and action.replaced not in attempt) or is_cut(action.replaced))
    ]
    if not others:
        return query.names.fill(wording.description)
    actions = tuple(
        [_instead(action) if action in others else action for action in wording.actions]
    )
    return query.names.fill(_described(actions))


_described = lru_cache(_REMEMBERED)(describe_remedy)


@lru_cache(_REMEMBERED)
def _instead(action: RemedyAction) -> RemedyAction:
    """*action* in place of something that is not named."""
    return replace(action, replaced="", parameters=(*action.parameters, INSTEAD))
