"""What an agent is shown."""

from hypothesis import given, strategies as st

from contextgraph.model import (
    ErrorSolution,
    FailureWarning,
    MemoryContext,
    Outcome,
    ScopeLevel,
    SignatureLevel,
    SimilarCase,
    Why,
)
from contextgraph.retrieval import render
from contextgraph.text import count_tokens, strip_fenced

WHY = Why(channels=(), scope=ScopeLevel.REPO, support=3, trajectories=("trj_1",))


def solution(description="set PYTHONPATH to lib", **fields):
    given = {
        "fragment_id": "frg_1",
        "trajectory_id": "trj_1",
        "instance_id": "acme__shop-1",
        "repo": "acme/shop",
        "error_type": "ModuleNotFoundError",
        "signature_level": SignatureLevel.TEMPLATE,
        "actions": ("PYTHONPATH=lib python reproduce.py",),
        "description": description,
        "workaround": False,
        "score": 0.9,
        "why": WHY,
        **fields,
    }
    return ErrorSolution(**given)


def case():
    return SimilarCase(
        trajectory_id="trj_2",
        instance_id="acme__shop-2",
        repo="acme/shop",
        outcome=Outcome.SOLVED,
        summary="changed tariffs.py",
        files=("lib/tariffs.py",),
        fragments=(),
        score=0.5,
        why=WHY,
    )


def test_nothing_known_is_nothing_said():
    assert render(MemoryContext("ctx_1")) == ""


def test_an_error_of_the_same_type_is_not_called_this_error():
    other = solution("installed pytz", signature_level=SignatureLevel.TYPE)
    text = render(MemoryContext("ctx_1", (), (other, solution())))
    same, alike = text.split("Errors of this kind were cleared before:")
    assert "This error was cleared before:\n1. set PYTHONPATH" in same
    assert "1. installed pytz" in alike


def test_the_most_certain_comes_first_with_its_evidence():
    warning = FailureWarning("4 runs met X", 4, WHY)
    text = render(MemoryContext("ctx_1", (), (solution(),), (case(),), (warning,)))
    assert text.index("set PYTHONPATH") < text.index("4 runs met X") < text.index("acme__shop-2")
    assert "same template, this repository, 3 runs" in text
    assert "PYTHONPATH=lib python reproduce.py" in text
    assert "acme__shop-2 (solved)" in text


def test_a_workaround_is_called_one():
    assert "a workaround" in render(MemoryContext("ctx_1", (), (solution(workaround=True),)))


def test_the_text_is_fenced_with_its_context_id_and_can_be_stripped():
    text = render(MemoryContext("ctx_1", (), (solution(),)))
    assert strip_fenced(f"before\n{text}\nafter")[1] == ("ctx_1",)
    assert "PYTHONPATH" not in strip_fenced(text)[0]


@given(st.lists(st.text(max_size=300), max_size=5), st.integers(0, 400))
def test_the_text_never_exceeds_its_tokens(descriptions, max_tokens):
    solutions = tuple(solution(description) for description in descriptions)
    assert count_tokens(render(MemoryContext("ctx_1", (), solutions), max_tokens)) <= max_tokens
