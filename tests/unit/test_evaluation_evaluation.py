"""A memory judged by recorded runs."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from contextgraph import AgentMemory, State
from contextgraph.advising.gate import Gate
from contextgraph.config import Settings
from contextgraph.errors import ReadError
from contextgraph.evaluation.evaluation import (
    Evaluation,
    Mode,
    evaluate,
    evaluate_online,
    sampled,
    split,
)
from contextgraph.evaluation.judging import judge_related
from contextgraph.evaluation.measures import METHODS, OURS, Moment, MomentKind, OrderSource, compare
from contextgraph.evaluation.reports import moments_in, report_of, report_record
from contextgraph.memory.wiring import build
from contextgraph.model import MemoryContext, Outcome, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.trace import trace
from tests.builders import NOON, recovering_run, run
from tests.sessions import Session

PATCH = """diff --git a/lib/tariffs.py b/lib/tariffs.py
--- a/lib/tariffs.py
+++ b/lib/tariffs.py
@@ -1 +1 @@
-rate = 1
+rate = 2
diff --git a/reproduce.py b/reproduce.py
new file mode 100644
--- /dev/null
+++ b/reproduce.py
@@ -0,0 +1 @@
+import tariffs
"""


class RecordingMemory(AgentMemory):
    """A memory that records its queries."""

    def __init__(self) -> None:
        self._take(build(Settings(store=":memory:")))
        self.questions: list[tuple[State, frozenset[str]]] = []
        self.events: list[tuple[str, str | None]] = []
        self.times: set[object] = set()
        retrieve_under = self.retriever.retrieve_under

        def recorded(
            gates: Sequence[Gate], state: State, limit: int = 5, **bounds: Any
        ) -> tuple[MemoryContext, ...]:
            self.events.append(("queried", state.instance_id))
            self.questions.append((state, bounds["exclude_instances"]))
            self.times.add(bounds["as_of"])
            return retrieve_under(gates, state, limit, **bounds)

        self.retriever.retrieve_under = recorded  # type: ignore[method-assign]

    def learn(self, trajectory: Any, **options: Any) -> Any:
        self.events.append(("learned", trajectory.instance_id))
        return super().learn(trajectory)


def judged(*learned: RawTrajectory, by: RawTrajectory) -> Evaluation:
    return evaluate(AgentMemory.open(":memory:"), learned, [by])


def at_error(evaluation: Evaluation) -> Moment:
    (moment,) = (one for one in evaluation.moments if one.kind is MomentKind.ERROR)
    return moment


def test_a_remedy_that_was_learned_before_is_found() -> None:
    found = at_error(judged(recovering_run(1), by=recovering_run(2)))

    assert found.has_answer
    assert found.verdicts[OURS].rank == 1
    assert (found.step, found.steps_left) == (1, 1)
    assert found.verdicts.keys() == set(METHODS)
    assert found.verdicts["nothing"].rank is None
    assert found.verdicts["bm25"].rank == 1
    assert found.reachable


def test_the_kind_of_the_command_that_next_succeeded_is_looked_for_in_the_ranking() -> None:
    found = at_error(judged(recovering_run(1), by=recovering_run(2)))
    assert found.next_kind == "python"
    assert found.verdicts[OURS].same_kind == found.verdicts["bm25"].same_kind == 1
    assert found.verdicts["nothing"].same_kind is None


def test_an_empty_memory_answers_nothing() -> None:
    found = at_error(judged(by=recovering_run(2)))

    assert not any(verdict.answered for verdict in found.verdicts.values())
    assert not found.reachable


def test_the_ranking_is_judged_before_the_gate_and_what_is_shown_behind_it() -> None:
    memory = AgentMemory.open(":memory:")
    memory.retriever.gate = Gate(min_precision=1.1)

    found = at_error(evaluate(memory, [recovering_run(1)], [recovering_run(2)]))

    verdict = found.verdicts[OURS]
    assert (verdict.rank, verdict.shown, verdict.answered) == (1, None, False)
    assert (found.verdicts["bm25"].rank, found.verdicts["bm25"].shown) == (1, 1)


def test_the_judged_instance_is_not_seen_by_any_method() -> None:
    again = replace(recovering_run(1), agent="another")

    verdicts = at_error(judged(again, by=recovering_run(1))).verdicts

    assert not any(verdict.answered for verdict in verdicts.values())


def test_later_runs_are_not_seen_by_any_method() -> None:
    found = at_error(judged(recovering_run(3), by=recovering_run(2)))

    assert not any(verdict.answered for verdict in found.verdicts.values())
    assert not found.reachable


def test_a_state_holds_no_outcome_no_patch_and_no_later_step() -> None:
    raw = recovering_run(5)
    other = replace(
        raw,
        outcome=Outcome.SOLVED,
        patch=PATCH,
        exit_status="submitted",
        steps=(*raw.steps[:2], replace(raw.steps[2], observation="total: 99")),
    )
    questions: list[list[tuple[State, frozenset[str]]]] = []
    for judged_run in (raw, other):
        memory = RecordingMemory()
        evaluate(memory, [recovering_run(1)], [judged_run])
        questions.append(memory.questions)

    assert questions[0] == questions[1]
    assert len(questions[0]) == 5  # judged, and replayed as if live until it submits


def test_online_each_run_is_judged_before_it_is_learned() -> None:
    runs = [recovering_run(number) for number in (2, 1)]

    found = evaluate_online(AgentMemory.open(":memory:"), runs)

    first, second = (one for one in found.moments if one.kind is MomentKind.ERROR)
    assert (first.instance_id, second.instance_id) == ("acme__shop-1", "acme__shop-2")
    assert (first.verdicts[OURS].rank, second.verdicts[OURS].rank) == (None, 1)
    assert (found.mode, found.order) == (Mode.ONLINE, OrderSource.INSTANCE_NUMBER)


def test_online_a_run_is_not_learned_before_it_was_judged() -> None:
    memory = RecordingMemory()

    evaluate_online(memory, [recovering_run(1), recovering_run(2)])

    assert list(dict.fromkeys(memory.events)) == [
        ("queried", "acme__shop-1"),
        ("learned", "acme__shop-1"),
        ("queried", "acme__shop-2"),
        ("learned", "acme__shop-2"),
    ]


def test_runs_that_started_later_are_not_seen_in_any_repository() -> None:
    later = recovering_run(
        1, repo="bob/pump", instance_id="bob__pump-1", started_at=NOON + timedelta(hours=1)
    )

    found = at_error(judged(later, by=recovering_run(2, started_at=NOON)))

    assert not any(verdict.answered for verdict in found.verdicts.values())


def test_the_memory_is_asked_as_of_the_start_of_the_run() -> None:
    memory = RecordingMemory()

    evaluate(memory, [], [recovering_run(1, started_at=NOON)])

    assert memory.times == {NOON, None}  # a live run asks without, and later runs are hidden


def test_an_error_that_was_avoided_is_not_judged() -> None:
    session = Session("core.py")
    session.failed("python core.py", "KeyError: 'rate'", file="core.py")
    session.edited(3, 5, "try:", "    total()", "except KeyError: pass")
    session.worked("python core.py")
    (recovery,) = trace(session.raw()).recoveries

    moments = judged(by=session.raw()).moments

    assert recovery.workaround
    assert not any(one.has_answer for one in moments if one.kind is MomentKind.ERROR)


def test_an_error_that_only_gave_way_to_another_is_not_judged() -> None:
    session = Session("core.py")
    session.failed("python run.py", "TypeError: bad total", file="core.py")
    session.edited(3, 3, "total = net(tax)")
    session.failed("python run.py", "KeyError: 'rate'", file="other.py")
    (recovery,) = trace(session.raw()).recoveries

    moments = judged(by=session.raw()).moments

    assert not recovery.verified
    assert not any(one.has_answer for one in moments if one.kind is MomentKind.ERROR)


def test_files_that_the_run_made_or_the_task_names_need_not_be_found() -> None:
    past = recovering_run(1, patch=PATCH)
    named = recovering_run(2, patch=PATCH, task="tariffs.py is wrong when a tariff is missing")
    unnamed = recovering_run(2, patch=PATCH)

    start, open_start = (judged(past, by=one).moments[0] for one in (named, unnamed))

    assert not start.has_answer
    assert open_start.has_answer
    assert open_start.verdicts[OURS].rank == 1


def test_the_same_remedy_of_the_same_error_counts_once() -> None:
    once = recovering_run(2)
    twice = run([(s.action.text, s.observation or "", s.exit_code or 0) for s in once.steps * 2])

    moments = judged(recovering_run(1), by=replace(twice, instance_id="acme__shop-2")).moments

    assert sum(moment.kind is MomentKind.ERROR for moment in moments) == 1


def test_the_same_runs_have_the_same_fingerprint_in_any_order() -> None:
    one = evaluate(AgentMemory.open(":memory:"), [recovering_run(1), recovering_run(2)], [])
    two = evaluate(AgentMemory.open(":memory:"), [recovering_run(2), recovering_run(1)], [])
    other = evaluate(AgentMemory.open(":memory:"), [recovering_run(2)], [recovering_run(1)])

    assert one.fingerprint == two.fingerprint != other.fingerprint


def test_a_split_is_by_instance_and_needs_no_seed() -> None:
    runs = [recovering_run(number) for number in range(200)]

    learned, judging = split(runs, 0.7)

    assert 120 < len(learned) < 160
    assert split(runs[::-1], 0.7)[0] == learned[::-1]
    assert len(learned) + len(judging) == 200


def test_a_sample_is_drawn_by_the_seed_and_keeps_the_order() -> None:
    runs = [recovering_run(number) for number in range(50)]

    drawn = sampled(runs, 10, seed=1)

    assert drawn == sampled(runs, 10, seed=1) != sampled(runs, 10, seed=2)
    assert drawn == [raw for raw in runs if raw in drawn]
    assert sampled(runs, 99, seed=1) == runs


def test_a_report_holds_figures_with_intervals_beside_baselines() -> None:
    found = judged(recovering_run(1), by=recovering_run(2))

    report = report_of(found, (), {"version": "1"}, seed=7)
    record = report_record(report, with_moments=False)

    assert report.measures["clearance@1"][OURS].value == 1
    assert report.measures["clearance@1"]["nothing"].value == 0
    assert report.measures["steps earlier"][OURS].value == 1
    assert report.verdict.startswith("At errors it is right in 100 % where it speaks")
    assert record["verdict"] == report.verdict
    assert record["config"] == {
        "version": "1",
        "seed": 7,
        "mode": "split",
        "order": "instance_number",
        "data": found.fingerprint,
        "runs_learned": 1,
        "runs_judged": 1,
        "moments": {"start": 1, "error": 1},
        "seconds": record["config"]["seconds"],  # type: ignore[index,call-overload]
    }
    assert "moments" not in record
    assert record["steps saved"]["error"].keys() == {OURS, "ceiling"}  # type: ignore[index,call-overload,union-attr]
    assert json.loads(orjson.dumps(record))["clearance@3 by error family"].keys() == {
        "python_exception"
    }


def test_a_report_with_moments_can_be_read_back(tmp_path: Path) -> None:
    report = report_of(judged(recovering_run(1), by=recovering_run(2)), (), {}, seed=0)
    path = tmp_path / "report.json"
    path.write_bytes(orjson.dumps(report_record(report, with_moments=True)))

    assert moments_in(path) == report.moments


@pytest.mark.parametrize("content", ["{}", "[]", "not json", '{"moments": [{}]}'])
def test_a_report_without_moments_is_refused_with_a_hint(tmp_path: Path, content: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(content)

    with pytest.raises(ReadError, match="--details"):
        moments_in(path)


def test_two_reports_are_compared_on_the_moments_of_both() -> None:
    before = [judged(by=recovering_run(n)) for n in range(2, 8)]
    after = [judged(recovering_run(1), by=recovering_run(n)) for n in range(2, 9)]

    contrasts = compare(
        [moment for one in before for moment in one.moments],
        [moment for one in after for moment in one.moments],
    )

    clearance = contrasts[0]
    assert (clearance.measure, clearance.moments) == ("clearance@1", 6)
    assert (clearance.only_first, clearance.only_second) == (0, 6)
    assert clearance.difference.value == 1
    assert clearance.p == pytest.approx(2 / 2**6)


def related_folder(folder: Path) -> Path:
    def task(number: int, text: str) -> bytes:
        return orjson.dumps(
            {
                "instance_id": f"acme__shop-{number}",
                "repo": "acme/shop",
                "problem_statement": text,
                "patch": PATCH,
            }
        )

    past = [task(1, "Tariff rounding loses cents"), task(2, "Login page flickers")]
    (folder / "experiences.jsonl").write_bytes(b"\n".join(past))
    queries = [task(3, "Rounding of a tariff is off"), task(4, "Nobody linked this")]
    (folder / "queries.jsonl").write_bytes(b"\n".join(queries))
    (folder / "qrels.json").write_text('{"acme__shop-3": ["acme__shop-1"]}')
    return folder


def test_related_tasks_are_judged_where_people_linked_them(tmp_path: Path) -> None:
    (moment,) = judge_related(AgentMemory.open(":memory:"), related_folder(tmp_path))

    assert moment.instance_id == "acme__shop-3"
    assert moment.verdicts[OURS].rank == 1
    assert moment.verdicts["bm25 in scope"].rank == 1
    assert moment.verdicts["most frequent"].rank == 1
    assert moment.verdicts["nothing"].rank is None


def test_a_folder_without_related_tasks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "qrels.json").write_text("{}")
    with pytest.raises(ReadError, match="neither queries"):
        judge_related(AgentMemory.open(":memory:"), tmp_path)


def test_a_broken_line_of_related_tasks_is_named(tmp_path: Path) -> None:
    (related_folder(tmp_path) / "queries.jsonl").write_text('{"instance_id": 3}')

    with pytest.raises(ReadError, match="line 1"):
        judge_related(AgentMemory.open(":memory:"), tmp_path)
