"""``contextgraph export`` and ``import``."""

import json
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from contextgraph import AgentMemory
from contextgraph.knowledge.lessons import Lessons
from contextgraph.learning.forgetting import Forgetting
from contextgraph.learning.writer import MemoryWriter
from contextgraph.memory.exported import Exports
from contextgraph.model import Action, Holdings, Step
from contextgraph.model.values import replace
from contextgraph.readers import SkippedError, read
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import recovering_run
from tests.marked import REPO, SESSION, marked_files, marked_run, remember_marked


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A memory of two runs."""
    path = write_runs(tmp_path / "runs.jsonl", [recovering_run(1), recovering_run(2)])
    assert contextgraph("learn", path, "--store", tmp_path / "memory.db").code == 0
    return tmp_path / "memory.db"


def test_a_memory_can_be_moved_to_another_file_and_tenant(store: Path, tmp_path: Path) -> None:
    archive, other = tmp_path / "a.jsonl.zst", tmp_path / "other.db"
    exported = contextgraph("export", archive, "--store", store, "--json")
    place = ("--store", other, "--tenant", "team")
    imported = contextgraph("import", archive, "--as-owner", *place, "--json")

    assert (exported.code, imported.code) == (0, 0)
    assert exported.records[0]["runs"] == imported.records[0]["created"] == 2
    (known,) = contextgraph("stats", "--store", store, "--json").records
    (moved,) = contextgraph("stats", "--store", other, "--tenant", "team", "--json").records
    assert moved["counts"] == known["counts"]


def test_a_memory_that_waits_to_be_consolidated_is_healthy_where_it_is_imported(
    store: Path, tmp_path: Path
) -> None:
    runs, archive, other = tmp_path / "more.jsonl", tmp_path / "a.jsonl", tmp_path / "other.db"
    write_runs(runs, map(recovering_run, range(3, 20)))
    assert contextgraph("learn", runs, "--store", store).code == 0  # consolidated
    write_runs(runs, [recovering_run(20)])
    assert contextgraph("learn", runs, "--store", store).code == 0  # waits
    contextgraph("export", archive, "--store", store)
    assert contextgraph("import", archive, "--as-owner", "--store", other).code == 0
    doctor = contextgraph("doctor", "--store", other, "--json")
    (check,) = (one for one in doctor.records[0]["checks"] if one["name"] == "consolidation")
    assert (check["ok"], check["detail"]) == (True, "0 runs not consolidated")


def test_two_memories_with_spaces_of_their_own_are_whole_after_an_import(tmp_path: Path) -> None:
    archive, first, second = tmp_path / "a.jsonl.zst", tmp_path / "1.db", tmp_path / "2.db"
    for store, numbers in ((first, range(12)), (second, range(20, 40))):
        runs = [
            recovering_run(number, task=f"Totals of {number} {store.name}") for number in numbers
        ]
        contextgraph("learn", write_runs(tmp_path / "runs.jsonl", runs), "--store", store)
    contextgraph("export", archive, "--store", first)
    imported = contextgraph("import", archive, "--as-owner", "--store", second)
    assert (imported.code, "reembed" in imported.err) == (0, False)
    with AgentMemory.open(second) as memory:
        assert memory.spaces.waiting() == 0


def test_importing_reports_what_was_unchanged(store: Path, tmp_path: Path) -> None:
    contextgraph("export", tmp_path / "a.jsonl", "--store", store)

    result = contextgraph("import", tmp_path / "a.jsonl", "--store", store)

    assert result.code == 0
    assert "2 runs: 0 created, 0 updated, 2 unchanged" in result.out


@pytest.mark.parametrize("options", [(), ("--as-owner",)])
def test_a_damaged_file_is_reported_with_its_line(
    store: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / "a.jsonl"
    contextgraph("export", path, "--store", store)
    path.write_bytes(path.read_bytes()[:-20])

    result = contextgraph("import", path, *options, "--store", tmp_path / "new.db")

    assert result.code == 1
    assert "a.jsonl: line" in result.err
    assert not (tmp_path / "new.db").exists()


def test_an_import_that_is_refused_creates_no_memory(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    contextgraph("export", path, "--store", store)

    result = contextgraph("import", path, "--source", "no name", "--store", tmp_path / "new.db")

    assert result.code == 1
    assert not (tmp_path / "new.db").exists()


def test_exporting_a_memory_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    result = contextgraph("export", tmp_path / "a.jsonl", "--store", tmp_path / "absent.db")

    assert result.code == 1
    assert "learn something first" in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file_format", ["graphml", "json"])
def test_the_graph_is_exported_with_all_nodes_and_relations(
    store: Path, tmp_path: Path, file_format: str
) -> None:
    path = tmp_path / "graph"
    result = contextgraph("export", path, "--format", file_format, "--store", store, "--json")

    (stats,) = contextgraph("stats", "--store", store, "--json").records
    if file_format == "graphml":
        graph = nx.read_graphml(path, force_multigraph=True)
    else:
        graph = nx.node_link_graph(json.loads(path.read_text()), edges="edges")
    assert result.code == 0
    labels = Counter(own["label"] for _, own in graph.nodes(data=True))
    types = Counter(own["type"] for *_, own in graph.edges(data=True))
    assert labels - Counter(File=labels["File"]) == Counter(stats["counts"]["nodes"])
    uncounted = Counter(TOUCHED=types["TOUCHED"], MET=types["MET"])
    assert types - uncounted == Counter(stats["counts"]["edges"])
    assert {"TOUCHED", "MET"} <= types.keys()
    assert result.records[0]["nodes"] == graph.number_of_nodes()
    assert {label for _, label in graph.nodes(data="label")} >= {"Trajectory", "ErrorPattern"}


def test_runs_are_exported_as_atif(store: Path, tmp_path: Path) -> None:
    result = contextgraph("export", tmp_path / "atif", "--format", "atif", "--store", store)

    assert result.code == 0
    runs = list(read(tmp_path / "atif"))
    assert [run.source_format for run in runs] == ["atif", "atif"]
    assert {len(run.steps) for run in runs} == {3}
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "atif").iterdir()} == {0o600}


def test_what_tasks_agree_on_becomes_a_section_that_the_next_export_replaces(
    tmp_path: Path,
) -> None:
    runs = [recovering_run(number, instance_id=f"acme__shop-{number}") for number in (1, 2, 3)]
    store, file = tmp_path / "memory.db", tmp_path / "AGENTS.md"
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", runs), "--store", store)
    file.write_text("# Rules\n\nBe brief.\n")

    arguments = ("export", file, "--agents-md", "acme/shop", "--store", store)
    change = contextgraph(*arguments, "--diff").out
    assert file.read_text() == "# Rules\n\nBe brief.\n"
    for _ in range(2):
        result = contextgraph(*arguments)

    text = file.read_text()
    added = [line[1:] for line in change.splitlines() if line[:1] == "+" and line[:3] != "+++"]
    assert "\n".join(added).strip() in text
    assert len(added) <= 40
    assert result.code == 0
    assert text.startswith("# Rules\n\nBe brief.\n\n<!-- contextgraph: begin")
    assert text.count("## What earlier runs in acme/shop show") == 1
    assert "`No module named 'tariffs'`: set `PYTHONPATH=lib`" in text
    assert "[3 of 3 tasks here]" in text


def test_what_one_named_source_alone_shows_is_no_instruction_for_agents(tmp_path: Path) -> None:
    runs = [recovering_run(number, instance_id=f"acme__shop-{number}") for number in (1, 2, 3)]
    store, file = tmp_path / "memory.db", tmp_path / "AGENTS.md"
    path = write_runs(tmp_path / "runs.jsonl", runs)
    contextgraph("learn", path, "--source", "bob", "--store", store)
    result = contextgraph("export", file, "--agents-md", "acme/shop", "--store", store, "--diff")
    assert "PYTHONPATH" not in result.out


def test_nothing_is_written_of_a_repository_where_no_tasks_agree(
    store: Path, tmp_path: Path
) -> None:
    result = contextgraph(
        "export", tmp_path / "A.md", "--agents-md", "acme/other", "--store", store
    )

    assert result.code == 1
    assert "no two tasks of acme/other" in result.err
    assert not (tmp_path / "A.md").exists()


def test_forgetting_a_session_changes_the_files_that_were_exported(tmp_path: Path) -> None:
    store, notes = tmp_path / "memory.db", tmp_path / "AGENTS.md"
    with AgentMemory.open(store) as memory:
        remember_marked(memory)
    notes.write_text("# Ours\n")
    for path, *options in (
        ("a.jsonl",),
        ("graph.graphml", "--format", "graphml"),
        ("atif", "--format", "atif"),
        ("AGENTS.md", "--agents-md", REPO),
    ):
        assert contextgraph("export", tmp_path / path, *options, "--store", store).code == 0
    assert contextgraph("backup", tmp_path / "b.db", "--store", store).code == 0
    assert len(marked_files(tmp_path)) == 8
    gone = tmp_path / "unreadable.jsonl"
    contextgraph("export", gone, "--store", store)
    gone.write_text("changed by hand\n")
    report = tmp_path / "receipt.html"
    contextgraph("receipt", "--html", report, "--store", store)

    done = contextgraph("forget", "--session", SESSION, "--yes", "--store", store)
    assert f"exported before, and not changed: {gone}, {report}\n" in done.err
    assert marked_files(tmp_path) == [report.name]
    assert notes.read_text().strip() == "# Ours"
    left = call("trajectories", store, limit=500).records[0]["trajectories"]
    assert {run["repo"] for run in left} == {"acme/shop"}
    assert len([*(tmp_path / "atif").iterdir()]) == len(left) == 16


@pytest.mark.parametrize("killed", ["before the runs go", "after the runs went"])
def test_a_killed_forget_leaves_no_export_behind_when_it_is_repeated(
    tmp_path: Path, killed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "memory.db"
    with AgentMemory.open(store) as memory:
        remember_marked(memory)
    for path, *options in (
        ("a.jsonl",),
        ("graph.graphml", "--format", "graphml"),
        ("AGENTS.md", "--agents-md", REPO),
    ):
        assert contextgraph("export", tmp_path / path, *options, "--store", store).code == 0

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    of, name = (Forgetting, "forget") if killed.startswith("before") else (Exports, "rewrite")
    with monkeypatch.context() as during:
        during.setattr(of, name, kill)
        assert contextgraph("forget", "--session", SESSION, "--yes", "--store", store).code == 130
    assert marked_files(tmp_path) != []
    contextgraph("forget", "--session", SESSION, "--yes", "--store", store)
    assert marked_files(tmp_path) == []


def test_a_session_that_is_learned_again_while_it_is_forgotten_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "memory.db"
    with AgentMemory.open(store) as memory:
        run = remember_marked(memory)[0]
        raw = memory.store.runs.raw(run)
    assert raw
    grown = replace(raw, steps=(*raw.steps, Step(len(raw.steps), "", Action("bash", "ls"), "ok")))
    holdings, calls = Forgetting.holdings, list[int]()

    def outrun(self: Forgetting, *asked: Collection[str]) -> Holdings:
        """Find nothing at first: the run got another id while all were looked at."""
        calls.append(1)
        if len(calls) != 1:
            return holdings(self, *asked)
        with AgentMemory.open(store) as other:
            assert other.learn(grown).trajectory_id != run
        return Holdings()

    monkeypatch.setattr(Forgetting, "holdings", outrun)
    with AgentMemory.open(store) as memory:
        assert memory.forget(sessions=[SESSION]) > 0
    assert marked_files(tmp_path) == []


def test_no_lesson_is_kept_of_a_session_that_is_forgotten_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, add = tmp_path / "memory.db", Lessons.add

    def outrun(self: Lessons, *given: Any) -> None:
        with AgentMemory.open(store) as other:
            other.forget(sessions=[SESSION])
        add(self, *given)

    monkeypatch.setattr(Lessons, "add", outrun)
    with AgentMemory.open(store) as memory:
        memory.learn(marked_run(1))
        assert [*memory.store.notes.all()] == []


def test_what_is_forgotten_after_a_writer_looked_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replace(recovering_run(1), session="session-1")
    grown = replace(run, steps=(*run.steps, Step(len(run.steps), "", Action("bash", "ls"), "ok")))
    check, calls = MemoryWriter._check_forgotten, list[int]()
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        learned = memory.learn(run).trajectory_id

        def outrun(self: MemoryWriter, *asked: Any) -> None:
            check(self, *asked)
            calls.append(1)
            if len(calls) == 1:
                with AgentMemory.open(tmp_path / "memory.db") as other:
                    other.forget([learned])

        monkeypatch.setattr(MemoryWriter, "_check_forgotten", outrun)
        with pytest.raises(SkippedError, match="forgotten"):
            memory.learn(grown)
        assert memory.store.runs.ids() == []


@pytest.mark.parametrize("named", ["by its client", "by the list of sessions"])
def test_a_log_of_a_forgotten_session_is_skipped_but_for_again(tmp_path: Path, named: str) -> None:
    store, run = tmp_path / "memory.db", replace(recovering_run(1), session="session-1")
    logs = write_runs(tmp_path / "runs.jsonl", [run, recovering_run(2)])
    contextgraph("learn", logs, "--store", store)
    listed = contextgraph("sessions", "--store", store, "--json").records
    (listed_as,) = (one["id"] for one in listed if one.get("name") == "session-1")
    name = "session-1" if named == "by its client" else listed_as
    forgotten = contextgraph("forget", "--session", name, "--yes", "--store", store)
    assert "`learn PATH --again`" in forgotten.err

    skipped = contextgraph("learn", logs, "--store", store, "--json")
    again = contextgraph("learn", logs, "--again", "--store", store, "--json")

    assert (skipped.code, again.code) == (0, 0)
    assert [one["status"] for one in skipped.records[:-1]] == ["skipped", "unchanged"]
    assert [one["status"] for one in again.records[:-1]] == ["created", "unchanged"]


def test_an_older_archive_of_ones_own_brings_no_forgotten_session_back(tmp_path: Path) -> None:
    store, kept = tmp_path / "memory.db", tmp_path / "moved.jsonl"
    with AgentMemory.open(store) as memory:
        remember_marked(memory)
        memory.export(tmp_path / "older.jsonl")
    (tmp_path / "older.jsonl").rename(kept)
    contextgraph("forget", "--session", SESSION, "--yes", "--store", store)
    assert marked_files(tmp_path) == [kept.name]

    done = contextgraph("import", kept, "--as-owner", "--store", store)

    assert "left out: 3 runs of sessions that were forgotten here" in done.err
    assert "16 runs: 0 created" in done.out
    assert marked_files(tmp_path) == [kept.name]


def test_an_archive_takes_no_later_decision_back(tmp_path: Path) -> None:
    archive, run = tmp_path / "a.jsonl", replace(recovering_run(1), session="session-1")
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        memory.learn(run)
        memory.forget(sessions=["session-1"])
        memory.learn_again([run])
        memory.export(archive)
        memory.learn(run)
        memory.forget(sessions=["session-1"])
        memory.import_archive(archive, as_owner=True)
        with pytest.raises(SkippedError, match="forgotten"):
            memory.learn(run)


def test_the_session_of_a_forgotten_sub_agent_is_learned_on(tmp_path: Path) -> None:
    main = replace(recovering_run(1), session="session-1")
    looking = Step(0, "", Action("bash", "grep -rn rounding shop"), "shop/cart.py:4: rounding")
    helper = replace(main, agent="claude-code/subagent", task="Look for it", steps=(looking,))
    helper = replace(helper, started_at=datetime.now(UTC))
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        memory.learn(main)
        memory.forget([memory.learn(helper).trajectory_id])
        assert memory.learn(main).status == "unchanged"
        with pytest.raises(SkippedError, match="forgotten"):
            memory.learn(helper)
        memory.forget(sessions=["session-1"])
        for run in (main, replace(helper, started_at=None)):
            with pytest.raises(SkippedError, match="forgotten"):
                memory.learn(run)
        memory.learn_again([helper])
        assert memory.learn(helper).status == "created"


def test_an_export_that_was_moved_is_named_and_a_note_goes_with_its_source(tmp_path: Path) -> None:
    store, export = tmp_path / "memory.db", tmp_path / "a.jsonl"
    with AgentMemory.open(store) as memory:
        memory.learn(recovering_run(1))
        memory.notes.remember("The zqmarker build needs tox", source="carol")
    assert contextgraph("export", export, "--store", store).code == 0
    export.rename(tmp_path / "moved.jsonl")

    done = contextgraph("forget", "--source", "carol", "--yes", "--store", store)

    assert "removed 0 runs and 1 note" in done.out
    assert f"exported before, and not there now: {export}\n" in done.err
    assert marked_files(tmp_path) == ["moved.jsonl"]


def test_forgetting_a_repository_takes_its_notes_and_what_distilling_wrote(
    tmp_path: Path,
) -> None:
    store = tmp_path / "memory.db"
    with AgentMemory.open(store) as memory:
        run = remember_marked(memory)[0]
        memory.notes.remember("The zqmarker build needs tox", repo=REPO)
    log = tmp_path / "memory.distil" / "log.jsonl"
    log.parent.mkdir()
    refused = [{"text": "zqmarker", "reason": "no such word"}]
    receipt = {"at": "2026-03-01T12:00:00Z", "run": run, "status": "done", "refused": refused}
    log.write_text(json.dumps(receipt) + "\n")
    requests = tmp_path / "requests"
    contextgraph("distil", "--write-requests", requests, "--store", store)
    assert any(name.startswith("requests/") for name in marked_files(tmp_path))
    done = contextgraph("forget", "--repo", REPO, "--yes", "--store", store)
    assert "removed 3 runs and " in done.out
    assert marked_files(tmp_path) == []
