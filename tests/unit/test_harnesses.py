"""Counts for each harness, which come with the package."""

import builtins
import re
from functools import partial

import pytest

from benchmarks.harnesses import LEAST_REPOSITORIES, fitted
from contextgraph import AgentMemory
from contextgraph.advising.channels import CHANNELS, Channel, by_harness, without_counts_of
from contextgraph.advising.evidence import AGENT_TOOLS
from contextgraph.advising.gate import is_open
from contextgraph.advising.harnesses import HarnessCounts, Row, hash_of, shipped
from contextgraph.advising.pipeline import MemoryRetriever
from contextgraph.evaluation.evaluation import evaluate
from contextgraph.model import (
    ErrorSignature,
    Family,
    MemoryContext,
    RawTrajectory,
    RemedyKind,
    RemedyPattern,
    State,
)
from contextgraph.trace import is_general, is_hazardous, trace
from tests.builders import run

# A part of a name: a file, a module, a number, `twoWords`.
NAME = re.compile(r"\w[./\\_]\w|[a-z][A-Z]|\d|@")
PLACEHOLDER = re.compile(r"<[^<>]+>")
# Tools of an agent, exceptions of Python, its program, and a word of its messages.
KNOWN = re.compile(
    rf"\b(?:{'|'.join(sorted(AGENT_TOOLS))}|{'|'.join(vars(builtins))}|python3|Errno)\b"
)
AGENT = "swift"


def missing(module: str) -> str:
    return f"Traceback (most recent call last):\nModuleNotFoundError: No module named '{module}'"


def installing(number: int, module: str, repo: str = "") -> RawTrajectory:
    """Return a run of a repository of its own that installs a module."""
    return run(
        [
            ("python shop.py", missing(module), 1),
            (f"pip install {module}", f"Successfully installed {module}-1.0", 0),
            ("python shop.py", "total: 12", 0),
        ],
        repo=repo or f"owner{number}/shop",
        instance_id=f"shop-{number}",
        agent=f"{AGENT}/sub",
    )


def counts_of(runs: list[RawTrajectory]) -> HarnessCounts:
    return fitted([trace(raw) for raw in runs])


def answer(counts: HarnessCounts, repo: str = "acme/shop", agent: str = AGENT) -> MemoryContext:
    """Return what an empty memory advises where a module is missing."""
    channel = Channel(at_error=partial(by_harness, harnesses={AGENT: counts}))
    state = State(
        repo=repo, agent=agent, current_error=missing("yaml"), last_action="python shop.py"
    )
    with AgentMemory.open(":memory:") as memory:
        return MemoryRetriever(memory.store, channels={"harness": channel}).retrieve(state)


MODULES = ("attrs", "numpy", "pandas", "scipy", "toml", "yarl", "idna", "rich")
COUNTS = counts_of([installing(number, module) for number, module in enumerate(MODULES)])


def test_an_empty_memory_advises_what_tasks_in_this_harness_agree_on():
    (remedy,) = answer(COUNTS).ranked
    assert "yaml" in remedy.description
    assert remedy.why.instances == remedy.why.support == len(MODULES)
    assert not remedy.why.trajectories  # no run of this memory
    assert remedy.id == remedy.advice


def test_what_leaves_open_what_to_do_is_said_where_a_run_of_the_memory_did_it():
    undefined = "NameError: name 'json' is not defined"
    importing = RemedyPattern(RemedyKind.EDIT, "import of <the undefined name>")
    assert is_open(importing)
    row = Row(Family.PYTHON_EXCEPTION, "NameError", (importing,), tuple(range(9)))
    counts = HarnessCounts(tuple(f"{number:08x}" for number in range(9)), (row,))
    channel = Channel(at_error=partial(by_harness, harnesses={AGENT: counts}))
    state = State(repo="acme/shop", agent=AGENT, current_error=undefined, last_action="python a.py")
    with AgentMemory.open(":memory:") as memory:
        channels = {**CHANNELS, "harness": channel}
        retriever = MemoryRetriever(memory.store, channels=channels)
        (alone,) = retriever.retrieve(state).remedies
        edit = "cat > a.py <<'EOF'\nimport json\nprint(json.dumps(1))\nEOF"
        for number in range(2):
            memory.learn(
                run(
                    [("python a.py", undefined, 1), (edit, "", 0), ("python a.py", "1", 0)],
                    repo=f"owner{number}/shop",
                    instance_id=f"shop-{number}",
                    agent=AGENT,
                )
            )
        known = [one for one in retriever.retrieve(state).remedies if one.actions == alone.actions]
    assert alone.silence is not None
    assert "leaves open" in alone.silence.reason
    assert [(one.silence is None, one.why.instances) for one in known] == [(True, 11)]


def test_another_harness_is_not_advised():
    assert not answer(COUNTS, agent="slow").remedies
    assert not answer(COUNTS, agent="").remedies


def test_tasks_of_the_repository_itself_do_not_count():
    (remedy,) = answer(COUNTS, repo="Owner0/shop").remedies
    assert remedy.why.instances == len(MODULES) - 1


def test_what_few_repositories_did_is_not_counted():
    few = [
        installing(number, name, f"owner{number % 2}/shop") for number, name in enumerate(MODULES)
    ]
    assert counts_of(few).rows == ()


def test_a_template_that_names_an_argument_of_the_command_is_left_out():
    failed = "cat: plans: No such file or directory"
    runs = [
        run(
            [("cat plans", failed, 1), ("ls", "README.md\nnotes", 0), ("cat notes", "a", 0)],
            repo=f"owner{number}/shop",
            instance_id=f"shop-{number}",
            agent=AGENT,
        )
        for number in range(4)
    ]
    assert all("plans" not in row.template for row in counts_of(runs).rows)


def test_evaluation_has_no_counts_of_repositories_that_it_judges(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("contextgraph.advising.channels.shipped", lambda: {AGENT: COUNTS})
    state = State(agent=AGENT, current_error=missing("yaml"), last_action="python shop.py")
    with AgentMemory.open(":memory:") as memory:
        (before,) = memory.query(state).remedies
        evaluate(memory, [], [installing(0, "attrs"), installing(1, "numpy")])
        (after,) = memory.query(state).remedies
    assert before.why.instances - after.why.instances == 2
    hidden = without_counts_of(CHANNELS, {f"owner{number}/shop" for number in range(8)})
    assert hidden.keys() == CHANNELS.keys()


def test_what_is_shipped_means_the_same_in_any_project():
    """Nothing of one project: closed words, several repositories, and names only as hashes."""
    assert {"claude-code", "mini-swe-agent", "SWE-agent"} <= shipped().keys()
    for counts in shipped().values():
        assert all(re.fullmatch("[0-9a-f]{8}", one) for one in counts.repositories)
        did: dict[object, set[str]] = {}
        stated: dict[object, set[str]] = {}
        for row in counts.rows:
            assert all(map(is_general, row.patterns))
            repositories = {counts.repositories[one] for one in row.instances}
            did.setdefault((row.family, row.error_type, row.patterns), set()).update(repositories)
            stated.setdefault(row.template, set()).update(repositories)
            words = [
                text
                for pattern in row.patterns
                for text in (pattern.target, pattern.replaced, *pattern.parameters)
            ]
            for text in (*words, *row.circumstances, row.template):
                assert not NAME.search(KNOWN.sub("", PLACEHOLDER.sub("", text))), text
        assert min(map(len, did.values())) >= LEAST_REPOSITORIES


def test_the_hash_of_a_repository_does_not_depend_on_the_case_of_its_name():
    assert hash_of("Acme/Shop") == hash_of("acme/shop") != hash_of("acme/shops")


def test_nothing_harmful_is_shipped():
    for counts in shipped().values():
        for row in counts.rows:
            error = ErrorSignature(row.family, row.error_type, "", row.template)
            for candidate in counts.recoveries(error, AGENT):
                assert not is_hazardous(candidate.actions)
