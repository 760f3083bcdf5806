"""Questions that nothing in a memory answers: noise, small talk, other languages, instructions."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from contextgraph import AgentMemory, State
from contextgraph.readers import read

ROOT = Path(__file__).parents[2]
QUESTIONS = [
    orjson.loads(line) for line in (ROOT / "tests/data/abstention.jsonl").read_bytes().splitlines()
]


@pytest.fixture(scope="module")
def memory() -> Iterator[AgentMemory]:
    with AgentMemory.open(":memory:") as memory:
        for _ in memory.learn_many(read(ROOT / "examples/trajectories", on_skip=print)):
            pass
        yield memory


@pytest.mark.parametrize("repo", ["", "fernway/parcelkit"])
def test_at_most_one_question_in_a_hundred_is_answered(memory: AgentMemory, repo: str) -> None:
    """Facts about the repository itself may be shown for any task."""
    assert len(QUESTIONS) >= 150
    answered = []
    for question in QUESTIONS:
        context = memory.query(
            State(
                repo=question.get("repo", repo),
                current_error=question.get("error", ""),
                task_description=question.get("task", ""),
            )
        )
        if context.error_solutions or context.similar_cases or (context.error and context.ranked):
            answered.append(question)
    assert len(answered) <= len(QUESTIONS) / 100, answered
