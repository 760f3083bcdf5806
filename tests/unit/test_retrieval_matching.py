"""Which remedies count as the same."""

import pytest

from contextgraph.advising.gate import RepoRemedy, does_the_same, first_match, remedy_of
from contextgraph.learning import bundle_of
from contextgraph.model import (
    Exposure,
    RawTrajectory,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    SeenContext,
    ShownItem,
)
from contextgraph.model.values import replace
from contextgraph.store import rules
from contextgraph.trace import Names, advice_id, names_in, trace
from contextgraph.trace.advice import Construct, Edited, Term
from tests.builders import NO_MODULE, NOON, recovering_run, run
from tests.sessions import Session

HERE, ELSEWHERE = "acme/shop", "bob/pump"
NO_NAMES = Names()
NO_TARIFFS = names_in("ModuleNotFoundError", "No module named 'tariffs'")
NO_PATH = names_in("F821 undefined name", "undefined name 'Path'")
NO_RATE = names_in("TypeError", "Cart() got an unexpected keyword argument 'rate'")


def done(raw: RawTrajectory) -> RepoRemedy:
    """The remedy of the only recovery of *raw*."""
    (recovery,) = trace(raw).recoveries
    return remedy_of(recovery.actions, raw.repo)


def shell(failed: str, output: str, *then: str, repo: str = HERE) -> RepoRemedy:
    """The remedy of a run in which *failed* gave that *output*, and the last of *then* worked."""
    ends = [(command, "done", 0) for command in then]
    return done(run([(failed, output, 1), *ends], repo=repo))


def installed(command: str, repo: str = HERE) -> RepoRemedy:
    return shell("python run.py", NO_MODULE, command, "python run.py", repo=repo)


def opened(wrong: str, right: str, repo: str = HERE) -> RepoRemedy:
    output = f"cat: {wrong}: No such file or directory"
    return shell(f"cat {wrong}", output, f"cat {right}", repo=repo)


def searched(wrong: str, right: str, repo: str = HERE) -> RepoRemedy:
    return shell(f"ls {wrong}", f"ls: cannot access '{wrong}'", f"ls {right}".strip(), repo=repo)


def resent(was: tuple[int, int], now: tuple[int, int], file: str = "a.py") -> RepoRemedy:
    session = Session(file)
    session.refused(*was, "def total(self):", "    return 0", why="E999 SyntaxError")
    session.edited(*now, "def total(self):", "    return 0")
    return done(session.raw())


def imported(line: str, name: str = "Path", repo: str = HERE) -> RepoRemedy:
    session = Session("cart.py")
    session.refused(1, 1, f"root = {name}('.')", why=f"F821 undefined name '{name}'")
    session.edited(1, 1, line, f"root = {name}('.')")
    return remedy_of(done(session.raw()).actions, repo)


def changed(adds: str, drops: str, file: str = "run.py", repo: str = HERE) -> RepoRemedy:
    pattern = RemedyPattern(RemedyKind.EDIT, "code in <the script that was run>")
    parameters = [("file", file), *(("adds", name) for name in adds.split())]
    parameters += [("drops", name) for name in drops.split()]
    return remedy_of([RemedyAction(RemedyKind.EDIT, adds, pattern, drops, tuple(parameters))], repo)


def in_general(remedy: RepoRemedy, repo: str = ELSEWHERE) -> RepoRemedy:
    patterns = (one.pattern for one in remedy.actions)
    return remedy_of([RemedyAction(p.kind, p.target, p, p.replaced) for p in patterns], repo)


SAME = {
    "installing the package, however it is spelled": (
        installed("pip install tariffs"),
        installed("python -m pip install -U tariffs", ELSEWHERE),
        NO_TARIFFS,
    ),
    "importing the name from the same module": (
        imported("from pathlib import Path"),
        imported("from pathlib import Path", repo=ELSEWHERE),
        NO_PATH,
    ),
    "an import that spells out its name": (
        imported("import shop", "shop"),
        in_general(imported("import pump", "pump")),
        names_in("F821 undefined name", "undefined name 'shop'"),
    ),
    "setting the variable": (
        shell("python run.py", NO_MODULE, "PYTHONPATH=lib python run.py"),
        shell("pytest -q", NO_MODULE, "PYTHONPATH=src pytest -q", repo=ELSEWHERE),
        NO_TARIFFS,
    ),
    "leaving out the path": (searched("src", ""), searched("lib/shop", "", ELSEWHERE), NO_NAMES),
    "leaving out the doubled folder": (
        opened("shop/shop/cart.py", "shop/cart.py"),
        opened("pump/pump/a/b.py", "pump/a/b.py", ELSEWHERE),
        NO_NAMES,
    ),
    "the path that was right, whatever was tried": (
        opened("src/cart.py", "lib/cart.py"),
        opened("cart.py", "lib/cart.py"),
        NO_NAMES,
    ),
    "the program": (
        shell("make all", "make: command not found", "gmake all"),
        shell("make all", "make: command not found", "gmake all", repo=ELSEWHERE),
        NO_NAMES,
    ),
    "replacing more lines": (resent((3, 5), (3, 9)), resent((12, 14), (12, 20), "b.py"), NO_NAMES),
    "one identifier in the same file": (
        changed("rate", "tax"),
        changed("rate total", "tax"),
        NO_NAMES,
    ),
    "the identifier that the error names": (
        changed("rate", "tax"),
        changed("rate", "levy", "x.py"),
        NO_RATE,
    ),
}

OTHER = {
    "another version": (
        installed("pip install tariffs"),
        installed("pip install 'tariffs<3'"),
        NO_TARIFFS,
    ),
    "another package": (
        installed("pip install tariffs"),
        installed("pip install requests"),
        NO_TARIFFS,
    ),
    "the name from another module": (
        imported("from pathlib import Path"),
        imported("from shop.paths import Path"),
        NO_PATH,
    ),
    "an import that leaves out the module": (
        imported("from pathlib import Path"),
        in_general(imported("from pathlib import Path")),
        NO_PATH,
    ),
    "the import of another name": (
        imported("import os", "os"),
        imported("import re", "re"),
        names_in("F821 undefined name", "undefined name 'os'"),
    ),
    "the same path in another repository": (
        opened("src/cart.py", "lib/cart.py"),
        opened("src/cart.py", "lib/cart.py", ELSEWHERE),
        NO_NAMES,
    ),
    "that the file is in another folder": (
        opened("src/cart.py", "lib/cart.py"),
        in_general(opened("src/cart.py", "lib/cart.py")),
        NO_NAMES,
    ),
    "fewer lines rather than more": (resent((3, 5), (3, 9)), resent((3, 9), (3, 5)), NO_NAMES),
    "the same code in another repository": (
        changed("rate net", "tax"),
        changed("rate net", "tax", repo=ELSEWHERE),
        NO_RATE,
    ),
    "only the same file": (changed("net", "total"), changed("rate", "tax"), NO_NAMES),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_kind_of_action_on_the_same_target_is_the_same(name: str) -> None:
    one, other, names = SAME[name]

    assert does_the_same(one, other, names)
    # Names of repositories are compared without case.
    assert does_the_same(one, remedy_of(other.actions, other.repo.upper()), names)


@pytest.mark.parametrize("name", OTHER)
def test_another_action_or_target_is_not(name: str) -> None:
    one, other, names = OTHER[name]

    assert not does_the_same(one, other, names)


def test_repeating_and_looking_around_are_not_remedies() -> None:
    assert not shell("python run.py", NO_MODULE, "python run.py")

    found = shell(
        "cat a.py", "cat: a.py: No such file or directory", "find . -name a.py", "cat b/a.py"
    )

    assert [one.kind for one in found.actions] == [RemedyKind.OPEN]


def test_the_first_match_counts_from_one() -> None:
    done_here = installed("pip install tariffs")
    ranked = [installed("pip install tox"), remedy_of((), HERE), done_here]

    assert first_match(done_here, ranked, NO_TARIFFS) == 3
    assert first_match(done_here, ranked[:2], NO_TARIFFS) is None


def test_ranking_credit_and_evaluation_have_one_key_of_a_remedy() -> None:
    target = Edited(Construct.IMPORT, Term.UNDEFINED_NAME).target
    before, within = (
        RemedyAction(
            RemedyKind.EDIT, "import os", pattern, parameters=(("placing", pattern.parameters[0]),)
        )
        for pattern in (
            RemedyPattern(RemedyKind.EDIT, target, parameters=(placing,))
            for placing in ("before", "same edit")
        )
    )
    learned = bundle_of(recovering_run(), NOON)
    shown = Exposure.of(
        "ctx_1", [ShownItem("adv_1", patterns=(within.pattern,))], NOON, learned.errors[0].id
    )
    did = replace(
        learned,
        exposures=(SeenContext("ctx_1", -1, (before.pattern,)),),
        recovered=tuple(replace(one, actions=(before,)) for one in learned.recovered),
    )

    assert advice_id(None, (before,)) == advice_id(None, (within,))
    assert does_the_same(RepoRemedy(HERE, (before,)), RepoRemedy(ELSEWHERE, (within,)), NO_NAMES)
    (report,) = rules.reports_of([did], [shown])
    assert [item.helped for item in report.items] == [True]
