"""``python -m benchmarks.kills``: 1,000 kills in all operations of a memory file and a service.

Each kill ends a child process as ``kill -9`` does: before or after one of its commits, file renames
and removals, or at a random moment. Then nothing that it acknowledged may be lost, and the same
operation again must leave what an undisturbed one leaves, to the line of the export. *--seed*
chooses operations and moments, *--progress* names a file of results with which a second call goes
on. Exits with 1 where anything was lost or differs.
"""

import argparse
import logging
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson
from fastapi.testclient import TestClient

from benchmarks.corpus import EXAMPLES, renamed, runs
from contextgraph import AgentMemory, State
from contextgraph.agents.hook_files import HookFiles
from contextgraph.cli import main as command_line
from contextgraph.config import Settings
from contextgraph.knowledge.keyed import KeyedMemory, index_path
from contextgraph.memory.wiring import build
from contextgraph.model import Outcome, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.readers import to_record, write_jsonl
from contextgraph.service.app import create_app
from contextgraph.service.service import Limits
from contextgraph.store.sqlite.connections import Connections

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RUNS = [*renamed([raw for raw in runs(EXAMPLES) if len(raw.steps) < 12], 18)]
CALLS = 30
# What differs between two undisturbed calls: times, and ids that are chosen by chance.
_VARYING = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)|ctx_[\w-]+")
_FORK = get_context("fork")


def _no_preparation(folder: Path) -> None:
    """Begin without a memory."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on the memory in a folder.

    *act* does it and yields each thing as it is acknowledged; what an earlier call acknowledged it
    leaves out where a caller would. *kept* returns what is there of these things. With *repeats*
    the *content* after it is the same however often it was killed before.
    """

    name: str
    act: "Callable[[Path, frozenset[str]], Iterator[str]]"
    kept: Callable[[Path], set[str]]
    content: Callable[[Path], list[str]]
    prepare: Callable[[Path], None] = _no_preparation
    repeats: bool = True


class Result(NamedTuple):
    """Outcome of one kill: how many calls were *acknowledged*, and the *error* of the repeat."""

    number: int
    operation: str
    moment: str
    killed: bool
    acknowledged: int
    lost: list[str]
    different: list[str]
    error: str


def memory_in(folder: Path) -> AgentMemory:
    """The memory file in *folder*, at noon."""
    return AgentMemory.of(build(Settings(str(folder / "memory.db")), clock=lambda: NOON))


# What is there, and its content


def _run_ids(folder: Path) -> set[str]:
    with memory_in(folder) as memory:
        return set(memory.store.runs.ids())


def _lines(folder: Path, *, vectors: bool = True) -> list[str]:
    """The lines of an export, what `doctor` finds, what waits, and the names of other files."""
    with memory_in(folder) as memory:
        found = [f"{check.name}: {check.detail}" for check in memory.health() if not check.ok]
        waiting = str(replace(memory.store.admin.unconsolidated(), revision=0))
        exported = folder / "exported.jsonl"
        memory.export(exported, vectors=vectors)
    lines = exported.read_text().splitlines()[:-1]
    exported.unlink()
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    names = [name for name in names if not name.endswith(("-wal", "-shm"))]
    return sorted([*(_VARYING.sub("", line) for line in lines), *found, waiting, *names])


def _instances(memory: AgentMemory) -> set[str]:
    held = memory.store.runs.trajectories(memory.store.runs.ids())
    return {run.instance_id for run in held.values()}


def _instances_in(folder: Path) -> set[str]:
    with memory_in(folder) as memory:
        return _instances(memory)


def _nothing(folder: Path) -> set[str]:
    return set()


# Runs


def _learned(folder: Path) -> None:
    with memory_in(folder) as memory:
        list(memory.learn_many(RUNS))
        memory.notes.remember("Use ruff for linting.", repo=RUNS[0].repo)


def _learn_each(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        for raw in RUNS:
            yield memory.learn(raw).trajectory_id


def _learn_many(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        for receipt in memory.learn_many(RUNS):
            yield receipt.trajectory_id


def _live(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        for raw in RUNS[:6]:
            run = memory.live(repo=raw.repo, task=raw.task, instance_id=raw.instance_id, agent="a")
            run.start()
            for step in raw.steps:
                run.observe(step.action, step.observation or "", exit_code=step.exit_code)
            if receipt := run.finish(Outcome.SOLVED):
                yield receipt.trajectory_id


def _without_exposures(folder: Path) -> list[str]:
    """Return `_lines` without what was shown: a run that is begun again is shown it again."""
    return [line for line in _lines(folder) if not line.startswith('{"kind":"exposure"')]


def _not_consolidated(folder: Path) -> None:
    with memory_in(folder) as memory:
        memory.writer.write_all(RUNS)


def _consolidate(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        memory.consolidate()
        yield "consolidated"


def _consolidated(folder: Path) -> set[str]:
    with memory_in(folder) as memory:
        return set() if memory.store.admin.unconsolidated().trajectories else {"consolidated"}


def _rebuild(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        for receipt in memory.rebuild():
            yield receipt.trajectory_id


def _reembed(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        memory.reembed()
        yield from memory.store.runs.ids()


def _ids() -> list[str]:
    with AgentMemory.open(":memory:") as memory:
        return sorted(receipt.trajectory_id for receipt in memory.writer.write_all(RUNS))


def _forget(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        for run in _ids()[:6]:
            memory.forget([run])
            yield run


def _forgotten(folder: Path) -> set[str]:
    return {*_ids()} - _run_ids(folder)


def _decide(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        methodology = memory.store.methodologies.ids()[0]
        yield f"quarantined {memory.quarantine(methodology) and methodology}"
        for raw in RUNS[:5]:
            memory.set_outcome(raw.instance_id, solved=True)
            yield f"solved {raw.instance_id}"
        for retired in memory.store.methodologies.ids()[1:4]:
            memory.retire([retired])
            yield f"retired {retired}"


def _decided(folder: Path) -> set[str]:
    with memory_in(folder) as memory:
        store = memory.store
        known = store.methodologies.get(store.methodologies.ids())
        held = store.runs.trajectories(store.runs.ids()).values()
        return {
            *(f"quarantined {one.id}" for one in known[:1] if _is_quarantined(memory, one.id)),
            *(f"solved {run.instance_id}" for run in held if run.outcome is Outcome.SOLVED),
            *(f"retired {one.id}" for one in known if one.status.value == "retired"),
        }


def _is_quarantined(memory: AgentMemory, advice: str) -> bool:
    verdicts = memory.store.exposures.record([advice]).verdicts
    return any(verdict.is_quarantined for verdict in verdicts if verdict.advice == advice)


def _report_outcomes(folder: Path, done: frozenset[str]) -> Iterator[str]:
    errors = [step.observation or "" for raw in RUNS for step in raw.steps if step.exit_code]
    with memory_in(folder) as memory:
        for error in errors[:12]:
            context = memory.query(State(repo=RUNS[0].repo, current_error=error))
            if memory.render(context) and memory.report_outcome(context.id, helped=True):
                yield context.id


def _reported(folder: Path) -> set[str]:
    with memory_in(folder) as memory:
        return {one.context_id for one in memory.store.exposures.all() if one.helped}


# The whole memory


def _archive(folder: Path) -> None:
    _learned(folder)
    with memory_in(folder) as memory:
        memory.export(folder / "archive.jsonl")
    for path in folder.glob("memory.db*"):
        path.unlink()


def _import(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        memory.import_archive(folder / "archive.jsonl", as_owner=True)
        yield from memory.store.runs.ids()


def _export(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        memory.export(folder / "kept.jsonl")
        yield "kept.jsonl"


def _back_up(folder: Path, done: frozenset[str]) -> Iterator[str]:
    for number in range(4):
        name = f"copy{number}.db"
        if not (folder / name).exists():
            with memory_in(folder) as memory:
                memory.back_up(folder / name)
        yield name


def _files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _copies(folder: Path) -> list[str]:
    with TemporaryDirectory() as place:
        for number in range(4):
            copy = Path(place) / f"{number}" / "memory.db"
            copy.parent.mkdir()
            shutil.copy(folder / f"copy{number}.db", copy)
            if _lines(copy.parent) != _of_memory(folder):
                return [f"copy{number}.db differs"]
    return _lines(folder)


def _of_memory(folder: Path) -> list[str]:
    return [line for line in _lines(folder) if not line.startswith("copy")]


# Notes, items and keyed files

NOTES = [
    "Use ruff for linting.",
    "Tests need a running database.",
    "The port of the API is 8080.",
    "The port of the API is 9090.",
    "Deploy with make deploy.",
    "Never edit generated files under src/gen.",
    "Python 3.12 is required.",
    "Run black before every commit.",
]


def _remember(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        for text in NOTES:
            if f"remembered {text}" not in done:
                memory.notes.remember(text, repo="acme/shop")
                yield f"remembered {text}"
        ids = {note.content: note.id for note in memory.notes.of("acme/shop")}
        for text in NOTES[4:6]:
            if text in ids:
                memory.notes.forget([ids[text]])
            yield f"forgotten {text}"


def _remembered(folder: Path) -> set[str]:
    with memory_in(folder) as memory:
        texts = {note.content for note in memory.store.notes.all()}
    forgotten = {*NOTES[4:6]} - texts
    return {f"remembered {text}" for text in texts | forgotten} | {
        f"forgotten {text}" for text in forgotten
    }


def _old_notes(folder: Path) -> None:
    with memory_in(folder) as memory:
        for number in range(30):
            memory.notes.remember(f"Service {number} listens on port {9000 + number}.")
            memory.notes.remember(f"Service {number} listens on the port {9000 + number}")


def _maintain(folder: Path, done: frozenset[str]) -> Iterator[str]:
    from contextgraph.knowledge import MaintenancePolicy

    with memory_in(folder) as memory:
        memory.maintain(MaintenancePolicy(max_notes=10))
    yield from ()


def _items(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with memory_in(folder) as memory:
        items = memory.items("kills")
        for number in range(CALLS):
            items.save(f"item{number}", f"content {number}")
            yield f"item{number}"
        for number in range(0, CALLS, 5):
            items.save(f"item{number}", f"changed {number}")


def _item_ids(folder: Path) -> set[str]:
    with memory_in(folder) as memory:
        return {item.id for item in memory.items("kills").list(limit=CALLS)}


def _item_lines(folder: Path) -> list[str]:
    with memory_in(folder) as memory:
        return sorted(f"{one.id} {one.content}" for one in memory.items("kills").list(limit=CALLS))


# Each so many calls a key is removed, which is set again before it is changed by hand.
_REMOVED = 12


def _keyed_in(folder: Path) -> KeyedMemory:
    return KeyedMemory(folder / "keyed", max_log_lines=12)


def _write_keyed(folder: Path, done: frozenset[str]) -> Iterator[str]:
    """Set entries, between them change files of entries by hand, as an editor saves them."""
    memory = _keyed_in(folder)
    for number in range(CALLS):
        key, name = f"/user/key{number % 4}", f"call {number}"
        if name in done:
            continue
        if number % 3 == 2 and number > 3:
            _edit(folder / "keyed" / "index" / index_path(key), number)
        else:
            content = None if number % _REMOVED == 0 else {"number": number}
            memory.set_memory(key, content, "agent")
        yield name
    memory.keys()


def _edit(path: Path, number: int) -> None:
    record = orjson.loads(path.read_bytes())
    new = path.with_name("editor~")
    new.write_bytes(orjson.dumps({**record, "content": {"number": number}}))
    new.rename(path)


def _keyed_calls(folder: Path) -> set[str]:
    """Return all calls in log and archive, once hand edits are adopted; removals have no number."""
    _keyed_in(folder).keys()
    root = folder / "keyed"
    paths = [*root.glob("archive/*.jsonl"), *root.glob("log.jsonl")]
    calls = [orjson.loads(line) for path in paths for line in path.read_bytes().splitlines()]
    removed = {f"call {number}" for number in range(0, CALLS, _REMOVED)}
    return removed | {f"call {call['content']['number']}" for call in calls if call["valid"]}


def _keyed_lines(folder: Path) -> list[str]:
    memory = _keyed_in(folder)
    keys = memory.keys()
    found = ((key, memory.get(key)) for key in keys)
    leftover = [path.name for path in (folder / "keyed").rglob("*~")]
    lines = [f"{key} {one.content}" for key, one in found if one]
    return [*lines, *memory.check(), *leftover]


# The service, and hooks


@contextmanager
def _served(folder: Path) -> Iterator[TestClient]:
    """The service of the memory in *folder*, without tokens; runs wait in files there."""
    os.environ["XDG_DATA_HOME"] = str(folder / "data")
    app = create_app(Settings(str(folder / "memory.db")), None, Limits())
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def _serve_learning(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with _served(folder) as client:
        for raw in RUNS:
            answer = client.post("/v1/learn", json=to_record(raw))
            assert answer.status_code in {200, 202}, answer.text
            yield raw.instance_id


def _serve_live(folder: Path, done: frozenset[str]) -> Iterator[str]:
    with _served(folder) as client:
        for raw in RUNS[:6]:
            begun = client.post(
                "/v1/runs/live",
                json={"repo": raw.repo, "task": raw.task, "instance_id": raw.instance_id},
            )
            assert begun.status_code in {200, 201}, begun.text
            path = f"/v1/runs/live/{begun.json()['id']}"
            for number, step in enumerate(raw.steps):
                answer = client.post(
                    f"{path}/observe",
                    json={
                        "action": step.action.text,
                        "observation": step.observation or "",
                        "exit_code": step.exit_code,
                    },
                )
                assert answer.status_code == 200, answer.text
                yield f"{raw.instance_id} {number}"
            answer = client.post(f"{path}/finish", json={})
            assert answer.status_code in {200, 202}, answer.text


def _consolidated_lines(folder: Path) -> list[str]:
    """Return `_lines` without vectors: when a service fits them depends on its load.

    So does by how many runs entities were filled last.
    """
    with memory_in(folder) as memory:
        memory.consolidate()
        for repo in sorted({raw.repo for raw in RUNS}):
            memory.entities.fill(repo)
    return _lines(folder, vectors=False)


def _recovered(folder: Path) -> list[RawTrajectory]:
    """The runs in the memory, once a service has learned what an earlier one left."""
    with _served(folder):
        pass
    with memory_in(folder) as memory:
        return [raw for raw in map(memory.store.runs.raw, memory.store.runs.ids()) if raw]


def _served_instances(folder: Path) -> set[str]:
    return {raw.instance_id for raw in _recovered(folder)}


def _served_steps(folder: Path) -> set[str]:
    kept = _recovered(folder)
    return {f"{raw.instance_id} {number}" for raw in kept for number in range(len(raw.steps))}


def _enqueue(folder: Path, done: frozenset[str]) -> Iterator[str]:
    """Sessions end, and their logs wait for the next `learn --queued`."""
    settings = Settings(str(folder / "memory.db"))
    for number, raw in enumerate(RUNS[:8]):
        path = folder / f"session{number}.jsonl"
        if raw.instance_id not in done:
            part = path.with_suffix(".part")
            with part.open("wb") as file:
                write_jsonl([raw], file)
            part.rename(path)
            HookFiles(settings).enqueue(str(path))
            yield raw.instance_id
    _learn_queued(folder)


def _learn_queued(folder: Path) -> None:
    command = ["learn", "--queued", "--store", str(folder / "memory.db"), "--json"]
    output = os.open(os.devnull, os.O_WRONLY)
    os.dup2(output, 1)
    with suppress(SystemExit):
        command_line(command)


def _queued_instances(folder: Path) -> set[str]:
    _learn_queued(folder)
    return _instances_in(folder)


OPERATIONS = (
    Operation("learn", _learn_each, _run_ids, _lines),
    Operation("forget", _forget, _forgotten, _lines, _learned),
    Operation("learn_many", _learn_many, _run_ids, _lines),
    Operation("live", _live, _run_ids, _without_exposures),
    Operation("consolidate", _consolidate, _consolidated, _lines, _not_consolidated),
    Operation("rebuild", _rebuild, _run_ids, _lines, _learned),
    Operation("reembed", _reembed, _run_ids, _lines, _learned),
    Operation("decide", _decide, _decided, _lines, _learned),
    Operation("report", _report_outcomes, _reported, _lines, _learned, repeats=False),
    Operation("import", _import, _run_ids, _lines, _archive),
    Operation("export", _export, _files, _lines, _learned),
    Operation("backup", _back_up, _files, _copies, _learned),
    Operation("notes", _remember, _remembered, _lines),
    Operation("maintain", _maintain, _nothing, _lines, _old_notes),
    Operation("items", _items, _item_ids, _item_lines),
    Operation("keyed and hand edits", _write_keyed, _keyed_calls, _keyed_lines),
    Operation("service: learn", _serve_learning, _served_instances, _consolidated_lines),
    Operation("service: live", _serve_live, _served_steps, _lines, repeats=False),
    Operation("hooks: queue", _enqueue, _queued_instances, _lines),
)


def _count_events(kill_at: int = 0) -> list[int]:
    """Count commits (before and after), renames, removals and truncations in this process.

    At the one of this number, from 1, the process ends as by ``kill -9``.
    """
    seen = [0]

    def event() -> None:
        seen[0] += 1
        if seen[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        if name in {"os.rename", "os.remove", "os.truncate", "os.rmdir"}:
            event()

    writing = Connections.writing

    @contextmanager
    def counted(self: Connections) -> Iterator[sqlite3.Connection]:
        with writing(self) as connection:
            yield connection
            event()
        event()

    Connections.writing = counted  # type: ignore[method-assign]
    sys.addaudithook(hook)
    return seen


def _in_child(pipe: Connection, work: Callable[[Connection], object]) -> None:
    """Send what *work* yields or returns, at last as a pair with its error."""
    logging.disable()
    os.environ["XDG_DATA_HOME"] = os.environ["XDG_CACHE_HOME"] = str(Path.cwd())
    try:
        value, error = work(pipe), ""
    except BaseException:  # noqa: BLE001  (it is a result)
        value, error = None, traceback.format_exc()
    pipe.send((value, error))
    pipe.close()
    os._exit(0)


def _child(work: Callable[[Connection], object]) -> "tuple[Any, Connection]":
    ours, theirs = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=_in_child, args=(theirs, work))
    child.start()
    theirs.close()
    return child, ours


def _result(work: Callable[[Connection], object]) -> Any:
    """Call *work* in a process of its own and return its result; raise where it fails."""
    child, pipe = _child(work)
    value, error = pipe.recv()
    child.join()
    if error:
        raise RuntimeError(error)
    return value


def _done(operation: Operation, folder: Path, done: frozenset[str], pipe: Connection) -> float:
    """Send each thing as it is acknowledged; the seconds that all took."""
    began = time.perf_counter()
    for acknowledged in operation.act(folder, done):
        pipe.send(acknowledged)
    return time.perf_counter() - began


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """An operation without kills: where it begins, its events, seconds and content."""

    begins_with: Path
    events: int
    seconds: float
    content: list[str]


def undisturbed(operation: Operation, folder: Path) -> Undisturbed:
    """Prepare *operation* in *folder*, and do it there without a kill."""
    before, after = folder / "before", folder / "work"
    before.mkdir(parents=True)
    _result(lambda pipe: operation.prepare(before))
    shutil.copytree(before, after)

    def work(pipe: Connection) -> tuple[int, float, set[str]]:
        events = _count_events()
        began = time.perf_counter()
        acknowledged = {*operation.act(after, frozenset())}
        return events[0], time.perf_counter() - began, acknowledged

    events, seconds, acknowledged = _result(work)
    kept, content = _result(lambda pipe: (operation.kept(after), operation.content(after)))
    if lost := acknowledged - kept:
        raise RuntimeError(f"{operation.name} without a kill lost {sorted(lost)[:3]}")
    shutil.rmtree(after)
    return Undisturbed(before, events, seconds, content)


def kill(number: int, seed: int, operation: Operation, expected: Undisturbed) -> Result:
    """Kill *operation* once, look for what it acknowledged, and do it again."""
    chance = random.Random(f"{seed} {number}")
    # At the same path: it is in what is stored of logs.
    folder = expected.begins_with.with_name("work")
    shutil.copytree(expected.begins_with, folder)
    by_event = chance.random() < 0.5 and expected.events > 0
    event = chance.randint(1, max(1, expected.events)) if by_event else 0
    seconds = chance.uniform(0, 1.1 * expected.seconds)

    def work(pipe: Connection) -> float:
        if event:
            _count_events(event)
        return _done(operation, folder, frozenset(), pipe)

    child, pipe = _child(work)
    if not event:
        time.sleep(seconds)
        child.kill()
    acknowledged: list[str] = []
    try:
        while isinstance(sent := pipe.recv(), str):
            acknowledged.append(sent)
    except (EOFError, OSError):
        pass  # killed; its last message may be cut
    child.join()
    kept, again, lost, different, error = set[str](), [], [], [], ""
    try:
        kept = _result(lambda pipe: operation.kept(folder))
        lost = sorted({*acknowledged} - kept)
        _result(lambda pipe: [*operation.act(folder, frozenset(acknowledged))] and None)
        again = _result(lambda pipe: operation.content(folder))
        if operation.repeats:
            different = _difference(expected.content, again)
    except RuntimeError as failure:
        error = str(failure)
    shutil.rmtree(folder)
    moment = f"event {event} of {expected.events}" if event else f"{seconds:.3f} s"
    killed = child.exitcode == -signal.SIGKILL
    acks = len(acknowledged)
    return Result(number, operation.name, moment, killed, acks, lost, different, error)


def _difference(expected: Sequence[str], found: Sequence[str]) -> list[str]:
    first, second = Counter(expected), Counter(found)
    missing = [f"- {line}" for line in (first - second).elements()]
    return missing + [f"+ {line}" for line in (second - first).elements()]


def main() -> None:
    """Kill and print; exit with 1 where anything was lost or differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("operations", nargs="*", help="names of operations; all by default")
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30, help="end after so many minutes")
    parser.add_argument("--progress", type=Path, help="file of results to go on with")
    options = parser.parse_args()
    chosen = [one for one in OPERATIONS if not options.operations or one.name in options.operations]
    results: list[Result] = []
    if options.progress and options.progress.exists():
        lines = options.progress.read_text().splitlines()
        results = [Result(**orjson.loads(line)) for line in lines]
    until = time.monotonic() + 60 * options.minutes
    with TemporaryDirectory(prefix="contextgraph-kills-") as place:
        os.chdir(place)
        with AgentMemory.open(":memory:") as memory:
            list(memory.learn_many(RUNS))  # what children need is compiled before they are forked
        known: dict[str, Undisturbed] = {}
        for number in range(len(results), options.kills):
            if time.monotonic() > until:
                break
            operation = chosen[number % len(chosen)]
            if operation.name not in known:
                folder = Path(place) / str(len(known))
                known[operation.name] = undisturbed(operation, folder)
            results.append(kill(number, options.seed, operation, known[operation.name]))
            if options.progress:
                with options.progress.open("ab") as file:
                    file.write(orjson.dumps(results[-1]._asdict()) + b"\n")
        os.chdir("/")
    sys.exit(_report(results))


def _report(results: Sequence[Result]) -> bool:
    """Print a line for each operation; whether anything was lost or differs."""
    for name in dict.fromkeys(result.operation for result in results):
        of_it = [result for result in results if result.operation == name]
        wrong = [result for result in of_it if result.lost or result.different or result.error]
        print(
            f"{name}: {len(of_it)} kills, {sum(result.killed for result in of_it)} in time; "
            f"{sum(result.acknowledged for result in of_it)} acknowledged, "
            f"{sum(len(result.lost) for result in of_it)} lost, "
            f"{sum(len(result.different) for result in of_it)} lines differ, "
            f"{sum(bool(result.error) for result in of_it)} errors"
        )
        for result in wrong[:3]:
            print(f"  {result.number} at {result.moment}: lost {result.lost[:2]}")
            print("".join(f"    {line[:300]}\n" for line in result.different[:6]) + result.error)
    return any(result.lost or result.different or result.error for result in results)


if __name__ == "__main__":
    main()
