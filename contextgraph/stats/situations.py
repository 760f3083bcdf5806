"""From the words for a situation to the errors that runs met in it."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from contextgraph.model import ErrorTally, Phase, Scope, TaskType
from contextgraph.stats.counting import CountingStore
from contextgraph.text import words

RUNS_OF_A_KIND = 5_000
RUNS_ABOUT_A_TEXT = 50
FRAGMENTS_AT_A_FILE = 2_000


def errors_in(situation: str, repo: str, store: CountingStore, limit: int) -> Sequence[ErrorTally]:
    """Errors met in *situation* (see `StatisticsEngine.get_common_mistakes`), most runs first."""
    asked, scope = situation.strip(), Scope(repo or None)
    if not asked or asked in {*Phase}:
        return store.common_errors(Phase(asked) if asked else None, scope, limit)
    if asked in {*TaskType}:
        runs = store.trajectories_for_task(TaskType(asked), scope, RUNS_OF_A_KIND)
        return store.errors_of_runs([run.id for run in runs], limit)
    if not repo and (known := store.common_errors(None, Scope(asked), limit)):
        return known
    return store.errors_of_runs(
        _runs_at_file(asked, scope, store) or _runs_about(asked, scope, store), limit
    )


def _runs_at_file(situation: str, scope: Scope, store: CountingStore) -> list[str]:
    """Runs that touched a file of this name; none where the words do not name a file."""
    if not _names_file(situation):
        return []
    name = PurePosixPath(situation).name
    found = store.fragments_for_state(None, name, scope, FRAGMENTS_AT_A_FILE)
    return list(dict.fromkeys(candidate.trajectory.id for candidate in found))


def _runs_about(situation: str, scope: Scope, store: CountingStore) -> list[str]:
    # Every second run has a `py` in it: the ending of a file name tells nothing.
    told = PurePosixPath(situation).stem if _names_file(situation) else situation
    asked = tuple(dict.fromkeys(words(told)))
    return [run.id for run in store.trajectories_for_text(asked, scope, RUNS_ABOUT_A_TEXT)]


def _names_file(situation: str) -> bool:
    return len(situation.split()) == 1 and PurePosixPath(situation).suffix != ""
