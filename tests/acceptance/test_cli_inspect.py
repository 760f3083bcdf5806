"""``contextgraph inspect`` and ``loops``."""

from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import orjson
import pytest

from contextgraph.model import RawTrajectory
from contextgraph.model.values import replace
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.browser import in_a_browser
from tests.builders import NO_MODULE, recovering_run, run

KEYS = {
    "source",
    "source_format",
    "instance_id",
    "repo",
    "task_type",
    "outcome",
    "total_steps",
    "steps",
    "fragments",
    "loops",
    "recoveries",
}
LOOP_KEYS = {"start", "end", "kind", "length", "severity"}


def looping_run() -> RawTrajectory:
    attempts = [("python reproduce.py", NO_MODULE, 1)] * 5
    return run([("ls", "reproduce.py", 0), *attempts], instance_id="acme__shop-9")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_runs(tmp_path / "runs.jsonl", [recovering_run(), looping_run()])


def test_a_run_of_the_memory_is_shown_without_its_file(runs: Path, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    learned, _, _ = contextgraph("learn", runs, "--store", store, "--json").records
    read, _ = contextgraph("inspect", runs, "--json").records
    runs.unlink()

    (shown,) = contextgraph("inspect", learned["trajectory_id"], "--store", store, "--json").records
    assert shown["steps"] == read["steps"]
    unknown = contextgraph("inspect", "trj_none", "--store", store)
    assert (unknown.code, "no run trj_none in this memory" in unknown.err) == (1, True)


def test_inspect_prints_one_json_line_for_each_run(runs: Path) -> None:
    result = contextgraph("inspect", runs, "--json")

    first, _ = result.records
    assert result.code == 0
    assert first.keys() >= KEYS
    assert first["total_steps"] == len(first["steps"]) == 3
    assert first["steps"][0] == {
        "index": 0,
        "phase": first["steps"][0]["phase"],
        "action": {"tool": "bash", "text": "ls"},
        "error": None,
    }
    error = first["steps"][1]["error"]
    assert error.keys() >= {"family", "type", "template", "location", "keywords"}
    assert (error["family"], error["type"]) == ("python_exception", "ModuleNotFoundError")
    (recovery,) = first["recoveries"]
    assert recovery.keys() >= {"error_step", "recovered_step", "type", "what"}
    assert (recovery["error_step"], recovery["recovered_step"]) == (1, 2)


def test_fragments_cover_every_step_once(runs: Path) -> None:
    for record in contextgraph("inspect", runs, "--json").records:
        covered = [
            step
            for fragment in record["fragments"]
            for step in range(fragment["start"], fragment["end"] + 1)
        ]
        assert covered == list(range(record["total_steps"]))


def test_loops_are_the_same_in_both_commands(runs: Path) -> None:
    inspected = contextgraph("inspect", runs, "--json").records
    looped = call("loops", paths=runs).records

    assert [record["loops"] for record in looped] == [record["loops"] for record in inspected]
    (loop,) = looped[1]["loops"]
    assert loop.keys() >= LOOP_KEYS
    assert (loop["kind"], loop["start"], loop["end"]) == ("same_command_same_error", 1, 5)


def test_people_see_a_timeline(runs: Path) -> None:
    result = contextgraph("inspect", runs)

    assert "✗ ModuleNotFoundError" in result.out
    assert "✓ cleared ModuleNotFoundError of step 1" in result.out
    assert "↻ same command same error, steps 1-5" in result.out


def test_an_instance_that_is_not_there_is_an_error(runs: Path) -> None:
    result = contextgraph("inspect", runs, "--instance", "acme__shop-7")

    assert (result.code, result.out) == (1, "")
    assert "no run of acme__shop-7 among 2 runs" in result.err


def test_a_pipe_gets_plain_text_of_at_most_80_columns(runs: Path) -> None:
    lines = contextgraph("inspect", runs).out.splitlines()

    assert max(map(len, lines)) <= 80
    assert not any(line != line.rstrip() or line.startswith("╭") for line in lines)


def test_with_a_memory_loops_come_with_escape_suggestions(runs: Path, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    contextgraph("learn", runs, "--store", store)

    (loop,) = call("loops", paths=runs, memory=store).records[1]["loops"]
    (escape,) = loop["escape_suggestions"]
    assert "PYTHONPATH=lib" in escape
    assert escape.endswith("(cleared this error in acme__shop-1)")


class Page(HTMLParser):
    """Which elements and links a page has, and whether all elements are closed."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)
        for name, value in attrs:
            assert name not in ("src", "onclick")
            if name == "id":
                self.ids.add(f"#{value}")
            if name == "href":
                self.links.append(str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.open


def test_a_page_shows_every_step_of_the_timeline(runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.html"

    result = contextgraph("inspect", runs, "--html", file)

    page, text = Page(file), file.read_text(encoding="utf-8")
    assert result.out == f"{file}: 2 runs\n"
    assert not page.open
    assert len(page.links) == 3 + 6
    assert {*page.links, "#main"} == page.ids
    assert "script" not in page.names
    assert "✓ cleared ModuleNotFoundError of step 1" in text
    assert "↻ same command same error, steps 1-5" in text


def test_a_browser_opens_the_step_that_is_clicked_in_the_timeline(
    runs: Path, tmp_path: Path
) -> None:
    file = tmp_path / "run.html"
    contextgraph("inspect", runs, "--html", file)

    closed, opened = in_a_browser(file), in_a_browser(file, "#s1-1")

    assert closed.count("<details") == opened.count("<details") == 2 + 3 + 6
    assert ' open="' not in closed
    _, after = opened.split(' open="')
    assert "<summary>1 <code>python reproduce.py" in after[:60]


def test_a_page_shows_logs_as_text(tmp_path: Path) -> None:
    attack = "<script>alert(1)</script>\x1b[31m"
    hostile = run([(attack, attack, 0)], task=attack, patch=f"+{attack}", repo='"><b>/x')
    file = tmp_path / "run.html"

    contextgraph("inspect", write_runs(tmp_path / "runs.jsonl", [hostile]), "--html", file)

    assert {"script", "b"} & {*Page(file).names} == {"b"}
    assert "\x1b" not in file.read_text(encoding="utf-8")
    assert "<ins>+&lt;script&gt;" in file.read_text(encoding="utf-8")


def test_without_a_run_no_page_is_written(runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.html"

    assert contextgraph("inspect", runs, "--html", file, "--instance", "none").code == 1
    assert not list(tmp_path.glob("run.html*"))


def test_a_memory_that_does_not_exist_is_an_error(runs: Path, tmp_path: Path) -> None:
    result = call("loops", paths=runs, memory=tmp_path / "none.db")

    assert result.code == 1
    assert "learn something first" in result.err


def test_one_step_of_one_run_can_be_shown_in_full(runs: Path) -> None:
    result = contextgraph("inspect", runs, "--instance", "acme__shop-1", "--step", "1")

    assert "acme__shop-1 step 1" in result.out
    assert 'File "/shop/reproduce.py", line 1' in result.out
    assert "acme__shop-9" not in result.out


def test_a_step_is_shown_with_what_a_person_said_then_and_without_sub_agents(
    tmp_path: Path,
) -> None:
    said = run([("ls", "lids", 0)], instance_id="talk")
    steps = (replace(said.steps[0], user_message="No, glass."),)
    sub = replace(recovering_run(instance_id="talk"), agent="claude-code/subagent")
    path = write_runs(tmp_path / "runs.jsonl", [replace(said, steps=steps), sub])
    result = contextgraph("inspect", path, "--instance", "talk", "--step", "0")
    assert (result.out.count("talk step 0"), "person\nNo, glass." in result.out) == (1, True)
    assert contextgraph("inspect", path, "--instance", "talk", "--step", "2").code == 1


def test_a_step_that_no_run_has_is_an_error(runs: Path) -> None:
    result = contextgraph("inspect", runs, "--step", "99")
    assert (result.code, result.out) == (1, "")
    assert "no step 99; the last is" in result.err


def test_an_invalid_record_is_reported_and_the_others_are_shown(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run()], b"{")

    result = contextgraph("inspect", runs, "--json")

    assert result.code == 3
    assert len(result.records) == 1
    assert f"{runs}: line 2: " in result.err


def test_control_sequences_in_a_log_are_removed(tmp_path: Path) -> None:
    hostile = run([("echo \x1b]0;title\x07\x1b[2J\x1b[31mred", "\x1b[2Jdone", 0)])
    runs = write_runs(tmp_path / "runs.jsonl", [hostile])

    assert "\x1b" not in contextgraph("inspect", runs).out
    assert "\x1b" not in contextgraph("inspect", runs, "--step", "0").out


def test_secrets_are_masked(tmp_path: Path) -> None:
    secret = "ghp_" + sha256(b"any").hexdigest()[:36]
    leaky = run([(f"export TOKEN={secret}", secret, 0)], task=f"use {secret} to log in")
    runs = write_runs(tmp_path / "runs.jsonl", [leaky])

    for arguments in ((), ("--json",), ("--step", "0")):
        assert secret not in contextgraph("inspect", runs, *arguments).out


def test_a_run_without_steps_is_shown(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [run([])])

    assert contextgraph("inspect", runs, "--json").records[0]["fragments"] == []
    assert "no steps" in contextgraph("inspect", runs).out


def test_inspecting_creates_no_files(runs: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))

    contextgraph("inspect", runs)

    assert sorted(tmp_path.rglob("*")) == before


def test_the_middle_of_a_long_loop_is_left_out(tmp_path: Path) -> None:
    stuck = run([("python reproduce.py", NO_MODULE, 1)] * 30)
    out = contextgraph("inspect", write_runs(tmp_path / "stuck.jsonl", [stuck])).out
    assert "… 19 more steps of this loop" in out
    assert out.count("✗") == 11


def test_a_conversation_is_shown_turn_by_turn(tmp_path: Path) -> None:
    messages = [("user", "Which kettle?"), ("assistant", "Steel."), ("user", "No, glass.")]
    file = tmp_path / "talk.json"
    file.write_bytes(orjson.dumps([{"role": role, "content": said} for role, said in messages]))
    out = contextgraph("inspect", file).out
    assert "agent  Steel." in out
    assert "person No, glass." in out
