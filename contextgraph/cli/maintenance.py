"""Commands that update, copy, remove or restore what a memory holds."""

import json
import time
from collections import Counter
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import chain
from os.path import dirname, isdir
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click
from msgspec.structs import asdict

from contextgraph.cli.commands import (
    Common,
    Strict,
    Yes,
    argument,
    common_options,
    described,
    flag,
    option,
)
from contextgraph.cli.output import (
    FAILED,
    PARTLY_DONE,
    DamagedRuns,
    Progress,
    confirm,
    fail,
    interrupted_by_termination,
    warn,
)
from contextgraph.errors import ReadError
from contextgraph.memory.wiring import has_keyed
from contextgraph.service.records import record_of
from contextgraph.system.processes import replacing
from contextgraph.text import masked_name, neutral, number_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contextgraph.memory.agent_memory import AgentMemory
    from contextgraph.memory.exported import Export
    from contextgraph.model import Json, Trajectory


ExportFormat = Literal["archive", "graphml", "json", "atif"]
WithVectors = Annotated[
    bool,
    described(
        "--with-vectors/--without-vectors",
        help="Include vectors, or let the importing memory embed its texts itself.",
    ),
]
_LISTED = 10

Ids = Annotated[list[str] | None, argument("TRAJECTORY_ID", "Ids of runs.")]
Instances = Annotated[list[str] | None, option("ID", "All runs of this instance (repeatable).")]
Repos = Annotated[
    list[str] | None, option("OWNER/REPO", "All runs in this repository (repeatable).")
]


@common_options()
def forget(  # noqa: PLR0913  (one parameter per flag)
    common: Common,
    ids: Ids = None,
    *,
    instance: Instances = None,
    repo: Repos = None,
    session: Annotated[
        list[str] | None, option("ID", "The session, and its conversation (repeatable).")
    ] = None,
    source: Annotated[
        list[str] | None, option("NAME", "All that this person or source supplied (repeatable).")
    ] = None,
    everything: Annotated[bool, described("--all", help="All runs.")] = False,
    older_than: Annotated[int | None, option("DAYS", "Only runs that are older.", min=1)] = None,
    key: Annotated[str | None, option("KEY", "A keyed entry, and its history.")] = None,
    yes: Yes = False,
) -> None:
    """Remove runs and everything that only they support.

    With --repo and --source notes go, too. Files that were exported on this machine lose what
    is removed; those that cannot are named. With --key a keyed entry is erased instead, also from
    its log and archive. Asks for confirmation, unless --yes is given. The age of a run counts from
    its time in the log, else from when it was learned. It is not an error if no run is older
    than --older-than.

    \b
    Example:
      contextgraph forget --instance owner__repo-12
      contextgraph forget --repo owner/repo --yes
      contextgraph forget --session 0b6f2c1e-5a57-4d1e-9c1a-6d1f0c2b7a90
      contextgraph forget --source clone:github.com/owner/repo
      contextgraph forget --older-than 365 --yes
      contextgraph forget --key /user/preference/review
    """
    named = [*(ids or ()), *(instance or ()), *(repo or ()), *(session or ()), *(source or ())]
    if key is not None:
        if everything or named or older_than:
            raise click.BadParameter("--key cannot be combined with runs")
        _forget_key(common, key, yes=yes)
        return
    if not (everything or named or older_than):
        raise click.BadParameter(
            "name what to forget: a trajectory id, --instance, --repo, --session, --source,"
            " --older-than, --all or --key"
        )
    # Of who has only set entries there is no memory yet.
    with common.open(create=bool(source) and has_keyed(common.settings())) as memory:
        runs = memory.store.runs
        # Lists show a session by the id of its run.
        opened = {one: memory.session(one) for one in session or ()}
        session = [found.name if found and found.name else one for one, found in opened.items()]
        ids = [*(ids or ()), *(found.id for found in opened.values() if found)]
        # A run that is learned again gets another id.
        with nullcontext() if memory.is_service else memory.store.snapshot():
            held = memory.holdings(sessions=session or (), sources=source or (), repos=repo or ())
            of_instances = (runs.ids(instance=masked_name(one)) for one in instance or ())
            chosen = dict.fromkeys([*(ids or ()), *chain.from_iterable(of_instances), *held.runs])
            wanted = runs.ids() if everything or not named else [*chosen]
            selected = [*runs.trajectories(wanted).values()]
        notes = held.notes
        if older_than:
            oldest = datetime.now(UTC) - timedelta(days=older_than)
            selected, notes = [run for run in selected if run.seen_at < oldest], ()
        # A key that is set again is not older for it: they go with all of a source alone.
        has_keys = source and not older_than and memory.has_keyed
        keys = {*memory.keyed.set_by(source or ())} if has_keys else set[str]()
        if not (older_than or selected or notes or keys):
            _written_again(common, memory)  # what a call that was interrupted left
            of_them = "" if everything else f"of {', '.join(named)} "
            fail(f"no trajectory {of_them}in the memory")
        if (selected or notes or keys) and not yes:
            _confirm(selected, len(notes), len(keys))
        common.note_shown(memory, forgetting=True)
        # What else a session, a source or a repository has is of no age.
        whole = {
            "sessions": [] if older_than else session or [],
            "sources": [] if older_than else source or [],
            "repos": [] if older_than else repo or [],
        }
        gone = tuple(run.id for run in selected)
        _remove_beside(common, memory, gone, notes, whole["sources"])
        removed = memory.forget(gone, notes=notes, **whole)
        kept = _written_again(common, memory)
    _report(common, selected, len(notes), len(keys), removed, kept)


def _report(
    common: Common,
    selected: "Sequence[Trajectory]",
    notes: int,
    keys: int,
    removed: int,
    kept: "Sequence[str]",
) -> None:
    """Say what was removed, of the runs *selected*, and which exported files have it yet."""
    if kept:
        warn(f"exported before, and not changed: {', '.join(map(neutral, kept))}")
    if selected and not removed:
        fail(f"{number_of(len(selected), 'run')} changed meanwhile, and stay: repeat the command")
    counted = [number_of(removed, "run"), *([number_of(notes, "note")] if notes else [])]
    counted += [number_of(keys, "key")] if keys else []
    text = f"removed {' and '.join(counted)} and everything that only they support"
    forgotten: list[Json] = [record_of(run) for run in selected]
    counts: dict[str, Json] = {"forgotten": removed, "notes": notes, "keys": keys}
    common.answer({**counts, "trajectories": forgotten}, text)
    if removed and not common.as_json:
        others = sorted({run.repo for run in selected if run.repo and not run.session})
        warn(
            "sessions that were forgotten are not learned again, but by `learn PATH --again`, all"
            " of clients here by `learn --discover --again`"
        )
        if others:
            warn(
                "learn finds other logs again, unless contextgraph.toml says: "
                f"never_learn = {json.dumps(others)}"
            )


def _forget_key(common: Common, key: str, *, yes: bool) -> None:
    """Erase all traces of *key*, also in archives; exits with 1 where there are none."""
    from contextgraph.knowledge.keyed import normalised_key
    from contextgraph.memory.exported import Exports

    memory = common.keyed()
    if not yes:
        confirm(f"Forget {neutral(key)} and its history?", "nothing was removed")
    memory.check_exists()
    exports = Exports(common.settings())
    named = normalised_key(key)
    exports.remove_entries(lambda one: one.key == named)
    removed = memory.forget(key)
    if kept := [one.path for one in exports.there() if one.form == "archive" and one.is_stale]:
        warn(f"exported before, and not changed: {', '.join(map(neutral, kept))}")
    if not removed:
        fail(f"no entry of {key} in {memory.root}")
    text = f"forgot {key}: {number_of(removed, 'call')}"
    common.answer({"forgotten": removed, "key": key}, text)


def _remove_beside(
    common: Common,
    memory: "AgentMemory",
    runs: tuple[str, ...],
    notes: "Sequence[str]",
    sources: "Sequence[str]",
) -> None:
    """Remove *runs*, *notes* and keyed entries of *sources* from files here.

    They are those that the memory does not change itself.
    Names those that were exported and are not there: they may have been moved.
    """
    from contextgraph.knowledge.keyed import is_by
    from contextgraph.memory.exported import Exports
    from contextgraph.model import Holdings

    exports = Exports(common.settings())
    if moved := exports.missing():
        warn(f"exported before, and not there now: {', '.join(map(neutral, moved))}")
    if memory.is_service:  # which knows its own files alone
        exports.remove(Holdings(runs, tuple(notes)), {})
        if sources:
            exports.remove_entries(lambda one: is_by(one, sources))


def _written_again(common: Common, memory: "AgentMemory") -> "Sequence[str]":
    """Write exports again that hold what is forgotten; return those that keep it.

    Names the files that were changed in a working tree: commits have their former text.
    """
    from contextgraph.agents.agents_md import agents_md as entries_of, write_agents_md
    from contextgraph.cli.team import rules_written
    from contextgraph.knowledge.entries import entries_in
    from contextgraph.memory.exported import Exports
    from contextgraph.readers.repository import GitFolder

    changed = list[str]()

    def write(export: "Export") -> bool:
        path = Path(export.path)
        was = path.read_bytes() if path.is_file() else None
        if export.form == "agents-md":
            tasks, entries = memory.playbook(export.repo).tasks, entries_of(memory, export.repo)
            write_agents_md(Path(export.path), export.repo, tasks, entries)
        elif export.form == "graphml" or export.form == "json":  # noqa: PLR1714  (for mypy)
            memory.export_graph(Path(export.path), export.form)
        elif export.form == "lessons":
            rules_written(export.path, entries_in(export.path))
        if was is None or was != path.read_bytes():
            changed.append(export.path)
        return True

    exports = Exports(common.settings())
    exports.rewrite(write)
    in_git = [one for one in changed if GitFolder.around(one if isdir(one) else dirname(one))]
    if in_git:
        warn(
            "commits keep what these files had, here and in each clone, until their history is"
            f" rewritten: {', '.join(map(neutral, in_git))}"
        )
    return [one.path for one in exports.there() if one.is_stale]


def _confirm(runs: "Sequence[Trajectory]", notes: int, keys: int) -> None:
    for run in runs[:_LISTED]:
        click.echo(f"  {run.id}  {run.seen_at:%Y-%m-%d}  {neutral(run.name)}", err=True)
    if len(runs) > _LISTED:
        click.echo(f"  and {len(runs) - _LISTED} more", err=True)
    noted = f" and {number_of(notes, 'note')}" if notes else ""
    noted += f" and {number_of(keys, 'key')}" if keys else ""
    confirm(f"Forget {number_of(len(runs), 'run')}{noted}?", "nothing was removed")


@common_options()
def export(
    common: Common,
    path: Annotated[Path, argument("FILE", "The file to write; for ATIF, a folder.")],
    file_format: Annotated[
        ExportFormat,
        described("--format", help="The memory itself, its graph, or its runs in ATIF."),
    ] = "archive",
    agents_md: Annotated[
        str, option("OWNER/REPO", "Write a section of an AGENTS.md or SKILL.md instead.")
    ] = "",
    diff: Annotated[
        bool, flag("With --agents-md: print what would change, and write nothing.")
    ] = False,
    vectors: WithVectors = True,
    strict: Strict = False,
    salvage: Annotated[
        bool, flag("Leave out of an archive whatever else is damaged, too.")
    ] = False,
) -> None:
    """Write a memory, its graph or its runs to a file.

    An archive has runs with what was read from them, methodologies, credit and vectors, one JSON
    object a line; `import` reads it. GraphML and JSON (node-link) have nodes and relations without
    texts. ATIF has the runs, one file each. An existing file is replaced once all is
    written. It holds masked runs: only its owner may read it. A damaged run is reported and left
    out. With --salvage so is anything else that is damaged, and a run of which
    only the log can be read is read again from that.

    --agents-md writes what at least two tasks agree on into a section of FILE, at most 40 lines,
    for review. It replaces that section of an earlier export; the rest of FILE stays.

    \b
    Example:
      contextgraph export team.jsonl.zst --store team.db
      contextgraph export graph.graphml --format graphml
      contextgraph export AGENTS.md --agents-md owner/repo --diff
    """

    if diff and not agents_md:
        raise click.BadParameter("--diff belongs to --agents-md")
    started = time.monotonic()
    damaged = DamagedRuns(strict, common.as_json)
    with (
        interrupted_by_termination(),
        common.open(read_only=True) as memory,
    ):
        if agents_md:
            from contextgraph.agents.agents_md import agents_md as entries_of, write_agents_md

            entries, tasks = entries_of(memory, agents_md), memory.playbook(agents_md).tasks
            if not entries:
                none = f"no two tasks of {agents_md} in this memory agree on anything"
                fail(f"nothing is written: {none}")
            change = write_agents_md(path, agents_md, tasks, entries, dry_run=diff)
            counts = {"entries": len(entries), "tasks": tasks}
            if diff:
                common.answer({**counts, "diff": change}, change.rstrip("\n"))
                return
        elif file_format == "archive":
            total = len(memory.store.runs.ids())
            with Progress(lambda: total) as progress:
                done = memory.export(
                    path,
                    vectors=vectors,
                    progress=progress.runs,
                    on_damaged=damaged.handler,
                    salvage=salvage,
                )
            counts = asdict(done)
        elif file_format == "atif":
            counts = _export_atif(memory, path, damaged)
        else:
            memory.export_graph(path, file_format)
            graph = memory.graph()
            counts = {"nodes": graph.number_of_nodes(), "relations": graph.number_of_edges()}
    form = "agents-md" if agents_md else file_format
    common.exported(path, form, agents_md)
    seconds = round(time.monotonic() - started, 3)
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    text = f"wrote {path} in {seconds:.1f} s: {listed}"
    common.answer({**counts, "seconds": seconds}, text)
    damaged.exit(counts.get("runs", 0))


def _export_atif(memory: "AgentMemory", path: Path, damaged: DamagedRuns) -> dict[str, int]:
    import orjson

    from contextgraph.errors import DamagedRunError, StoreError
    from contextgraph.readers import to_atif

    runs = memory.store.runs.ids()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Progress(lambda: len(runs)) as progress:
            for done, identity in enumerate(runs, start=1):
                try:
                    raw = memory.store.runs.raw(identity)
                except DamagedRunError as error:
                    if damaged.handler is None:
                        raise
                    damaged.handler(identity, error)
                    continue
                if raw:
                    with replacing(path / f"{identity}.json") as part:  # for its owner alone
                        part.write_bytes(orjson.dumps(to_atif(raw)))
                progress.runs(done, len(runs))
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    return {"runs": len(runs) - len(damaged.ids)}


@common_options()
def backup(
    common: Common,
    path: Annotated[Path, argument("FILE", "The new file to write.")],
) -> None:
    """Copy a memory file while others may use it.

    The copy is a memory of its own, with all tenants; `--store FILE` uses it. To restore it, end
    the processes that use the memory, move its file with -wal and -shm away, and back the copy up
    to that place. A server has its own backups.

    \b
    Example:
      contextgraph backup /backups/team-monday.db --store team.db
      contextgraph backup team.db --store /backups/team-monday.db
    """
    started = time.monotonic()
    with (
        interrupted_by_termination(),
        common.open(read_only=True) as memory,
    ):
        memory.back_up(path)
    size, seconds = path.stat().st_size, round(time.monotonic() - started, 3)
    text = f"copied {size / 1e6:.1f} MB to {path} in {seconds:.1f} s"
    common.answer({"bytes": size, "seconds": seconds}, text)


@common_options()
def import_(
    common: Common,
    path: Annotated[Path, argument("FILE", "A file that `export` wrote, or a file of rules.")],
    vectors: WithVectors = True,
    repo: Annotated[str, option("OWNER/REPO", "The repository of the rules.")] = "",
    source: Annotated[
        str, option("NAME", "Who supplies the archive (default: the name of its file).")
    ] = "",
    as_owner: Annotated[
        bool, flag("It is a memory of your own: take verdicts, pins and pages, too.")
    ] = False,
) -> None:
    """Add what `export` wrote, or the rules in a file as notes.

    Runs are learned again from their logs, and notes remembered, as those of a source. With
    --as-owner all that the archive holds is taken over as it is.

    Checks the whole file first: if a line is damaged, nothing is imported. What is known stays as
    it is, so an interrupted command continues when it is repeated.

    Rules are CLAUDE.md, AGENTS.md, a folder such as .cursor/rules, and exports of mem0 and Letta
    (JSON): each item and paragraph is a note, with its file and line.

    \b
    Example:
      contextgraph import team.jsonl.zst --source team
      contextgraph import mine.jsonl.zst --as-owner --store neo4j://host:7687
      contextgraph import CLAUDE.md --repo acme/shop
    """
    from contextgraph.knowledge.rules import is_rules
    from contextgraph.store.archive import read_header

    if as_owner and source:
        raise click.BadParameter("--source is for what others supply, --as-owner for your own")
    if is_rules(path):
        if as_owner or source:
            raise click.BadParameter("--source and --as-owner are for an archive")
        _import_rules(common, path, repo)
        return

    started = time.monotonic()
    total = read_header(path).runs
    try:
        with common.open() as memory, Progress(lambda: total) as progress:
            done = memory.import_archive(
                path, source=source, as_owner=as_owner, vectors=vectors, progress=progress.runs
            )
    except KeyboardInterrupt:
        warn("interrupted; repeat the command to continue")
        raise
    seconds = round(time.monotonic() - started, 3)
    if done.vectors_of:
        warn(
            f"vectors of {done.vectors_of} are left out: the memory has another space; "
            "run: contextgraph call reembed"
        )
    if done.left_out:
        left_out = number_of(done.left_out, "line")
        warn(f"left out: {left_out} of verdicts, reports and the like; --as-owner takes all")
    if done.keyed_left_out:
        keyed = number_of(done.keyed_left_out, "keyed entry")
        warn(f"left out: {keyed}; a memory in RAM needs keyed_root")
    if done.forgotten:
        warn(f"left out: {number_of(done.forgotten, 'run')} of sessions that were forgotten here")
    runs = number_of(done.created + done.updated + done.unchanged, "run")
    text = (
        f"{runs}: {done.created} created, {done.updated} updated, "
        f"{done.unchanged} unchanged; {number_of(done.methodologies, 'methodology')}, "
        f"{number_of(done.exposures, 'exposure')}, {number_of(done.notes, 'note')}, "
        f"{number_of(done.keyed, 'keyed entry')}; {seconds:.1f} s"
    )
    common.answer(record_of(done, "vectors_of", seconds=seconds), text)


def _import_rules(common: Common, path: Path, repo: str) -> None:
    from contextgraph.knowledge.rules import Rule, rules_in

    read = [*rules_in(path)]
    rules = [rule for rule in read if isinstance(rule, Rule)]
    for failure in read:
        if isinstance(failure, ReadError):
            warn(str(failure))
    if read and not rules:
        raise click.exceptions.Exit(FAILED)
    with common.open() as memory:
        statuses = Counter(
            memory.notes.remember(
                rule.text, repo=repo, source=f"file:{path.name}", locator=rule.locator
            ).status.value
            for rule in rules
        )
    counts = ", ".join(f"{count} {status}" for status, count in statuses.items())
    text = f"{number_of(len(rules), 'note')} from {path}{f': {counts}' if counts else ''}"
    common.answer({"notes": len(rules), **statuses}, text)
    if len(rules) < len(read):
        raise click.exceptions.Exit(PARTLY_DONE)
