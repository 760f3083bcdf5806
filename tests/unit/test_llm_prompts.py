"""Words name the version of their prompt: what is sent never changes without a new one."""

from hashlib import sha256
from importlib.resources import files
from typing import Any

import pytest

from contextgraph.llm.assignments import METHODOLOGIES, RUNS, Assignment

# A prompt that changes is a new file, with a new number: add a line here, change none.
KNOWN = {
    "methodology.v1.md": "2144f335ebe308db",
    "methodology.v2.md": "c6593e396158e7c3",
    "run.v1.md": "772f2de76d826cb3",
}
ASSIGNMENTS: tuple[Assignment[Any, Any], ...] = (METHODOLOGIES, RUNS)


def digests() -> dict[str, str]:
    prompts = files("contextgraph.llm").joinpath("prompts").iterdir()
    return {file.name: sha256(file.read_bytes()).hexdigest()[:16] for file in prompts}


def test_a_prompt_never_changes_without_a_new_version() -> None:
    assert digests() == KNOWN


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.version)
def test_the_newest_version_of_a_prompt_is_the_one_in_use(assignment: Assignment[Any, Any]) -> None:
    kind, _, number = assignment.version.partition(".v")
    numbers = [
        int(name.removeprefix(f"{kind}.v").removesuffix(".md"))
        for name in KNOWN
        if name.startswith(f"{kind}.v")
    ]
    assert int(number) == max(numbers)
