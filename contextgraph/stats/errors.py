"""The errors that runs met in a situation, and their names."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from contextgraph.model import ErrorTally, Phase, Scope, TaskType
from contextgraph.ports import Store
from contextgraph.text import words


def error_text(tally: ErrorTally) -> str:
    """The error of *tally* as text; type and message, neither repeated."""
    error = tally.error
    if error.template in {"", error.error_type} or not error.error_type:
        return error.error_type or error.template or error.family
    # Many messages begin with the last word of their type: "SyntaxError: …" of E999 SyntaxError.
    named = error.error_type.split()[-1]
    return f"{error.error_type}: {error.template.removeprefix(f'{named}: ')}"


RUNS_OF_A_KIND = 5_000
RUNS_ABOUT_A_TEXT = 50
FRAGMENTS_AT_A_FILE = 2_000


def errors_in(situation: str, repo: str, store: Store, limit: int) -> Sequence[ErrorTally]:
    """Errors met in *situation* (see `StatisticsEngine.get_common_mistakes`), most runs first."""
    situation, scope = situation.strip(), Scope(repo or None)
    if not situation or situation in {*Phase}:
        return store.recoveries.errors(scope, limit, phase=Phase(situation) if situation else None)
    if situation in {*TaskType}:
        runs = store.runs.for_task(TaskType(situation), scope, RUNS_OF_A_KIND)
        return store.recoveries.errors(Scope(), limit, runs=[run.id for run in runs])
    if not repo and (known := store.recoveries.errors(Scope(situation), limit)):
        return known
    return store.recoveries.errors(
        Scope(),
        limit,
        runs=_runs_at_file(situation, scope, store) or _runs_about(situation, scope, store),
    )


def _runs_at_file(situation: str, scope: Scope, store: Store) -> list[str]:
    """Runs that touched a file of this name; none where the words do not name a file."""
    if not _names_file(situation):
        return []
    name = PurePosixPath(situation).name
    found = store.runs.fragments_for_state(None, name, scope, FRAGMENTS_AT_A_FILE)
    return list(dict.fromkeys(candidate.trajectory.id for candidate in found))


def _runs_about(situation: str, scope: Scope, store: Store) -> list[str]:
    # Every second run has a `py` in it: a file extension does not narrow the search.
    text = PurePosixPath(situation).stem if _names_file(situation) else situation
    distinct = tuple(dict.fromkeys(words(text)))
    return [run.id for run in store.runs.for_text(distinct, scope, RUNS_ABOUT_A_TEXT)]


def _names_file(situation: str) -> bool:
    return len(situation.split()) == 1 and PurePosixPath(situation).suffix != ""
