"""``contextgraph learn``: finished runs from files into the memory."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from contextgraph.cli.batch import (
    Results,
    discovered_paths,
    learn_all,
    spool_rest,
    summarize,
    warn_about,
)
from contextgraph.cli.cluster import read_on_cluster
from contextgraph.cli.intake import Intake, Selection, numbers_of
from contextgraph.cli.integrations import compile_for_hooks
from contextgraph.cli.options import (
    AsJson,
    Embedder,
    FollowLinks,
    Git,
    MaxCost,
    MaxRunSize,
    Source,
    Store,
    Tenant,
    open_memory,
    option,
    store_address,
)
from contextgraph.cli.output import Progress, warn
from contextgraph.errors import StoreUnavailableError
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.cli.batch import Record
    from contextgraph.errors import ReadError
    from contextgraph.integrations.sessions import HookFiles
    from contextgraph.memory import AgentMemory
    from contextgraph.model import RawTrajectory
    from contextgraph.readers.sources import StrPath
    from contextgraph.spool import Spool

# So many seconds pass before a watched folder is looked at again.
_WATCH_SECONDS = 2.0


def learn(  # noqa: PLR0913  (one parameter per flag)
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Trajectory files, folders or globs; - for standard input.",
            show_default=False,
        ),
    ] = None,
    *,
    discover: Annotated[
        bool,
        typer.Option(
            "--discover", help="Learn what coding agents have recorded on this machine; asks first."
        ),
    ] = False,
    queued: Annotated[
        bool,
        typer.Option("--queued", help="Learn the sessions whose end the hook of an agent noted."),
    ] = False,
    exclude: Annotated[
        list[str] | None, option("--exclude", "PATTERN", "Not these files (repeatable).")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    outcomes: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            exists=True,
            help="Which instances were solved: reports, predictions or logs of SWE-bench, or CSV;"
            " a file or a folder.",
            show_default=False,
        ),
    ] = None,
    git: Git = False,
    filters: Annotated[
        list[str] | None,
        option("--filter", "GLOB", "Only runs of this repository or instance (repeatable)."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="At most N runs.", show_default=False),
    ] = None,
    numbers: Annotated[
        str | None,
        option("--slice", "A:B", "Only the runs A to B - 1, as in Python; after --filter."),
    ] = None,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Trace runs in N processes; one writes.")
    ] = 1,
    ray: Annotated[
        str,
        option(
            "--ray",
            "ADDRESS",
            "Read, trace and embed on this Ray cluster; local starts one on this machine.",
        ),
    ] = "",
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Go on with new and changed files, until interrupted."),
    ] = False,
    embedder: Embedder = None,
    max_cost: MaxCost = None,
    max_run_size: MaxRunSize = None,
    follow_links: FollowLinks = False,
    source: Source = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Learn finished runs.

    Runs that are known stay as they are, so an interrupted command continues when it is repeated.
    PATH may be a URL (s3://, hf://). Runs are counted once they are stored durably. While
    a server cannot be reached, runs are put into a spool folder; the next such command learns them
    first.

    \b
    Example:
      contextgraph learn runs/ 'more/*.jsonl.gz'
      contextgraph learn runs/ --outcomes report.json
      contextgraph learn --discover --exclude '*/private/*'
      contextgraph learn ~/.claude/projects --watch
      contextgraph learn ~/.claude/projects --git
      contextgraph learn 's3://bucket/runs/*.jsonl.gz' --ray auto
      contextgraph learn --queued
      contextgraph learn nightly/ --source ci
      cat run.traj | contextgraph learn -
    """
    from contextgraph.config import load_settings
    from contextgraph.integrations.sessions import HookFiles

    if sum((bool(paths), discover, queued)) != 1:
        raise typer.BadParameter("give PATH, --discover or --queued")
    _check_usage(paths, discover=discover, of_discovery=bool(exclude or yes), watch=watch)
    if ray:
        _check_cluster(paths, alone=workers == 1 and not watch)
    address = store_address(store, tenant)
    hooks = HookFiles(load_settings(store=store or None, tenant=tenant))
    found: Sequence[StrPath]
    queue: Sequence[Path] = ()
    if queued:
        found, queue = hooks.take_queue()
    else:
        found = paths or discovered_paths(exclude or (), yes=yes, address=address)
    learning = _Learning(
        open_memory=partial(
            open_memory, store, tenant, embedder=embedder, max_cost=max_cost, source=source
        ),
        spool=_spool(store, tenant),
        intake=partial(
            Intake,
            selection=Selection(tuple(filters or ()), limit, _numbers(numbers)),
            discovered=discover,
            git=git,
            max_run_size=max_run_size,
            follow_links=follow_links,
        ),
        outcomes=outcomes,
        follow_links=follow_links,
        workers=workers,
        cluster=partial(read_on_cluster, ray, embedder or "") if ray else None,
        as_json=as_json,
        address=address,
        hooks=hooks,
        queue=queue,
        compile=partial(compile_for_hooks, store=store, tenant=tenant),
    )
    if watch:
        learning.watch(found)
    raise typer.Exit(learning.learn(found))


def _check_usage(
    paths: list[str] | None, *, discover: bool, of_discovery: bool, watch: bool
) -> None:
    from contextgraph.readers import is_stream

    if of_discovery and not discover:
        raise typer.BadParameter("--exclude and --yes belong to --discover")
    if watch and (not paths or any(map(is_stream, paths))):
        raise typer.BadParameter("--watch takes files, folders or globs")


def _check_cluster(paths: list[str] | None, *, alone: bool) -> None:
    from contextgraph.readers import is_stream

    if not alone:
        raise typer.BadParameter("--ray does not go with --workers or --watch")
    if any(map(is_stream, paths or ())):
        raise typer.BadParameter("--ray takes files, folders, globs or URLs")


def _numbers(text: str | None) -> range:
    try:
        return numbers_of(text or ":")
    except ValueError as error:
        raise typer.BadParameter(f"--slice {error}") from None


@dataclass(frozen=True, slots=True)
class _Learning:
    """What the options say about learning, whatever the paths."""

    open_memory: "Callable[[], AgentMemory]"
    spool: "Spool | None"
    intake: Callable[..., Intake]
    outcomes: Path | None
    follow_links: bool
    workers: int
    cluster: "Callable[..., Iterator[RawTrajectory]] | None"
    as_json: bool
    address: str
    hooks: "HookFiles"
    queue: Sequence[Path]
    compile: "Callable[[AgentMemory], None]"

    def watch(self, paths: "Sequence[StrPath]") -> NoReturn:
        """Learn the files in *paths*, and those that are new or change; ends by an exception."""
        from contextgraph.readers import Watch

        watched = Watch(paths, follow_links=self.follow_links)
        warn(f"watching {', '.join(map(str, paths))}; Ctrl-C ends it")
        while True:
            if due := watched.due(time.time()):
                self.learn(due)
            time.sleep(_WATCH_SECONDS)

    def learn(self, paths: "Sequence[StrPath]") -> int:
        """Learn the runs in *paths* and print a summary; the exit code."""
        from contextgraph.readers import size_of

        unread: list[ReadError] = []
        progress = Progress(lambda: size_of(paths, follow_links=self.follow_links))
        intake = self.intake(paths, self.outcomes, unread.append, unread.append, progress.advance)
        results = Results(progress, self.as_json, self.address, intake.report_conflict)
        records = _in_order(intake, unread)
        waiting: list[Record] = []
        try:
            with self.open_memory() as memory:
                if self.cluster is not None:
                    intake.read_with(partial(self.cluster, memory))
                # A service has no hooks: each machine compiles advice of a memory of its own.
                if not memory.is_service:
                    self.hooks.note_shown(memory.store)
                learn_all(memory, self.spool, records, waiting, results, self.workers)
                for path in self.queue:
                    path.unlink(missing_ok=True)
                if not memory.is_service:
                    warn_about(memory, results)
                    self.compile(memory)
        except StoreUnavailableError as error:
            if self.spool is not None:
                spool_rest(self.spool, paths, chain(waiting, records), results, error)
            raise
        except KeyboardInterrupt:
            stored = number_of(results.counts.total(), "trajectory")
            warn(f"interrupted; {stored} stored, repeat the command to continue")
            raise
        finally:
            summarize(results, intake)
        return intake.exit_code


def _in_order(intake: Intake, unread: "list[ReadError]") -> "Iterator[Record]":
    """The runs of *intake*, and what it put into *unread* before each of them and at the end."""
    for raw in intake:
        yield from unread
        unread.clear()
        yield raw
    yield from unread


def _spool(store: str | None, tenant: str | None) -> "Spool | None":
    """Where runs wait for a server; None for a file: where it cannot be written, nothing can."""
    from contextgraph.config import load_settings
    from contextgraph.spool import Spool

    settings = load_settings(store=store or None, tenant=tenant)
    return Spool(settings) if settings.is_remote else None
