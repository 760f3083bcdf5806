"""Outcomes of advice: reported, shown as evidence, and decisive for what is shown next."""

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command_line import Result, call, contextgraph, write_runs
from tests.builders import NO_MODULE, recovering_run

TASK = "Totals are wrong when a tariff is missing"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(number) for number in (1, 2, 3)])
    assert contextgraph("learn", runs, "--store", tmp_path / "memory.db").code == 0
    return tmp_path / "memory.db"


def ask(store: Path, *options: str) -> dict[str, Any]:
    error = ("--repo", "acme/shop", "--error", NO_MODULE, "--json")
    answer: dict[str, Any]
    (answer,) = contextgraph("query", "--store", store, *error, *options).records
    return answer


def hurt(store: Path, context: str, **item: int) -> Result:
    return call("report", store, context=context, helped=False, **item)


def test_one_item_of_an_answer_can_be_reported(store: Path) -> None:
    answer = ask(store)
    assert hurt(store, answer["id"], item=1).records[0]["recorded"]
    assert hurt(store, answer["id"], item=1).code == 1
    assert hurt(store, answer["id"], item=9).code == 1
    advice = answer["error_solutions"][0]["advice"]
    (found,) = call("explain", store, identity=advice).records
    evidence = found["evidence"]
    assert (evidence["shown"], evidence["tried"], evidence["cleared"]) == (1, 1, 0)
    assert (evidence["runs"], evidence["runs_cleared"]) == (3, 3)
    assert evidence["low"] <= evidence["lift"] == -1 <= evidence["high"]


def test_advice_that_hurts_is_gone_from_new_runs_too_until_it_is_released(
    store: Path, tmp_path: Path
) -> None:
    reports = 0
    while (answer := ask(store))["error_solutions"]:
        advice = answer["error_solutions"][0]["advice"]
        assert hurt(store, answer["id"]).code == 0
        reports += 1
        assert reports <= 8
    again = write_runs(tmp_path / "again.jsonl", [recovering_run(number) for number in (7, 8)])
    assert contextgraph("learn", again, "--store", store).code == 0
    assert not ask(store)["error_solutions"]

    evidence = call("explain", store, identity=advice).records[0]["evidence"]
    assert (evidence["tried"], evidence["cleared"]) == (reports, 0)
    assert evidence["is_quarantined"]

    assert call("release", store, identity=advice).code == 0
    assert ask(store)["error_solutions"][0]["advice"] == advice


def test_advice_is_quarantined_by_hand(store: Path) -> None:
    task = ("query", "--repo", "acme/shop", "--task", TASK, "--store", store, "--json")
    advice = ask(store)["error_solutions"][0]["advice"]
    assert len(contextgraph(*task).records[0]["similar_cases"]) == 3
    result = call("quarantine", store, identity=advice)
    assert result.records == [{"advice": advice, "status": "quarantined", "quarantined": True}]
    assert not ask(store)["error_solutions"]
    # One of the three runs was shown; the others cite the same advice.
    assert contextgraph(*task).records[0]["similar_cases"] == []
    unknown = call("quarantine", store, identity="mth_unknown")
    assert (unknown.code, "no advice mth_unknown in this memory" in unknown.err) == (1, True)


def test_advice_of_one_of_several_sources_says_so(store: Path, tmp_path: Path) -> None:
    for source, numbers in (("ci", (11, 12)), ("laptop", (13,))):
        runs = [recovering_run(number) for number in numbers]
        path = write_runs(tmp_path / f"{source}.jsonl", runs)
        assert contextgraph("learn", path, "--source", source, "--store", store).code == 0
    solution = ask(store)["error_solutions"][0]
    assert solution["why"]["sources"] == ["", "ci", "laptop"]
    assert solution["why"]["is_active"]
    only = write_runs(tmp_path / "only.jsonl", [recovering_run(14)])
    other = ("--store", tmp_path / "other.db")
    assert contextgraph("learn", only, "--source", "web", *other).code == 0
    shown = contextgraph("query", "--repo", "acme/shop", "--error", NO_MODULE, *other).out
    assert "seen in one run (web)" in shown
    refused = contextgraph("learn", tmp_path / "ci.jsonl", "--source", "a b", "--store", store)
    assert (refused.code, "source 'a b': only letters" in refused.err) == (1, True)


def test_withheld_answers_are_compared_with_shown_ones(store: Path) -> None:
    withheld = ask(store, "--withhold", "1")
    assert withheld["error_solutions"] == []
    assert "PYTHONPATH" not in withheld["text"]
    assert withheld["id"] in withheld["text"]
    assert hurt(store, withheld["id"]).code == 0
    (stats,) = contextgraph("stats", "--store", store, "--json").records
    known = {key: stats["withholding"][key] for key in ("shown", "withheld", "withheld_cleared")}
    assert known == {"shown": 0, "withheld": 1, "withheld_cleared": 0}
    assert "0 of 1 withheld" in contextgraph("stats", "--store", store).out


def test_sources_are_listed_and_distrusted(store: Path, tmp_path: Path) -> None:
    path = write_runs(tmp_path / "web.jsonl", [recovering_run(number) for number in (11, 12)])
    contextgraph("learn", path, "--source", "web", "--store", store)
    listed = call("sources", store).records
    assert [(one["name"], one["runs"], one["trusted"]) for one in listed][1:] == [("web", 2, True)]
    (distrusted,) = call("sources_distrust", store, name="web").records
    assert not distrusted["trusted"]
    assert ask(store)["error_solutions"][0]["why"]["sources"] == [""]
    (trusted,) = call("sources_trust", store, name="web").records
    assert trusted["trusted"]
    unknown = call("sources_distrust", store, name="nobody")
    assert (unknown.code, "no run or report has the source nobody" in unknown.err) == (1, True)
    assert call("sources_distrust", store).code == 2
