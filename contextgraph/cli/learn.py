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
    learn_all,
    spool_rest,
    summarize,
    warn_about,
)
from contextgraph.cli.intake import Intake, Selection, discovered_paths, numbers_of
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
    settings_of,
)
from contextgraph.cli.output import Progress, warn
from contextgraph.errors import StoreUnavailableError
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.cli.batch import Record
    from contextgraph.errors import ReadError
    from contextgraph.integrations.sessions import HookFiles
    from contextgraph.memory import AgentMemory
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
        typer.Option(
            "--queued", help="Learn the sessions that the hook of an agent reported as ended."
        ),
    ] = False,
    exclude: Annotated[
        list[str] | None, option("--exclude", "PATTERN", "Skip these files (repeatable).")
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
        int, typer.Option(metavar="N", min=1, help="Read and trace in N processes; one writes.")
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
        typer.Option("--watch", help="Keep learning new and changed files until interrupted."),
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
    from contextgraph.integrations.sessions import HookFiles
    from contextgraph.spool import Spool

    if sum((bool(paths), discover, queued)) != 1:
        raise typer.BadParameter("give PATH, --discover or --queued")
    if (exclude or yes) and not discover:
        raise typer.BadParameter("--exclude and --yes belong to --discover")
    if watch and (not paths or _has_stream(paths)):
        raise typer.BadParameter("--watch takes files, folders or globs")
    if ray and (workers > 1 or watch):
        raise typer.BadParameter("--ray does not go with --workers or --watch")
    if ray and _has_stream(paths or ()):
        raise typer.BadParameter("--ray takes files, folders, globs or URLs")
    settings = settings_of(store, tenant)
    hooks = HookFiles(settings)
    found: Sequence[StrPath]
    queue: Sequence[Path] = ()
    if queued:
        found, queue = hooks.take_queue()
    else:
        found = paths or discovered_paths(exclude or (), yes=yes, address=settings.address)
    selection = Selection(tuple(filters or ()), limit, _numbers(numbers))
    learning = _Learning(
        open_memory=partial(
            open_memory, store, tenant, embedder=embedder, max_cost=max_cost, source=source
        ),
        spool=Spool(settings) if settings.is_remote else None,
        intake=partial(
            Intake,
            outcomes=outcomes,
            selection=selection,
            discovered=discover,
            git=git,
            max_run_size=max_run_size,
            follow_links=follow_links,
        ),
        follow_links=follow_links,
        have_read=partial(_have_read, workers, ray, embedder or "") if ray or workers > 1 else None,
        as_json=as_json,
        address=settings.address,
        hooks=hooks,
        queue=queue,
        compile=partial(compile_for_hooks, store=store, tenant=tenant),
    )
    if watch:
        learning.watch(found)
    raise typer.Exit(learning.learn(found))


def _has_stream(paths: Sequence[str]) -> bool:
    from contextgraph.readers import is_stream

    return any(map(is_stream, paths))


def _numbers(text: str | None) -> range:
    try:
        return numbers_of(text or ":")
    except ValueError as error:
        raise typer.BadParameter(f"--slice {error}") from None


def _have_read(
    workers: int, address: str, embedder: str, intake: Intake, memory: "AgentMemory"
) -> None:
    """Have the runs of *intake* read by processes, or by the Ray cluster at *address*."""
    from contextgraph.cli.workers import WorkersReader

    reader = WorkersReader(memory, workers=workers, address=address, embedder=embedder)
    intake.read_with(reader.read, reader.keep)


@dataclass(frozen=True, slots=True)
class _Learning:
    """What the options say about learning, whatever the paths."""

    open_memory: "Callable[[], AgentMemory]"
    spool: "Spool | None"  # of a server: where a file cannot be written, nothing can
    intake: Callable[..., Intake]
    follow_links: bool
    have_read: "Callable[[Intake, AgentMemory], None] | None"
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
        intake = self.intake(
            paths,
            on_failure=unread.append,
            on_skip=unread.append,
            on_bytes=progress.advance,
        )
        results = Results(progress, self.as_json, self.address, intake.report_conflict)
        records = _in_order(intake, unread)
        waiting: list[Record] = []
        try:
            with self.open_memory() as memory:
                if self.have_read:
                    self.have_read(intake, memory)
                self._learn_into(memory, records, waiting, results)
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

    def _learn_into(
        self,
        memory: "AgentMemory",
        records: "Iterator[Record]",
        waiting: "list[Record]",
        results: Results,
    ) -> None:
        # A service has no hooks: each machine compiles advice of a memory of its own.
        if not memory.is_service:
            self.hooks.note_shown(memory.store)
        learn_all(memory, self.spool, records, waiting, results)
        for path in self.queue:
            path.unlink(missing_ok=True)
        if not memory.is_service:
            warn_about(memory, results)
            self.compile(memory)


def _in_order(intake: Intake, unread: "list[ReadError]") -> "Iterator[Record]":
    """The runs of *intake*, and what it put into *unread* before each of them and at the end."""
    for raw in intake:
        yield from unread
        unread.clear()
        yield raw
    yield from unread
