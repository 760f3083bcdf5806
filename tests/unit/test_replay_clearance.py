"""Whether an advice names what cleared an error."""

import pytest

from contextgraph.model import RawTrajectory
from contextgraph.replay.clearance import first_match, matches
from contextgraph.replay.cures import Cure, cure_in
from contextgraph.trace import trace
from tests.builders import NO_MODULE, run
from tests.sessions import Session

HERE, ELSEWHERE = "acme/shop", "bob/pump"


def cure(what: str, *actions: str, repo: str = HERE) -> Cure:
    return cure_in(what, actions, repo)


def cure_of(raw: RawTrajectory) -> Cure:
    """The cure of the only recovery of *raw*, as reading tells it."""
    (recovery,) = trace(raw).recoveries
    return cure_in(recovery.what, recovery.actions, raw.repo)


SAME = {
    "installing the package, however it is spelled": (
        cure("ran `pip install PyYAML`; then it worked"),
        cure("ran `python -m pip install -U 'pyyaml>=6'`; then it worked", repo=ELSEWHERE),
    ),
    "importing the name": (
        cure("`Path` was undefined: put `from pathlib import Path` into the edit itself"),
        cure(
            "`Path` was undefined: added `from pathlib import PurePath, Path` to a.py first, "
            "then edited again",
            repo=ELSEWHERE,
        ),
    ),
    "setting the variable": (
        cure("ran `PYTHONPATH=lib python run.py` instead of `python run.py`; then it worked"),
        cure("ran `PYTHONPATH=src pytest -q` instead of `pytest -q`; then it worked"),
    ),
    "leaving out the directory": (
        cure('used `search_dir "def total"` instead of `search_dir "def total" src`'),
        cure('used `search_dir "class Cart"` instead of `search_dir "class Cart" lib/shop`'),
    ),
    "leaving out the doubled directory": (
        cure("used `open shop/cart.py` instead of `open shop/shop/cart.py`"),
        cure("used `open pump/a/b.py 12` instead of `open pump/pump/a/b.py 12`", repo=ELSEWHERE),
    ),
    "the path that was right, whatever was tried": (
        cure("used `open lib/cart.py` instead of `open src/cart.py`"),
        cure("used `open lib/cart.py` instead of `open cart.py` (found with `ls`)"),
    ),
    "the flag": (
        cure("ran `pytest -p no:cacheprovider` instead of `pytest`; then it worked"),
        cure("ran `pytest -p no:xdist tests` instead of `pytest tests`; then it worked"),
    ),
    "the program": (
        cure("used `python3 run.py` instead of `python run.py`"),
        cure("used `python3 -V` instead of `python -V`", repo=ELSEWHERE),
    ),
    "replacing more lines": (
        cure("sent the same text for lines 3:9 instead of 3:5", "edit a.py 3:9: def total(self):"),
        cure("sent the same text for lines 12:20 instead of 12:14", "edit b.py 12:20: def f():"),
    ),
    "the identifier that the error names": (
        cure("changed `Cart(tax=1)` to `Cart(rate=1)` in run.py; then it worked"),
        cure("changed `c = Cart(tax=0.2)` to `c = Cart(rate=0.2)` in x.py", repo=ELSEWHERE),
    ),
}

OTHER = {
    "another package": (
        cure("ran `pip install pyyaml`; then it worked"),
        cure("ran `pip install requests`; then it worked"),
    ),
    "the name from another module": (
        cure("`Path` was undefined: put `from pathlib import Path` into the edit itself"),
        cure("`Path` was undefined: put `from shop.paths import Path` into the edit itself"),
    ),
    "the same path in another repository": (
        cure("used `open lib/cart.py` instead of `open src/cart.py`"),
        cure("used `open lib/cart.py` instead of `open src/cart.py`", repo=ELSEWHERE),
    ),
    "lines further up rather than further down": (
        cure("sent the same text for lines 3:4 instead of 8:9", "edit a.py 3:4: def total(self):"),
        cure("sent the same text for lines 9:9 instead of 7:7", "edit a.py 9:9: def total(self):"),
    ),
    "fewer lines rather than more": (
        cure("sent the same text for lines 3:9 instead of 3:5", "edit a.py 3:9: def total(self):"),
        cure("sent the same text for lines 3:5 instead of 3:9", "edit a.py 3:5: def total(self):"),
    ),
    "a common word of Python": (
        cure("sent the text again with `else:`, for lines 3:4 instead of 3:3"),
        cure("sent the text again with `else:`, for lines 8:9 instead of 8:8"),
    ),
    "one shared name in another repository": (
        cure("changed `a = f()` to `result = g(a)` in x.py; then it worked"),
        cure("changed `b = 1` to `result = h(2)` in y.py; then it worked", repo=ELSEWHERE),
    ),
    "only the same file": (
        cure("changed `total()` to `net()` in cart.py", "edit cart.py 1:1: net()"),
        cure("changed `tax()` to `rate()` in cart.py", "edit cart.py 9:9: rate()"),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_kind_of_action_on_the_same_target_is_a_match(name: str) -> None:
    one, other = SAME[name]

    assert matches(one, other, "Cart() got an unexpected keyword argument 'rate'")
    assert matches(other, one, "Cart() got an unexpected keyword argument 'rate'")


@pytest.mark.parametrize("name", OTHER)
def test_another_action_or_target_is_none(name: str) -> None:
    one, other = OTHER[name]

    assert matches(one, other) is None
    assert matches(other, one) is None


def test_that_lines_were_deleted_names_nothing_that_was_added() -> None:
    deleting = cure(
        "removed `x = old(1)` in a.py; then it worked", "edit a.py 3:3: (nothing: lines deleted)"
    )

    assert (deleting.adds, deleting.drops) == (frozenset(), frozenset({"old"}))


@pytest.mark.parametrize(
    "what",
    [
        "repeated the same command and it worked",
        "ran the same command again; then it worked",
        "sent the same edit again and it was accepted",
        "",
    ],
)
def test_a_mere_repetition_is_no_cure(what: str) -> None:
    assert not cure(what)


def test_the_first_match_counts_from_one() -> None:
    wanted = cure("ran `pip install pyyaml`")

    ranked = [cure("ran `pip install tox`"), Cure(), wanted]

    assert first_match(wanted, ranked) == 3
    assert first_match(wanted, ranked[:2]) is None


def test_a_package_that_a_run_installed_is_read_from_what_is_said_of_it() -> None:
    raw = run(
        [
            ("python reproduce.py", NO_MODULE, 1),
            ("pip install tariffs", "Successfully installed tariffs-1.0", 0),
            ("python reproduce.py", "total: 12", 0),
        ]
    )

    assert [str(move) for move in cure_of(raw).moves] == ["install tariffs"]


def test_a_variable_that_a_run_set_is_read_from_what_is_said_of_it() -> None:
    raw = run(
        [
            ("python reproduce.py", NO_MODULE, 1),
            ("PYTHONPATH=lib python reproduce.py", "total: 12", 0),
        ]
    )

    assert [str(move) for move in cure_of(raw).moves] == ["set PYTHONPATH"]


def test_an_import_that_an_edit_lacked_is_read_from_what_is_said_of_it() -> None:
    session = Session("cart.py")
    session.refused(1, 1, "root = Path('.')", why="F821 undefined name 'Path'")
    session.edited(1, 1, "from pathlib import Path", "root = Path('.')")

    assert [str(move) for move in cure_of(session.raw()).moves] == ["import pathlib:Path"]


def test_a_path_that_was_put_right_is_read_from_what_is_said_of_it() -> None:
    raw = run(
        [
            ("cat shop/shop/cart.py", "cat: shop/shop/cart.py: No such file or directory", 1),
            ("cat shop/cart.py", "total = 0", 0),
        ]
    )

    moves = {str(move) for move in cure_of(raw).moves}
    assert moves == {"path without the doubled directory", "path is acme/shop:shop/cart.py"}


def test_names_that_an_edit_changed_are_read_from_what_is_said_of_it() -> None:
    session = Session("run.py")
    session.do("open run.py", "[File: /shop/run.py (1 lines total)]\n1:print(Cart(tax=1))\n")
    session.failed("python run.py", "TypeError: unexpected keyword 'tax'", at=1, file="run.py")
    session.edited(1, 1, "print(Cart(rate=1))")
    session.worked("python run.py")

    cured = cure_of(session.raw())
    assert cured.adds == {"rate"}
    assert cured.drops == {"tax"}
