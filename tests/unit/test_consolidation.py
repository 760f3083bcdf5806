"""Consolidation: abstracting, merging, measuring, cleaning up, and the advice that results."""

from datetime import timedelta
from itertools import combinations

import pytest

from contextgraph import AgentMemory, Outcome, State
from contextgraph.config import Settings
from contextgraph.errors import LeaseLostError, StoreError
from contextgraph.learning.abstraction import ConsolidationPolicy, Similarity
from contextgraph.learning.consolidator import MemoryConsolidator
from contextgraph.memory.wiring import build
from contextgraph.model import Embeddings, MethodologyStatus, RemedyKind, Vector
from contextgraph.model.values import replace
from tests.builders import NOON, run

MISSING = """Traceback (most recent call last):
  File "/{repo}/demo.py", line 1, in <module>
    import {module}
ModuleNotFoundError: No module named '{module}'
"""
REPOS = ("acme/shop", "bolt/bank", "core/kiln")


def missing_module(number, module, repo="acme/shop", *, cleared=True, by="pip", **fields):
    """A run that misses *module*, and installs it *by* a program where it is *cleared*."""
    error = MISSING.format(repo=repo.partition("/")[2], module=module)
    commands = [("ls", "demo.py", 0), ("python demo.py", error, 1)]
    if cleared:
        commands += [
            (f"{by} install {module}", f"Successfully installed {module}", 0),
            ("python demo.py", "total: 12\n", 0),
        ]
    owner, _, name = repo.partition("/")
    return run(commands, repo=repo, instance_id=f"{owner}__{name}-{number}", **fields)


@pytest.fixture
def memory():
    with AgentMemory.of(build(Settings(":memory:"), clock=lambda: NOON)) as memory:
        yield memory


def query_state(module, repo="acme/shop"):
    return State(repo=repo, current_error=MISSING.format(repo="demo", module=module))


def learn_all(memory, *runs):
    with memory.batch():
        return [memory.learn(one) for one in runs]


def methodologies(memory):
    return memory.store.methodologies.get(memory.store.methodologies.ids())


def changes(report):
    return {step.name: step.changed for step in report.steps}


def errors_resolved_by(memory, methodology):
    relations = memory.explain(methodology.id).relations
    return {edge.id for edge in relations if edge.type == "RESOLVED_BY"}


def test_a_remedy_of_three_runs_becomes_advice_with_placeholders(memory):
    learn_all(
        memory, *(missing_module(n, name) for n, name in enumerate(("attrs", "rich", "toml")))
    )
    memory.consolidate()
    (known,) = methodologies(memory)
    assert known.situation == (
        "in acme/shop, when `ModuleNotFoundError: No module named <name>`, mostly while reproducing"
    )
    assert "provides `<the missing module>`; its name may differ (3 of 3 tasks" in known.strategy
    assert known.support == 3
    assert known.repo == "acme/shop"
    assert [(one.kind, one.target) for one in known.remedies] == [
        (RemedyKind.INSTALL, "<the missing module>")
    ]


def test_two_runs_are_not_enough(memory):
    learn_all(memory, missing_module(1, "attrs"), missing_module(2, "rich"))
    memory.consolidate()
    assert methodologies(memory) == []


def test_three_clearances_of_one_run_are_not_enough(memory):
    commands = [
        part
        for name in ("attrs", "rich", "toml")
        for part in (
            ("python demo.py", MISSING.format(repo="shop", module=name), 1),
            (f"pip install {name}", "Successfully installed", 0),
            ("python demo.py", "total: 12", 0),
        )
    ]
    learn_all(memory, run(commands))
    memory.consolidate()
    assert methodologies(memory) == []


def test_clearances_without_a_common_remedy_make_no_methodology(memory):
    ways = ("pip install attrs", "export PYTHONPATH=lib", "git submodule update --init")
    error = MISSING.format(repo="shop", module="attrs")
    runs = [
        run(
            [("python demo.py", error, 1), (way, "", 0), ("python demo.py", "total: 12", 0)],
            instance_id=f"acme__shop-{number}",
        )
        for number, way in enumerate(ways)
    ]
    learn_all(memory, *runs)
    memory.consolidate()
    assert methodologies(memory) == []


@pytest.mark.parametrize(
    ("way", "known"),
    [("pip install attrs", True), ("pip install --trusted-host pypi.org attrs", False)],
)
def test_what_is_never_advice_becomes_no_methodology(memory, way, known):
    error = MISSING.format(repo="shop", module="attrs")
    runs = [
        run(
            [("python demo.py", error, 1), (way, "", 0), ("python demo.py", "total: 12", 0)],
            instance_id=f"acme__shop-{number}",
        )
        for number in range(3)
    ]
    learn_all(memory, *runs)
    memory.consolidate()
    assert bool(methodologies(memory)) is known


def test_advice_is_general_only_when_it_worked_in_several_repositories(memory):
    names = ("attrs", "rich", "toml")
    learn_all(memory, *(missing_module(1, n, r) for n, r in zip(names, REPOS, strict=True)))
    memory.consolidate()
    (known,) = methodologies(memory)
    assert (known.repo, known.repositories) == (None, 3)


def test_a_message_about_one_thing_has_its_own_advice(memory):
    error = MISSING.format(repo="shop", module="yaml")
    learn_all(
        memory,
        *(missing_module(n, name) for n, name in enumerate(("attrs", "rich", "toml"))),
        *(
            run(
                [
                    ("python demo.py", error, 1),
                    ("pip install PyYAML", "Successfully installed", 0),
                    ("python demo.py", "total: 12", 0),
                ],
                instance_id=f"acme__shop-{number}",
            )
            for number in range(10, 13)
        ),
    )
    memory.consolidate()
    best, *_ = memory.query(query_state("yaml")).suggestions
    assert best.methodology
    assert "`ModuleNotFoundError: No module named 'yaml'`" in best.methodology.situation
    assert best.description == "run `pip install PyYAML`"
    others = memory.query(query_state("toml")).suggestions
    assert all("yaml" not in one.methodology.situation for one in others if one.methodology)


def test_consolidating_again_right_after_changes_nothing(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(5)))
    first = memory.consolidate()
    before = methodologies(memory)
    second = memory.consolidate()
    assert first.changed > 0
    assert set(changes(second).values()) == {0}
    assert second.trajectories == 0
    assert methodologies(memory) == before


def test_the_result_does_not_depend_on_order_or_batches(memory):
    runs = [missing_module(n, f"mod{n}", REPOS[n % 3]) for n in range(9)]
    learn_all(memory, *runs)
    memory.consolidate()
    with AgentMemory.of(build(Settings(":memory:"), clock=lambda: NOON)) as other:
        for one in reversed(runs):
            other.learn(one)
            other.consolidate()
        assert methodologies(other) == methodologies(memory)


def test_consolidation_is_due_after_sixteen_runs(memory):
    for number in range(15):
        memory.learn(missing_module(number, f"mod{number}"))
    assert methodologies(memory) == []
    memory.learn(missing_module(15, "mod15"))
    assert methodologies(memory) != []


def test_a_batch_is_consolidated_at_its_end(memory):
    with memory.batch():
        for number in range(20):
            memory.learn(missing_module(number, f"mod{number}"))
    (known,) = methodologies(memory)
    assert known.support == 20


def test_a_failing_consolidation_leaves_the_receipt_alone(memory, monkeypatch, caplog):
    def fail(*_, **__):
        raise StoreError("the disk is full")

    monkeypatch.setattr(memory.consolidator, "consolidate", fail)
    receipts = [memory.learn(missing_module(n, f"mod{n}")) for n in range(16)]
    assert len({receipt.trajectory_id for receipt in receipts}) == 16
    assert "the disk is full" in caplog.text
    monkeypatch.undo()
    assert memory.consolidate().changed > 0


def test_one_consolidation_works_at_a_time(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(3)))
    until = NOON + timedelta(minutes=1)
    assert memory.store.admin.take_lease("another process", NOON, until) is None
    report = memory.consolidate()
    assert not report.started
    assert "another process holds the lease" in report.reason
    memory.store.admin.take_lease("another process", NOON, None)
    assert memory.consolidate().started


def test_a_lease_that_has_expired_is_taken_over(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(3)))
    memory.store.admin.take_lease("died", NOON - timedelta(hours=1), NOON)
    assert memory.consolidate().started


def test_a_lost_lease_stops_the_work(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(3)))
    an_hour = timedelta(hours=1)

    def take_over(done, total):
        memory.store.admin.take_lease("another", NOON + an_hour, NOON + 2 * an_hour)

    with pytest.raises(LeaseLostError):
        memory.consolidator.consolidate(progress=take_over)
    assert memory.store.admin.unconsolidated().trajectories == 3
    memory.store.admin.take_lease("another", NOON + an_hour, None)
    memory.consolidate()
    assert memory.store.admin.unconsolidated().trajectories == 0


def test_runs_that_never_cleared_the_error_count_against_it(memory):
    learn_all(
        memory,
        *(missing_module(n, f"mod{n}") for n in range(3)),
        missing_module(9, "other", cleared=False),
    )
    memory.consolidate()
    (known,) = methodologies(memory)
    assert known.success_rate == 0.75
    assert known.frequency == 4
    assert known.status is MethodologyStatus.PROBATION


def test_a_remedy_that_usually_clears_the_error_is_active(memory):
    others = [
        run(
            [("python demo.py", MISSING.format(repo="shop", module=f"x{n}"), 1), ("ls", "", 0)],
            instance_id=f"acme__shop-{n}",
        )
        for n in range(50, 53)
    ]
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(20)), *others)
    memory.consolidate()
    (known,) = methodologies(memory)
    assert known.status is MethodologyStatus.ACTIVE
    assert known.confidence > 0


def test_an_answer_has_methodologies_with_their_why(memory):
    receipts = learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(4)))
    memory.consolidate()
    (suggestion,) = memory.query(query_state("yaml")).suggestions
    assert suggestion.methodology
    assert suggestion.methodology.repo
    assert suggestion.why.support == 4
    assert set(suggestion.why.trajectories) == {receipt.trajectory_id for receipt in receipts}
    assert suggestion.why.channels[0].channel == "error"
    text = memory.render(memory.query(query_state("yaml")))
    assert "provides `yaml`; its name may differ [4 of 4 tasks here]" in text


def test_advice_of_a_repository_is_not_given_in_another(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(4)))
    memory.consolidate()
    assert memory.query(query_state("yaml", "else/where")).suggestions == ()


def test_a_judged_instance_is_not_advised_by_what_was_derived_from_it(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(4)))
    memory.consolidate()
    assert memory.query(query_state("yaml")).suggestions
    assert not memory.query(query_state("yaml"), exclude_instances=["acme__shop-1"]).suggestions
    assert not memory.query(query_state("yaml"), as_of=NOON - timedelta(days=1)).suggestions


def test_advice_that_was_shown_and_did_not_help_is_quarantined(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(4)))
    memory.consolidate()
    for _ in range(40):
        context = memory.query(query_state("yaml"))
        memory.render(context)
        memory.report_outcome(context.id, helped=False)
    assert memory.query(query_state("yaml")).suggestions == ()
    memory.consolidate()
    (known,) = methodologies(memory)
    assert known.status is MethodologyStatus.QUARANTINED
    assert known.support == 4
    assert changes(memory.consolidate())["statistics"] == 0


def test_forgetting_a_run_takes_with_it_what_was_derived_from_it(memory):
    first, *_ = learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(3)))
    memory.consolidate()
    memory.forget([first.trajectory_id])
    assert methodologies(memory) == []
    memory.consolidate()
    assert methodologies(memory) == []


def test_what_enough_other_runs_teach_comes_back_after_one_was_forgotten(memory):
    first, *_ = learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(5)))
    memory.consolidate()
    (before,) = methodologies(memory)
    memory.forget([first.trajectory_id])
    memory.consolidate()
    (after,) = methodologies(memory)
    assert (before.support, after.support) == (5, 4)
    assert after.id == before.id


def test_two_errors_with_the_same_remedy_share_one_methodology(memory):
    learn_all(
        memory,
        *(installing(n, MESSAGES[0]) for n in range(5)),
        *(installing(n, MESSAGES[1]) for n in range(5, 8)),
    )
    report = memory.consolidate()
    survivor, gone = sorted(
        methodologies(memory), key=lambda m: m.status is MethodologyStatus.RETIRED
    )
    assert gone.superseded_by == survivor.id
    assert survivor.support > gone.support
    assert errors_resolved_by(memory, survivor) == {
        survivor.error_id,
        gone.error_id,
    }
    assert {step.name: step.removed for step in report.steps}["merge"] == 1
    assert set(changes(memory.consolidate()).values()) == {0}


def installing(number, message, first="pip install -e ."):
    """A run that clears an import error of this *message* by installing the project."""
    error = MISSING.replace("No module named '{module}'", message)
    return run(
        [
            ("python demo.py", error.format(repo="shop", module=f"mod{number}"), 1),
            (first, "Successfully installed shop", 0),
            ("python demo.py", "total: 12", 0),
        ],
        instance_id=f"acme__shop-{number}",
    )


MESSAGES = (
    "No module named '{module}'",
    "No module named '{module}'; 'shop' is not a package",
    "No module named '{module}' in this environment",
)


def consolidate_all(memory):
    """As if all had changed."""
    memory.store.admin.mark_consolidated(0)
    return memory.consolidate()


def test_what_methodologies_advise_is_embedded_once(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}", REPOS[n % 3]) for n in range(24)))
    known = methodologies(memory)
    requests = []

    class Counting:
        space, similarity_threshold, is_remote = "tfidf/counting@2", None, False

        def embed(self, texts):
            requests.append(texts)
            return Embeddings(tuple(Vector(self.space, bytes(8)) for _ in texts))

    similarity = Similarity(Counting)
    similarity.prepare(known)
    for one, other in combinations(known, 2):
        similarity.of(one, other)
    assert len(known) > 2
    assert len(requests) == 1


def test_superseded_methodologies_follow_a_later_merge(memory):
    for number, message in enumerate(MESSAGES):
        first = 10 * number
        learn_all(memory, *(installing(first + n, message) for n in range(3 + 2 * number)))
        memory.consolidate()
    gone = [one for one in methodologies(memory) if one.status is MethodologyStatus.RETIRED]
    (survivor,) = [one for one in methodologies(memory) if one not in gone]
    assert [one.superseded_by for one in gone] == [survivor.id] * 2
    assert errors_resolved_by(memory, survivor) == {one.error_id for one in (survivor, *gone)}
    assert consolidate_all(memory).changed == 0


def test_a_retired_survivor_does_not_resolve_the_other_error(memory):
    learn_all(memory, *(installing(n, MESSAGES[0]) for n in range(5)))
    learn_all(memory, *(installing(10 + n, MESSAGES[1]) for n in range(3)))
    memory.consolidate()
    (survivor,) = [one for one in methodologies(memory) if one.superseded_by is None]
    retired = replace(survivor, status=MethodologyStatus.RETIRED)
    memory.store.methodologies.put([retired], [], [], [])
    learn_all(memory, installing(20, MESSAGES[1]))
    consolidate_all(memory)
    assert {one.status for one in methodologies(memory)} == {MethodologyStatus.RETIRED}
    assert errors_resolved_by(memory, survivor) == set()


def test_merged_methodologies_stay_merged_while_nearly_as_similar():
    parts = build(Settings(":memory:"), clock=lambda: NOON)
    with AgentMemory.of(parts) as memory:
        learn_all(memory, *(installing(n, MESSAGES[0]) for n in range(5)))
        other = "pip install -e . --no-deps"
        learn_all(memory, *(installing(10 + n, MESSAGES[1], other) for n in range(3)))

        def consolidated(merge, separate):
            parts.store.admin.mark_consolidated(0)
            policy = ConsolidationPolicy(similarity_threshold=merge, separation_threshold=separate)
            MemoryConsolidator(parts.store, clock=lambda: NOON, policy=policy).consolidate()
            return {one.status for one in methodologies(memory)}

        apart_from_the_first = {MethodologyStatus.PROBATION}
        merged = {MethodologyStatus.PROBATION, MethodologyStatus.RETIRED}
        assert consolidated(0.999, 0.999) == apart_from_the_first
        assert consolidated(0.5, 0.4) == merged
        assert consolidated(0.999, 0.4) == merged
        assert consolidated(0.999, 0.999) == apart_from_the_first


def test_a_retired_methodology_is_not_derived_again(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(4)))
    memory.consolidate()
    (known,) = methodologies(memory)
    assert memory.retire([known.id, "mth_unknown"]) == 1
    assert memory.retire([known.id]) == 0
    learn_all(memory, missing_module(4, "mod4"))
    memory.consolidate()
    assert [one.status for one in methodologies(memory)] == [MethodologyStatus.RETIRED]
    assert memory.query(query_state("yaml")).suggestions == ()


def test_similar_fragments_are_linked_to_the_newest_one(memory):
    receipts = learn_all(memory, *(missing_module(n, "attrs") for n in range(3)))
    memory.consolidate()
    graph = memory.store.admin.graph()
    similar = [
        (one, other) for one, other, key in graph.edges(keys=True) if key.startswith("SIMILAR_TO")
    ]
    assert len(similar) == 2
    assert len({other for _, other in similar}) == 1
    assert len(receipts) == len({receipt.trajectory_id for receipt in receipts})


def test_a_remedy_is_not_supported_by_runs_of_the_hidden_instance(memory):
    receipts = learn_all(memory, *(missing_module(n, "attrs") for n in range(3)))
    memory.consolidate()
    (shown,) = memory.query(query_state("attrs")).ranked
    hidden = [missing_module(0, "attrs").instance_id]
    (other,) = memory.query(query_state("attrs"), exclude_instances=hidden).ranked
    assert receipts[0].trajectory_id not in other.why.trajectories
    assert (shown.why.support, other.why.support) == (3, 2)


def test_only_the_newest_failed_attempts_stay():
    parts = build(Settings(":memory:"), clock=lambda: NOON)
    policy = ConsolidationPolicy(max_failed_fragments=2)
    consolidator = MemoryConsolidator(parts.store, clock=lambda: NOON, policy=policy)
    for number in range(5):
        parts.writer.write(missing_module(number, "attrs", cleared=False))
    before = parts.store.admin.counts().nodes["Fragment"]
    report = consolidator.consolidate()
    pruned = before - parts.store.admin.counts().nodes["Fragment"]
    assert pruned == {step.name: step.removed for step in report.steps}["clean up"] == 3
    assert consolidator.consolidate().changed == 0
    parts.store.close()


def test_a_methodology_is_explained_down_to_its_runs(memory):
    receipts = learn_all(
        memory, *(missing_module(n, f"mod{n}", outcome=Outcome.SOLVED) for n in range(3))
    )
    memory.consolidate()
    (known,) = methodologies(memory)
    found = memory.explain(known.id)
    derived = [edge.id for edge in found.relations if edge.type == "DERIVED_FROM"]
    (resolves,) = [edge for edge in found.relations if edge.type == "RESOLVED_BY"]
    assert sorted(derived) == sorted(source.fragment_id for source in known.sources)
    assert resolves.properties["support"] == 3
    runs = {
        edge.id
        for fragment in derived
        for edge in memory.explain(fragment).relations
        if edge.type == "HAS_FRAGMENT"
    }
    assert runs == {receipt.trajectory_id for receipt in receipts}
    assert memory.explain("mth_0") is None


def test_what_was_shown_is_explained(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(3)))
    memory.consolidate()
    context = memory.query(query_state("yaml"))
    memory.render(context)
    found = memory.explain(context.id)
    assert context.suggestions[0].id in {edge.id for edge in found.relations}
    assert found.facts["helped"] == "not known"


def with_playbook(raw, text):
    """*raw* with the advice *text* in its task, as an agent was shown it."""
    return replace(raw, task=f"{raw.task}\n{text}")


@pytest.mark.parametrize(("cleared", "credit"), [(True, (1, 0)), (False, (0, 0))])
def test_a_run_that_was_shown_advice_credits_it(memory, cleared, credit):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(4)))
    memory.consolidate()
    context = memory.query(query_state("mod1"))
    text = memory.render(context)
    memory.learn(with_playbook(missing_module(9, "mod1", cleared=cleared), text))
    memory.consolidate()
    (after,) = methodologies(memory)
    assert (after.success_count, after.failure_count) == credit
    assert after.support == (5 if cleared else 4)


def test_advice_about_an_error_that_a_run_never_met_is_not_judged_by_it(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(4)))
    context = memory.query(query_state("mod1"))
    text = memory.render(context)
    memory.learn(with_playbook(run([("ls", "README.md", 0)]), text))
    assert memory.store.exposures.record([context.error_solutions[0].advice]).exposures == ()


def test_advice_of_the_repository_replaces_the_same_in_general(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}", REPOS[n % 2]) for n in range(8)))
    memory.consolidate()
    assert len(methodologies(memory)) == 3
    (suggestion,) = memory.query(query_state("yaml")).suggestions
    assert suggestion.methodology
    assert suggestion.methodology.repo


def test_a_repository_is_looked_at_again_as_long_as_runs_are_left(memory: AgentMemory) -> None:
    receipts = [memory.learn(run([], instance_id=f"acme__shop-{number}")) for number in range(2)]
    memory.consolidate()
    memory.forget([receipts[0].trajectory_id])
    assert memory.store.admin.unconsolidated().repos
    memory.forget([receipts[1].trajectory_id])
    assert not memory.store.admin.unconsolidated().repos


def test_what_installed_an_imported_module_is_known_where_it_is_run_as_one(memory):
    learn_all(memory, *(missing_module(n, f"mod{n}") for n in range(4)))
    error = "/usr/bin/python: No module named yaml"
    context = memory.query(State(repo="acme/shop", current_error=error))
    assert context.error
    assert context.error.family == "shell"
    (best, *_) = context.shown
    assert "install the package that provides `yaml`" in best.description


def test_advice_for_one_name_takes_the_place_of_its_general_twin(memory: AgentMemory) -> None:
    missing = MISSING.format(repo="shop", module="parcelkit")
    cleared = ("PYTHONPATH=lib python demo.py", "total: 12\n", 0)
    named = [
        run([("python demo.py", missing, 1), cleared], instance_id=f"acme__shop-{number}")
        for number in range(11)
    ]
    learn_all(memory, *named)
    memory.consolidate()
    known = {one.keyword: one for one in methodologies(memory) if one.repo == "acme/shop"}
    assert known[""].superseded_by == known["parcelkit"].id
    (advice,) = memory.query(query_state("parcelkit")).suggestions
    assert advice.id == known["parcelkit"].id
    assert memory.consolidate().changed == 0
    # 11 of 11: the lower bound of Wilson's interval, one-sided 95 %.
    assert known["parcelkit"].success_rate == 1.0
    assert known["parcelkit"].confidence == pytest.approx(11 / (11 + 1.645**2), abs=1e-3)
