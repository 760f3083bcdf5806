"""Failures of other languages, in the output that their tools really printed.

``tests/data/foreign/make.py`` records it; the labels stand beside the mistakes in ``cases``.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contextgraph.model import Action, ErrorSignature
from contextgraph.trace.signature import recognise, signature_of

FOREIGN = Path(__file__).parents[1] / "data" / "foreign"
Case = tuple[str, str, dict[str, Any] | None]


def recorded(path: Path) -> dict[str, str]:
    lines = (FOREIGN / "recorded" / f"{path.stem}.jsonl").read_text().splitlines()
    return {made["name"]: made["output"] for made in map(json.loads, lines)}


def cases() -> Iterator[Any]:
    for path in sorted((FOREIGN / "cases").glob("*.toml")):
        outputs = recorded(path)
        for case in tomllib.loads(path.read_text())["case"]:
            shown = outputs[case["name"]]
            values = case["command"], shown, case.get("expect")
            yield pytest.param(*values, id=f"{path.stem}: {case['name']}")


CASES = list(cases())
FAILURES = [case for case in CASES if case.values[2]]
HARMLESS = [case for case in CASES if not case.values[2]]


def is_at(error: ErrorSignature, place: str) -> bool:
    return f"/{error.location}".endswith(f"/{place}")


@pytest.mark.parametrize(("command", "shown", "expected"), FAILURES)
def test_a_failure_of_another_language_is_seen_for_what_it_is(command, shown, expected):
    error = recognise(Action("bash", command), shown)

    assert error is not None
    assert error.family == expected["family"]
    assert error.error_type == expected.get("type", error.error_type)
    assert is_at(error, expected["place"]) if "place" in expected else True
    searched = f"{error.message} {' '.join(error.keywords)}".lower()
    assert any(word.lower() in searched for word in expected.get("words", [""]))


def test_a_run_that_went_well_is_not_a_failure_whatever_it_prints():
    for command, shown, _ in (case.values for case in HARMLESS):
        assert recognise(Action("bash", command), shown) is None
        assert signature_of(shown) is None


def test_a_failure_has_the_same_signature_wherever_the_project_is():
    for command, shown, _ in (case.values for case in FAILURES):
        error = recognise(Action("bash", command), shown)
        moved = recognise(Action("bash", command), shown.replace("/bakery", "/home/anna/src/shop"))

        assert error is not None
        assert moved is not None
        assert (moved.family, moved.error_type, moved.template) == (
            error.family,
            error.error_type,
            error.template,
        )
