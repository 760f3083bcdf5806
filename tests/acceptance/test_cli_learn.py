"""``contextgraph learn``."""

import gzip
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from contextgraph.model import Outcome
from contextgraph.model.values import replace
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import recovering_run

KEYS = {
    "source",
    "instance_id",
    "trajectory_id",
    "status",
    "fragments",
    "error_patterns",
    "to_embed",
    "error",
}

PASSWORD = "confidential"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def interrupt(process: "subprocess.Popen[bytes]") -> None:
    """Press Ctrl-C until *process* ends: Python misses one that falls between two reads.

    A second one would also interrupt the end of a process that has seen the first.
    """
    for _ in range(4):
        process.send_signal(signal.SIGINT)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            continue
        return
    process.kill()


def test_learning_prints_a_line_for_each_run_and_a_summary(tmp_path: Path, store: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(1), recovering_run(2)])

    result = contextgraph("learn", runs, "--store", store, "--json")

    *lines, last = result.records
    assert result.code == 0
    assert [line["instance_id"] for line in lines] == ["acme__shop-1", "acme__shop-2"]
    assert all(line.keys() >= KEYS and line["status"] == "created" for line in lines)
    assert last["summary"].pop("seconds") >= 0
    counts = {"records": 2, "created": 2, "unchanged": 0, "updated": 0, "failed": 0, "skipped": 0}
    counts |= {"not_understood": 0}
    more = {"store": str(store), "conflicts": 0, "tokens": 0, "cost": 0}
    assert last == {"summary": counts | more}


def test_learning_again_changes_nothing(tmp_path: Path, store: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(1), recovering_run(2)])
    contextgraph("learn", runs, "--store", store)

    result = contextgraph("learn", runs, "--store", store, "--json")

    assert [line["status"] for line in result.records[:-1]] == ["unchanged", "unchanged"]


def test_a_report_of_outcomes_updates_what_was_learned(tmp_path: Path, store: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(1), recovering_run(2)])
    report = tmp_path / "reports" / "report.json"
    report.parent.mkdir()
    report.write_bytes(orjson.dumps({"resolved_ids": ["acme__shop-2"]}))
    contextgraph("learn", runs, "--store", store)

    result = contextgraph("learn", runs, "--store", store, "--json", "--outcomes", report)

    assert [line["status"] for line in result.records[:-1]] == ["unchanged", "updated"]


def test_an_invalid_record_is_reported_and_skipped(tmp_path: Path, store: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run()], b'{"contextgraph": 1,')

    result = contextgraph("learn", runs, "--store", store, "--json")

    learned, failed, _ = result.records
    assert result.code == 3
    assert (learned["status"], failed["status"]) == ("created", "failed")
    assert failed.keys() >= KEYS
    assert f"contextgraph: {runs}: line 2: " in result.err
    assert "line 2" in failed["error"]


def test_only_invalid_records_are_a_failure(tmp_path: Path, store: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [], b'{"contextgraph": 1,')

    assert contextgraph("learn", runs, "--store", store).code == 1


def test_a_missing_path_is_reported(tmp_path: Path, store: Path) -> None:
    result = contextgraph("learn", tmp_path / "none.jsonl", "--store", store)

    assert (result.code, result.out) == (1, "")
    assert "none.jsonl" in result.err


def test_a_folder_without_trajectories_is_a_failure(tmp_path: Path, store: Path) -> None:
    (tmp_path / "empty").mkdir()

    result = contextgraph("learn", tmp_path / "empty", "--store", store)

    assert result.code == 1
    assert "no trajectory found" in result.err
    assert not store.exists()


def test_what_a_client_keeps_beside_its_sessions_is_skipped_with_a_reason(
    tmp_path: Path, store: Path
) -> None:
    sessions = tmp_path / ".codex" / "sessions" / "2026"
    sessions.mkdir(parents=True)
    log = Path(__file__).parents[1] / "data" / "readers" / "codex-cli" / "rollout.jsonl"
    (sessions / "rollout-1.jsonl").write_bytes(log.read_bytes())
    (tmp_path / ".codex" / "hooks.json").write_text('{"hooks": {"SessionStart": []}}')
    (tmp_path / ".codex" / "auth.json").write_text('{"tokens": null}')
    result = contextgraph("learn", tmp_path / ".codex", "--store", store, "--json")

    assert result.code == 0
    *records, last = result.records
    assert last["summary"]["created"] == 1
    beside = {Path(one["source"]).name for one in records if "kept beside" in (one["error"] or "")}
    assert beside == {"hooks.json", "auth.json"}
    named = contextgraph("learn", tmp_path / ".codex" / "hooks.json", "--store", store)
    assert "unknown format" in named.err


def test_a_line_that_is_skipped_is_told_from_a_file(tmp_path: Path, store: Path) -> None:
    log = Path(__file__).parents[1] / "data" / "readers" / "codex-cli" / "rollout.jsonl"
    first, *rest = log.read_bytes().splitlines(keepends=True)
    file = tmp_path / "rollout.jsonl"
    file.write_bytes(b"".join((first, b'{"timestamp": "2026-01-01T00:00:00Z", "ty\n', *rest)))
    result = contextgraph("learn", file, "--store", store)
    assert f"skipped, the rest is read: {file}: line 2" in result.err


def test_runs_can_come_from_standard_input(tmp_path: Path, store: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run()])
    packed = gzip.compress(runs.read_bytes())

    result = contextgraph("learn", "-", "--store", store, "--json", stdin=packed)

    assert result.code == 0
    assert result.records[0]["status"] == "created"


def test_nobody_vouches_for_data_on_standard_input_but_who_says_so(
    tmp_path: Path, store: Path
) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run()]).read_bytes()
    for given, contributor in (((), "stdin"), (("--source", ""), None)):
        piped = contextgraph("learn", "-", "--store", f"{store}{contributor}", *given, stdin=runs)
        assert ("one source, stdin; if yours: --source ''" in piped.err) == (not given)
        (run,) = contextgraph("runs", "--store", f"{store}{contributor}", "--json").records
        assert (run["contributor"], run["repo"]) == (contributor, "acme/shop")


def test_people_get_a_table(tmp_path: Path, store: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(outcome=Outcome.SOLVED)])

    result = contextgraph("learn", runs, "--store", store)

    assert result.code == 0
    assert "created" in result.out
    assert "unchanged" in result.out


def test_the_consolidation_at_the_end_is_reported_in_one_line(tmp_path: Path, store: Path) -> None:
    runs = write_runs(tmp_path / "many.jsonl", [recovering_run(number) for number in range(16)])
    done = contextgraph("learn", runs, "--json", "--store", store)
    (line,) = [line for line in done.err.splitlines() if "consolidated" in line]
    assert re.fullmatch(
        r"contextgraph: consolidated in [\d.]+ s: "
        r"[1-9]\d* ways? to clear errors new, 0 updated, [01] gone",
        line,
    )
    again = contextgraph("learn", runs, "--store", store)
    assert "consolidated" not in again.err


def test_a_store_that_cannot_be_reached_has_its_own_exit_code(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run()])

    result = contextgraph("learn", runs, "--store", "bolt://localhost:1")

    assert result.code == 4
    assert result.err.startswith("contextgraph: ")


def started(*arguments: str | Path) -> "subprocess.Popen[bytes]":
    """A process of ``contextgraph`` with pipes, which can be interrupted."""
    # In the background a shell has its jobs ignore the interrupt, and children inherit that.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from contextgraph.cli import main; main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize(("workers", "count"), [("1", 20), ("2", 120)])
def test_an_interrupt_stops_cleanly_and_reports_what_is_stored(
    tmp_path: Path, store: Path, workers: str, count: int
) -> None:
    runs = [recovering_run(number) for number in range(count)]
    lines = write_runs(tmp_path / "runs.jsonl", runs).read_bytes()
    process = started("learn", "-", "--store", store, "--workers", workers, "--json")
    assert process.stdin
    assert process.stdout
    assert process.stderr
    # Standard input stays open: more seems to come, so only the interrupt ends the command.
    process.stdin.write(lines + b" " * (1 << 17))
    process.stdin.flush()
    process.stdout.readline()
    interrupt(process)
    *_, last = process.stdout
    err = process.stderr.read()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()

    stored = orjson.loads(last)["summary"]["created"]
    (stats,) = contextgraph("stats", "--store", store, "--json").records
    assert process.returncode == 130
    assert f"interrupted; {stored} runs stored".encode() in err
    assert stats["counts"]["outcomes"]["unknown"] == stored


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a large file that is damaged, small ones, and a report."""
    folder = tmp_path_factory.mktemp("mixed")
    large = [
        replace(recovering_run(number), instance_id=f"acme__tea-{number}", task="x" * 60_000)
        for number in range(40)
    ]
    plain = write_runs(folder / "0.jsonl", large[:20], b'{"contextgraph": 1,')
    (folder / "1.jsonl.gz").write_bytes(
        gzip.compress(write_runs(folder / "1", large[20:]).read_bytes())[:-200]
    )
    (folder / "1").unlink()
    assert plain.stat().st_size > 1 << 20
    write_runs(folder / "2.jsonl", map(recovering_run, range(40)))
    write_runs(folder / "3.jsonl", [recovering_run(3, outcome=Outcome.SOLVED)])
    task, reply = {"role": "user", "content": "Fix it"}, {"role": "assistant", "content": "`ls`"}
    for number in range(1, 67):
        call = {"messages": [task, *[reply, task] * number, reply]}
        (folder / f"call-{number:02}.json").write_bytes(orjson.dumps(call))
    (folder / "report.json").write_bytes(orjson.dumps({"resolved_ids": ["acme__tea-7"]}))
    return folder


@pytest.mark.parametrize(
    "selection",
    [(), ("--filter", "acme__tea-*", "--slice", "3:30:2", "--limit", "12")],
    ids=["all", "some"],
)
def test_several_workers_learn_what_one_process_does(
    tmp_path: Path, mixed: Path, selection: tuple[str, ...]
) -> None:
    learned, listed, counted = [], [], []
    for workers in ("1", "2"):
        memory = tmp_path / f"{workers}.db"
        options = ("--store", memory, "--workers", workers, *selection)
        *lines, last = contextgraph("learn", mixed, *options, "--json").records
        learned.append(lines)
        counted.append({**last["summary"], "store": "", "seconds": 0})
        runs = call("trajectories", memory, limit=500).records[0]["trajectories"]
        listed.append([{**run, "learned_at": None} for run in runs])
    again = contextgraph("learn", mixed, *options, "--json").records[-1]["summary"]

    assert learned[0] == learned[1] != []
    assert counted[0] == counted[1]
    assert listed[0] == listed[1]
    assert (again["created"], again["updated"]) == (0, 0)


def test_a_watched_folder_is_learned_until_the_interrupt(tmp_path: Path, store: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    quiet = write_runs(folder / "runs.jsonl", [recovering_run(1)])
    os.utime(quiet, (0, 0))
    process = started("learn", folder, "--store", store, "--watch", "--json")
    assert process.stdout
    assert process.stderr
    learned, _ = (process.stdout.readline() for _ in range(2))
    quiet = write_runs(tmp_path / "more.jsonl", [recovering_run(2)])
    os.utime(quiet, (0, 0))
    quiet.rename(folder / "more.jsonl")
    later = process.stdout.readline()
    interrupt(process)
    process.communicate()

    lines = [orjson.loads(line) for line in (learned, later)]
    assert [line["instance_id"] for line in lines] == ["acme__shop-1", "acme__shop-2"]
    assert process.returncode == 130


@pytest.mark.parametrize("paths", [["--discover"], ["-"]])
def test_only_files_and_folders_can_be_watched(store: Path, paths: list[str]) -> None:
    result = contextgraph("learn", *paths, "--watch", "--store", store)

    assert result.code == 2
    assert "--watch takes" in result.err


def test_the_line_of_an_unreadable_run_has_the_keys_of_the_others(
    tmp_path: Path, store: Path
) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(1)], b"{broken")

    learned, failed, _summary = contextgraph("learn", runs, "--store", store, "--json").records

    assert failed["status"] == "failed"
    assert list(failed) == list(learned)


def test_where_nothing_was_read_consolidation_is_not_mentioned(
    tmp_path: Path, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "no-memory"
    folder.touch()

    result = contextgraph("learn", tmp_path / "nothing", "--store", folder / "memory.db")

    assert result.code in {1, 4}
    assert "consolidation" not in result.err + caplog.text


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "ftp://localhost:7474",
            "no store is known as ftp://; write a file, :memory:, networkx:, neo4j://",
        ),
        ("bolt://localhost:port", "bolt://localhost:port: its port is not a number below 65536"),
        ("http://localhost:port", "http://localhost:port: its port is not a number below 65536"),
        ("http://[::zz", "http://[::zz: its host is not"),
        ("neo4j://[::zz", "[::1]; correct --store or CONTEXTGRAPH_STORE"),
        (f"http://neo4j:{PASSWORD}@[::zz", "the address of a server: its host is not"),
        (f"bolt://neo4j:{PASSWORD}@localhost", "set CONTEXTGRAPH_NEO4J_USER and"),
    ],
)
def test_an_invalid_address_is_refused_with_a_remedy(
    tmp_path: Path, address: str, message: str
) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(1)])

    result = contextgraph("learn", runs, "--store", address)

    assert result.code == 1
    assert message in result.err
    assert PASSWORD not in result.err


@pytest.mark.parametrize(
    ("variable", "address"),
    [
        ("OPENAI_BASE_URL", "http://[::zz/v1"),
        ("CONTEXTGRAPH_NOTES", "postgresql://[::zz/notes"),
        ("CONTEXTGRAPH_NOTES", "qdrant+http://[::zz:6333"),
    ],
)
def test_an_invalid_address_of_models_or_vectors_is_refused_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, address: str
) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(1)])
    monkeypatch.setenv("CONTEXTGRAPH_EMBEDDER", "openai/text-embedding-3-small")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv(variable, address)
    result = contextgraph("learn", runs, "--store", tmp_path / "memory.db")
    assert result.code == 1
    assert "its host is not" in result.err
    assert f"correct {variable}\n" in result.err
    assert "confidential" not in result.err
