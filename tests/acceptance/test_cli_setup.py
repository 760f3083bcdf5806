"""``contextgraph setup``: from nothing to a memory that advises."""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory
from contextgraph.agents.install import AGENTS
from contextgraph.config import data_folder, load_settings
from contextgraph.knowledge.lessons import NewLesson
from contextgraph.model import LearnReceipt, LessonFacts, LessonKind, Origin, Quotation
from tests.acceptance.command_line import contextgraph, write_runs
from tests.builders import NO_MODULE, NOON, detouring_run, recovering_run, run

SESSION = [
    {"type": "user", "message": {"role": "user", "content": "Totals are wrong"}},
    {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "t1",
                    "name": "Bash",
                    "input": {"command": "python3 -m pytest -q"},
                }
            ],
        },
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "3 passed"}],
        },
    },
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two sessions of Claude Code, one of them newer."""
    folder = tmp_path / "home" / ".claude" / "projects" / "shop"
    folder.mkdir(parents=True)
    for number in (1, 2):
        lines = [
            {"cwd": "/shop", "sessionId": f"s{number}", "uuid": f"{number}{index}", **line}
            for index, line in enumerate(SESSION)
        ]
        lines[0]["message"] = {"role": "user", "content": f"Totals of order {number} are wrong"}
        (folder / f"s{number}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "home"


def test_one_command_learns_shows_and_connects(home: Path) -> None:
    result = contextgraph("setup", "--yes", "--json")

    assert result.code == 0
    (record,) = result.records
    assert record["histories"][0]["agent"] == "claude-code"
    assert record["card"]["sessions"] == 2
    (agent,) = record["agents"]
    assert (agent["agent"], agent["hooks"]) == ("claude-code", True)
    assert "claude mcp add" in agent["tools"]
    assert "hooks" in json.loads((home / ".claude" / "settings.json").read_text())
    assert any("receipt" in step for step in record["try"])


def test_it_offers_to_search_by_meaning_and_begins_it_where_it_is_asked_for(home: Path) -> None:
    (record,) = contextgraph("setup", "--yes", "--no-agents", "--json").records
    offer = record["by_meaning"]
    assert (offer["passages"], offer["minutes"], offer["is_started"]) == (2, 1, False)
    assert any("by meaning, too" in step for step in record["try"])

    (done,) = contextgraph("call", "embed", "embedder=local").records
    assert done == {"passages": 2}
    (record,) = contextgraph("setup", "--yes", "--no-agents", "--json").records
    assert record["by_meaning"] is None


def test_what_it_says_to_try_is_a_command(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextgraph.cli.installation.find_spec", lambda name: None)
    (record,) = contextgraph("setup", "--yes", "--no-agents", "--json").records
    steps = [shlex.split(step, comments=True) for step in record["try"]]
    assert ["pip", "install", ".[local]"] in steps


def test_it_promises_no_advice_that_saves_nothing(home: Path, tmp_path: Path) -> None:
    learned = [recovering_run(number) for number in (1, 2, 3)]
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", learned))

    (record,) = contextgraph("setup", "--yes", "--no-agents", "--json").records
    assert record["card"]["errors"] == []
    assert record["try"][0].endswith("No module named 'tariffs'\"")


def test_it_proposes_an_error_as_a_run_met_it(home: Path, tmp_path: Path) -> None:
    learned = [detouring_run(number) for number in (1, 2, 3)]
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", learned))

    (record,) = contextgraph("setup", "--yes", "--no-agents", "--json").records
    assert record["card"]["errors"][0]["error"].endswith("No module named <name>")
    assert record["try"][0].endswith("No module named 'tariffs'\"")


@pytest.mark.parametrize(("letters", "is_proposed"), [(60, True), (160, False)])
def test_it_proposes_no_part_of_an_error(
    home: Path, tmp_path: Path, letters: int, is_proposed: bool
) -> None:
    name = "t" * letters
    missing = NO_MODULE.replace("tariffs", name)
    steps = [("python reproduce.py", missing, 1), ("PYTHONPATH=lib python reproduce.py", "ok", 0)]
    learned = [run(steps, instance_id=f"acme__shop-{number}") for number in (1, 2, 3)]
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", learned))

    (record,) = contextgraph("setup", "--yes", "--no-agents", "--json").records
    queries = [step for step in record["try"] if " query " in step]
    assert [name in step for step in queries] == [True] * is_proposed


def test_it_can_be_run_again(home: Path) -> None:
    first = contextgraph("setup", "--yes")
    settings = (home / ".claude" / "settings.json").read_text()
    second = contextgraph("setup", "--yes")

    assert (first.code, second.code) == (0, 0)
    assert "2 sessions learned" in first.err
    assert "nothing new in 2 files" in second.err
    assert "2 sessions" in second.out
    assert (home / ".claude" / "settings.json").read_text() == settings


def test_it_says_that_forgotten_sessions_are_left_out(home: Path) -> None:
    contextgraph("setup", "--yes")
    contextgraph("forget", "--all", "--yes")
    again = contextgraph("setup", "--yes")
    assert "2 sessions left out (forgotten); `contextgraph learn --discover --again`" in again.err
    assert "2 sessions" in contextgraph("learn", "--discover", "--again", "--yes").out


def test_what_is_known_is_counted_apart_from_what_is_read_again(home: Path) -> None:
    contextgraph("setup", "--yes", "--no-agents")
    session = next((home / ".claude").rglob("*.jsonl"))
    session.with_name("copy.jsonl").write_bytes(session.read_bytes())
    again = contextgraph("setup", "--yes", "--no-agents")
    assert "2 files known and unchanged, 1 to read" in again.err
    assert "0 sessions learned in 0 s; 1 beside were known, or are copies" in again.err


def test_copies_of_sessions_are_counted_apart(home: Path) -> None:
    session = next((home / ".claude").rglob("*.jsonl"))
    session.with_name("copy.jsonl").write_bytes(session.read_bytes())
    done = contextgraph("setup", "--yes", "--no-agents")
    assert "2 sessions learned" in done.err
    assert "; 1 beside were known, or are copies" in done.err
    assert done.out.splitlines()[3].startswith("2 sessions")


def test_nothing_is_written_without_a_yes(home: Path) -> None:
    result = contextgraph("setup")

    assert result.code == 0
    assert "Learn 2 new files" in result.err
    assert "--yes" in result.err
    assert not Path(load_settings().address).exists()
    assert not (home / ".claude" / "settings.json").exists()
    assert "contextgraph learn PATH" in result.out


def test_a_machine_without_histories_says_what_to_do(tmp_path: Path) -> None:
    result = contextgraph("setup", "--yes", "--no-agents", "--store", tmp_path / "m.db")

    assert result.code == 0
    assert "contextgraph learn PATH" in result.err
    first, *steps = result.out.splitlines()[1:]
    assert first.split()[0] == "scripts/demo"
    for step in steps[:2]:  # what it says to type works in a clone
        name, *arguments = shlex.split(step, comments=True)
        done = contextgraph(*arguments, "--store", tmp_path / "m.db")
        assert (name, done.code) == ("contextgraph", 0)
    assert "PYTHONPATH=lib" in done.out


def test_the_card_says_what_costs_most_what_was_said_most_and_what_comes(
    home: Path, tmp_path: Path
) -> None:
    learned = [detouring_run(number) for number in (1, 2, 3)]
    helper = detouring_run(4, agent="claude-code/subagent")
    nowhere = detouring_run(5, repo="")
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", [*learned, helper, nowhere]))
    with AgentMemory.open(load_settings().address) as memory:
        for times, text in enumerate(("Ship on Mondays.", "Round invoices once."), start=1):
            said = tuple(
                Quotation(f"{text} {number}", f"trj_{number}", f"s{number}", 0, NOON)
                for number in range(times)
            )
            facts = LessonFacts(LessonKind.DECISION, Origin.SAID, evidence=said, is_active=True)
            memory.lessons.keep([NewLesson(text, facts)], "acme/shop")
        counted = tuple(Quotation(f"{number}", "", f"s{number}", 0, NOON) for number in range(9))
        facts = LessonFacts(LessonKind.RULE, Origin.COUNTED, evidence=counted, is_active=True)
        memory.lessons.keep([NewLesson("People refused `git push`.", facts)], "acme/shop")
    (home / ".claude" / "projects" / "shop" / "broken.jsonl").write_text("not json")
    done = contextgraph("setup", "--yes", "--no-agents")
    assert "6 sessions with 1 sub-agent, 2 repositories" in done.out
    assert "6 sessions of 2 repositories" in contextgraph("stats").out
    costly = "5 tasks lost 10 steps"
    assert f"Costliest: {costly} to ModuleNotFoundError" in done.out
    assert f"{costly}: ModuleNotFoundError" in contextgraph("stats").out
    assert "Said most, in 2 sessions, in acme/shop:\n  Round invoices once." in done.out
    assert "From now on" in done.out
    assert "methodolog" not in done.out + done.err
    (left,) = [line for line in done.err.splitlines() if "left out" in line]
    assert "1 left out (1 damaged)" in left
    assert "broken.jsonl" not in done.err


def test_after_an_interrupt_setup_shows_and_consolidates_what_it_learned(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn_many = AgentMemory.learn_many

    def interrupted(memory: AgentMemory, *runs: Any, **options: Any) -> Iterator[LearnReceipt]:
        yield next(learn_many(memory, *runs, **options))
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(AgentMemory, "learn_many", interrupted)
        done = contextgraph("setup", "--yes", "--no-agents")
    assert (done.code, "interrupted; 1 run stored" in done.err) == (0, True)
    assert "2 sessions" in done.out
    with AgentMemory.open(load_settings().address) as memory:
        assert memory.store.admin.unconsolidated().trajectories == 0


def test_the_card_never_cuts_a_decision(home: Path) -> None:
    long = "Round once, at the end; " * 8 + "never before the discount."
    with AgentMemory.open(load_settings().address) as memory:
        memory.learn(recovering_run(1))

        def keep(text: str) -> None:
            said = (Quotation(text, "trj_1", "s1", 0, NOON),)
            facts = LessonFacts(LessonKind.DECISION, Origin.SAID, evidence=said, is_active=True)
            memory.lessons.keep([NewLesson(text, facts)], "acme/shop")

        keep(long)
        shown = contextgraph("setup", "--yes", "--no-agents").out
        assert long in " ".join(shown.split())
        assert "…" not in shown
        keep("Ship on Mondays.")
        again = contextgraph("setup", "--yes", "--no-agents").out
        assert "Decided, in acme/shop:\n  Ship on Mondays." in again


def test_no_agents_only_learns(home: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "m.db")
    (record,) = contextgraph("setup", "--yes", "--no-agents", "--json", "--store", store).records

    assert record["agents"] == []
    assert not (home / ".claude" / "settings.json").exists()
    with AgentMemory.open(store, read_only=True) as memory:
        assert len(memory.store.runs.ids()) == 2


def test_what_is_never_to_be_learned_is_left_out(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NEVER_LEARN", "/shop")
    (record,) = contextgraph("setup", "--yes", "--no-agents", "--json").records
    assert record["card"] is None


# Adds and removes servers of tools as the programs of clients do, and writes the file in its way.
CLIENT = """#!{python}
import json, os, sys
name, file = sys.argv[2], os.path.join({home!r}, {file!r})
text = open(file).read() if os.path.exists(file) else ""
table = "[mcp_servers.contextgraph]\\n"
if file.endswith(".toml"):
    rest = text.partition(table)[0].rstrip() + "\\n"
    text = rest + table + "command = %s\\n" % json.dumps(sys.argv[-1]) if name == "add" else rest
else:
    config = json.loads(text or "{{}}")
    servers = config.setdefault("mcpServers", {{}})
    if name == "add":
        servers["contextgraph"] = {{"command": sys.argv[-1]}}
    else:
        servers.pop("contextgraph", None)
    text = json.dumps(config, indent=2)
open(file, "w").write(text)
"""
JSON = '{"numStartups":3,\n\t"theme": "dark"}'
TOML = 'model = "o3"\n\n\n[tui]  # mine\nnotifications=true'


def client(home: Path, program: str, file: str) -> None:
    """Put a stand-in for the *program* of an agent on the path; it keeps its tools in *file*."""
    path = home.parent / program
    path.write_text(CLIENT.format(python=sys.executable, home=str(home), file=file))
    path.chmod(0o700)


def tree(home: Path) -> dict[str, bytes | None]:
    """Return the content of files below *home*, but for the memory; None for a folder."""
    return {
        str(path.relative_to(home)): path.read_bytes() if path.is_file() else None
        for path in home.rglob("*")
        if not f"{path}/".startswith(str(Path(data_folder()).parents[1]))
    }


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("is_used", [True, False])
def test_uninstalling_leaves_no_byte_behind(home: Path, agent: str, is_used: bool) -> None:
    known = AGENTS[agent]
    (home / known.home).mkdir(parents=True, exist_ok=True)
    tools = known.tools_path()
    for path in (
        {known.settings_file(), tools} - {home / known.home} if is_used and known.events else ()
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_text(TOML if path.suffix == ".toml" else JSON)
    if known.tools:
        client(home, known.tools[0], str(tools.relative_to(home)))
    before = tree(home)
    result = contextgraph("setup", "--yes", "--json")
    assert result.code == 0, result.err
    connected = next(one for one in result.records[0]["agents"] if one["agent"] == agent)
    assert (connected["hooks"], connected["tools"] == "installed") == (True, bool(known.tools))
    assert not known.tools or "contextgraph" in tools.read_text()

    removed = contextgraph("integrations", "uninstall", agent)
    assert (removed.code, f"{agent}: removed" in removed.out) == (0, True)
    assert tree(home) == before


def test_what_the_client_wrote_since_stays_without_the_tools(home: Path) -> None:
    file = home / ".claude.json"
    client(home, "claude", ".claude.json")
    contextgraph("setup", "--yes")
    file.write_text(json.dumps({**json.loads(file.read_text()), "numStartups": 4}))
    assert contextgraph("integrations", "uninstall", "claude-code").code == 0
    assert json.loads(file.read_text()) == {"mcpServers": {}, "numStartups": 4}
