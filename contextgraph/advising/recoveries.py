"""Relates recoveries that were found to the current error, and words them for it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from typing import NamedTuple, TypeAlias

from contextgraph.advising.evidence import is_supported, was_tried
from contextgraph.advising.query import Query
from contextgraph.advising.score import (
    SAME_TEMPLATE,
    about_another,
    signature_level,
)
from contextgraph.model import (
    EXCEPTIONS,
    ErrorSignature,
    Family,
    RecoveryCandidate,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    SignatureLevel,
)
from contextgraph.ranking import (
    FixedCounts,
    bm25,
    word_counts,
)
from contextgraph.text import quoted_names
from contextgraph.trace import (
    ATTRIBUTE,
    CURRENT_FOLDER,
    ITS_ARGUMENT,
    MISSING_MODULE,
    MISSING_PROGRAM,
    AdviceKey,
    Construct,
    Edited,
    advice_id,
    advice_key,
    circumstances_of,
    could_apply,
    describe_remedy,
    edited,
    is_general,
    is_hazardous,
    is_never_installed,
    is_own_module,
    is_retry,
    names_in,
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
