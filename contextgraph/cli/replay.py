"""``contextgraph replay``: recorded runs as if live, with the advice at each moment."""

from typing import TYPE_CHECKING

import typer

from contextgraph.cli.options import Common, FollowLinks, Paths, TemporaryStore, common_options
from contextgraph.cli.output import Progress, console, emit, print_table, say, warn
from contextgraph.records import context_record, loop_records
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contextgraph.evaluation import MomentKind, Replay, ReplayCounts, ReplayMoment
    from contextgraph.model import Json

_LINES_SHOWN = 2


@common_options("configuration", "max_run_size", store=TemporaryStore)
def replay(
    common: Common,
    paths: Paths,
    follow_links: FollowLinks = False,
) -> None:
    """Replay recorded runs as if live, and show the advice.

    Queries at each start and error, warns about loops, then learns the run. Without --store it
    fills a memory that is dropped at the end; a named one learns the runs, so an interrupted
    command continues when it is repeated. Runs are ordered by their start time where all have one,
    else by the number in the instance id within each repository, else as given.

    \b
    With --json one line per moment: "instance_id", "step" (number of steps done),
    "kind" (start, error, loop), "answered", "items" (as in query; of a loop its
    record and "escapes"); last "summary" {"order", "runs", "moments", "answered",
    "learned", "failed", "skipped", "seconds"}.

    \b
    Example:
      contextgraph replay runs.jsonl.gz
      contextgraph replay runs/ --store team.db --json
    """
    from contextgraph.cli.intake import Intake
    from contextgraph.evaluation import Replay

    common = common.or_temporary()
    max_run_size = common.settings().max_run_size
    intake = Intake(paths, max_run_size=max_run_size, follow_links=follow_links)
    runs = list(intake)
    progress = Progress(lambda: len(runs))
    with common.open() as memory, progress:
        replayed = Replay(memory, runs)
        try:
            _show_all(common, replayed, progress)
        except KeyboardInterrupt:
            warn(f"interrupted after {replayed.counts.runs} of {number_of(len(runs), 'run')}")
            raise
        finally:
            if common.as_json:
                unread: dict[str, Json] = {"failed": intake.failed, "skipped": intake.skipped}
                emit({"summary": {**_counts_record(replayed.counts), **unread}})
            elif replayed.counts.runs:
                _show_counts(replayed.counts)
    raise typer.Exit(intake.exit_code)


def _show_all(common: Common, replayed: "Replay", progress: Progress) -> None:
    from contextgraph.evaluation import ReplayMoment

    for item in replayed:
        if not isinstance(item, ReplayMoment):
            progress.advance(1)
            progress.count(replayed.counts.runs)
        elif common.as_json:
            emit(_moment_record(item))
        elif item.answered:
            _show_moment(item)


def _show_moment(moment: "ReplayMoment") -> None:
    """Print the first lines of the advice at a moment."""
    head = f"{moment.raw.instance_id} after step {moment.step}, {moment.kind}"
    screen = console()
    say((one_line(head, screen.width), "bold"))
    for line in _advice_lines(moment)[:_LINES_SHOWN]:
        say(f"  {one_line(line, screen.width - 2)}")


def _advice_lines(moment: "ReplayMoment") -> list[str]:
    if moment.loop is not None:
        name = moment.loop.kind.replace("_", " ")
        first = f"{moment.loop.severity}: {name}, {moment.loop.repetitions} times"
        return [first, *(one.text for one in moment.escapes)]
    if moment.context is None:
        return []
    context = moment.context
    lines = [suggestion.strategy for suggestion in context.suggestions]
    lines += [solution.description for solution in context.error_solutions]
    return lines + [f"{case.instance_id}: {case.summary}" for case in context.similar_cases]


def _show_counts(counts: "ReplayCounts") -> None:
    title = f"{number_of(counts.runs, 'run')}, ordered by {counts.order.replace('_', ' ')}"
    columns = ("moment", "queries", "answered")
    rows = [(str(kind), str(counts.moments[kind]), str(counts.answered[kind])) for kind in _kinds()]
    print_table(title, columns, rows, numeric=columns[1:])


def _kinds() -> "Sequence[MomentKind]":
    from contextgraph.evaluation import MomentKind

    return (MomentKind.START, MomentKind.ERROR, MomentKind.LOOP)


def _moment_record(moment: "ReplayMoment") -> "dict[str, Json]":
    return {
        "instance_id": moment.raw.instance_id,
        "step": moment.step,
        "kind": str(moment.kind),
        "answered": moment.answered,
        "items": _items_record(moment),
    }


def _items_record(moment: "ReplayMoment") -> "dict[str, Json]":
    if moment.loop is not None:
        (loop,) = loop_records([moment.loop])
        return {"loop": loop, "escapes": [one.text for one in moment.escapes]}
    if moment.context is None:
        return {}
    shown = ("suggestions", "error_solutions", "similar_cases", "warnings", "degraded")
    record = context_record(moment.context, "")
    return {name: record[name] for name in shown}


def _counts_record(counts: "ReplayCounts") -> "dict[str, Json]":
    return {
        "order": str(counts.order),
        "runs": counts.runs,
        "moments": {str(kind): counts.moments[kind] for kind in _kinds()},
        "answered": {str(kind): counts.answered[kind] for kind in _kinds()},
        "learned": {str(status): count for status, count in sorted(counts.learned.items())},
        "seconds": round(counts.seconds, 3),
    }
