"""Which clearances of an error belong together: by repository, by what the message is about."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from contextgraph.consolidation.common import Common, Told, common_in
from contextgraph.consolidation.moves import moves_of
from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.model import (
    Clearance,
    ErrorHistory,
    Meeting,
    MethodologyGroup,
    TaskType,
)
from contextgraph.text import subject_of


@dataclass(frozen=True, slots=True)
class _Scope:
    """One repository or all of them."""

    repo: str | None
    meetings: tuple[Meeting, ...]
    told: Told


def groups_of(history: ErrorHistory, policy: ConsolidationPolicy) -> tuple[MethodologyGroup, ...]:
    """The groups of *history* that have a remedy in common; each repository, then the general one.

    A keyword narrows the error where messages about one thing were cleared in one concrete way
    (`from typing import Optional`), a type of task only where nothing is common to all.
    """
    told = [
        (clearance, moves_of(history.error, clearance))
        for clearance in history.clearances
        if clearance.recovered.verified and not clearance.recovered.workaround
    ]
    return tuple(
        group
        for scope in _scopes(history, told, policy)
        for group in _in_scope(history, scope, policy)
    )


def _scopes(history: ErrorHistory, told: Told, policy: ConsolidationPolicy) -> Iterator[_Scope]:
    """The repositories that have enough clearances, then all together."""
    for repo, part in _parted(told, lambda clearance: clearance.repo):
        if repo and len(part) >= policy.clearances:
            meetings = tuple(meeting for meeting in history.meetings if meeting.repo == repo)
            yield _Scope(repo, meetings, part)
    if len(told) >= policy.clearances:
        yield _Scope(None, history.meetings, told)


def _in_scope(
    history: ErrorHistory, scope: _Scope, policy: ConsolidationPolicy
) -> Iterator[MethodologyGroup]:
    general = scope.repo is None
    whole = common_in(scope.told, policy, general=general)
    if _says_something(history.error.template):
        if whole.remedies:
            yield _group(history, scope, "", None, whole)
        else:
            yield from _by_task_type(history, scope, policy)
    said = {remedy.text for remedy in whole.remedies}
    for keyword, told in _parted(scope.told, _subject):
        if not keyword or len(told) < policy.clearances:
            continue
        found = common_in(told, policy, general=general, narrowed=True)
        if found.concrete and found.remedies[0].text not in said:
            yield _group(history, scope, keyword, None, found)


def _by_task_type(
    history: ErrorHistory, scope: _Scope, policy: ConsolidationPolicy
) -> Iterator[MethodologyGroup]:
    for task_type, told in _parted(scope.told, lambda clearance: clearance.task_type.value):
        found = common_in(told, policy, general=scope.repo is None)
        if found.remedies:
            yield _group(history, scope, "", TaskType(task_type), found)


def _parted(told: Told, key: Callable[[Clearance], str]) -> list[tuple[str, Told]]:
    parts: dict[str, list[tuple[Clearance, Sequence[object]]]] = {}
    for item in told:
        parts.setdefault(key(item[0]), []).append(item)
    return sorted(parts.items())  # type: ignore[arg-type]  # the moves stay what they are


def _group(
    history: ErrorHistory, scope: _Scope, keyword: str, task_type: TaskType | None, found: Common
) -> MethodologyGroup:
    def fits(message: str, kind: TaskType) -> bool:
        return task_type in (None, kind) and (not keyword or subject_of(message) == keyword)

    clearances = [
        clearance
        for clearance in history.clearances
        if scope.repo in (None, clearance.repo)
        and clearance.recovered.verified
        and fits(clearance.recovered.message, clearance.task_type)
    ]
    cleared = {clearance.trajectory_id for clearance in clearances}
    met = {m.trajectory_id for m in scope.meetings if fits(m.message, m.task_type)} | cleared
    did = {clearance.trajectory_id for clearance in found.clearances}
    longest = max(clearance.steps for clearance in found.clearances)
    within = {clearance.trajectory_id for clearance in clearances if clearance.steps <= longest}
    return MethodologyGroup(
        error=history.error,
        keyword=keyword,
        task_type=task_type,
        repo=scope.repo,
        met=len(met),
        cleared=len(cleared),
        otherwise=len(within - did),
        remedies=found.remedies,
        clearances=found.clearances,
    )


def _subject(clearance: Clearance) -> str:
    return subject_of(clearance.recovered.message)


def _says_something(template: str) -> bool:
    """False for a template of placeholders alone, which errors of all kinds share."""
    bare = "".join("" if part.startswith("<") else part for part in template.split())
    return any(letter.isalpha() for letter in bare)
