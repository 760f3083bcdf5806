"""Baselines over the runs that a memory has learned."""

from contextgraph.evaluation.baselines import RecoveryBaselines, TaskBaselines
from contextgraph.model import RemedyKind
from contextgraph.trace import trace
from tests.builders import NO_MODULE, recovering_run, run
from tests.sessions import Session

NO_INSTANCES: frozenset[str] = frozenset()


def test_bm25_in_scope_prefers_the_repository_and_falls_back_to_all() -> None:
    tasks = TaskBaselines()
    tasks.add(run([], instance_id="acme__shop-1", repo="acme/shop", task="rounding of tariffs"))
    tasks.add(run([], instance_id="bob__pump-1", repo="bob/pump", task="tariffs, tariffs, tariffs"))

    def found(repo: str) -> list[str]:
        return [one.repo for one in tasks.bm25("tariffs", 5, NO_INSTANCES, repo, in_scope=True)[0]]

    assert found("Acme/Shop") == ["acme/shop"]
    assert found("eve/other") == ["bob/pump", "acme/shop"]


def test_the_most_frequent_remedy_is_given_in_general_terms() -> None:
    recoveries = RecoveryBaselines()
    for number, fix in enumerate(("pip install tariffs", "PYTHONPATH=lib python a.py") * 2):
        ends = [("python a.py", "done", 0)] if fix.startswith("pip") else []
        commands = [("python a.py", NO_MODULE, 1), (fix, "done", 0), *ends]
        recoveries.add(trace(run(commands, instance_id=f"acme__shop-{number}")))

    hidden = frozenset({"acme__shop-0"})
    first, second = recoveries.most_frequent("ModuleNotFoundError", 5, hidden).items

    assert [one.actions[0].kind for one in (first, second)] == [
        RemedyKind.SET_ENV,
        RemedyKind.INSTALL,
    ]
    assert first.actions[0].target == "PYTHONPATH=<source folder>"


def test_code_of_another_repository_is_not_recalled() -> None:
    session = Session("run.py")
    session.failed("python run.py", "TypeError: bad total", at=1, file="run.py")
    session.edited(1, 1, "total = net(tax)")
    session.worked("python run.py")
    recoveries = RecoveryBaselines()
    recoveries.add(trace(session.raw()))
    recoveries.add(trace(recovering_run(1)))

    def found(repo: str) -> int:
        return len(
            recoveries.bm25("TypeError: bad total", 5, NO_INSTANCES, repo, in_scope=False).items
        )

    assert found(session.raw().repo) == 1
    assert found("eve/other") == 0
