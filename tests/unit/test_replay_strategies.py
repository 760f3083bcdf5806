"""What a methodology says to do, put to the error at hand."""

import pytest

from contextgraph import AgentMemory, State
from contextgraph.replay.clearance import matches
from contextgraph.replay.cures import cure_in
from contextgraph.replay.strategies import cure_of_strategy, cures_of_strategy
from tests.builders import run

HERE = "acme/shop"


def said(strategy: str, message: str = "") -> set[str]:
    return {str(move) for move in cure_of_strategy(strategy, message, HERE).moves}


@pytest.mark.parametrize(
    ("strategy", "message", "what"),
    [
        (
            "run `pip install <the missing module>` first",
            "No module named 'yaml_tools'",
            "ran `pip install yaml-tools`; then it worked",
        ),
        (
            (
                "put its import (`import <the undefined name>`, `from <its module> import <the "
                "undefined name>`) into the edit itself, above the first use"
            ),
            "undefined name 'os'",
            "`os` was undefined: put `import os` into the edit itself",
        ),
        (
            "import it: `from pathlib import Path`, in the edit itself",
            "undefined name 'Path'",
            "`Path` was undefined: put `from pathlib import Path, PurePath` into the edit itself",
        ),
        (
            "another file was open: open the file you mean, then send the same edit again",
            "undefined name 'total'",
            "sent the same text to cart.py: another file had been open",
        ),
        (
            (
                "send the same text for a range that ends later by as many lines as the old "
                "statement has, so that nothing of the old statement is left over"
            ),
            "unexpected indent",
            (
                "sent the same text for lines 3:9 instead of 3:5, so that nothing of the old "
                "statement is left over"
            ),
        ),
        (
            "write `find` and its argument apart: `find …`",
            "find.: command not found",
            "used `find -name cart.py` instead of `find. -name cart.py`",
        ),
        (
            "leave the path out: `search_dir <text>` searches from where you are",
            "Directory src not found",
            'used `search_dir "def total"` instead of `search_dir "def total" src`',
        ),
        (
            (
                "leave out the leading <name of the repository>/: paths are taken from the "
                "repository's root, where you are"
            ),
            "File shop/cart.py not found",
            "used `open cart.py` instead of `open shop/cart.py`",
        ),
        (
            "leave `src` out of `ls`: there is no such path",
            "cannot access 'src': No such file or directory",
            "used `ls -F` instead of `ls -F src`",
        ),
        (
            "look at the line numbers again (`goto`, `open`) and send the same text",
            "unexpected indent",
            "sent the same text for lines 8:9 instead of 3:4",
        ),
        (
            "there is no `src/cart.py`: it is `lib/cart.py`",
            "File src/cart.py not found",
            "used `open lib/cart.py` instead of `open src/cart.py`",
        ),
    ],
)
def test_advice_in_general_words_matches_the_cure_it_stands_for(
    strategy: str, message: str, what: str
) -> None:
    assert matches(cure_in(what, (), HERE), cure_of_strategy(strategy, message, HERE), message)


@pytest.mark.parametrize(
    ("strategy", "what"),
    [
        (
            "put its import (`import <the undefined name>`) into the edit itself",
            "`Path` was undefined: put `from pathlib import Path` into the edit itself",
        ),
        ("do the same once more: it passed the next time", "ran the same command again"),
        ("the file is in another directory", "used `open lib/a.py` instead of `open a.py`"),
        ("run `pip install <the missing module>` first", "ran `pip install other`"),
    ],
)
def test_advice_that_leaves_out_the_point_matches_nothing(strategy: str, what: str) -> None:
    message = "undefined name 'Path'"

    assert not matches(cure_in(what, (), HERE), cure_of_strategy(strategy, message, HERE), message)


@pytest.mark.parametrize("path", ["src/shop", "lib", "other/src", "src.py"])
def test_to_leave_out_one_path_is_no_advice_about_another(path: str) -> None:
    said = cure_of_strategy(
        "leave `src` out of `ls`: there is no such path", f"cannot access '{path}'", HERE
    )
    assert not matches(cure_in(f"used `ls` instead of `ls {path}`", (), HERE), said, path)


def test_each_way_that_a_strategy_offers_is_an_advice_of_its_own() -> None:
    strategy = "(1) run `pip install tariffs` first (20 of 67 runs). (2) add `-q` to `pytest`"

    ways = cures_of_strategy(strategy, "", HERE)

    assert [{str(move) for move in way.moves} for way in ways] == [
        {"install tariffs"},
        {"flag pytest -q"},
    ]


def test_a_placeholder_without_a_name_stays_one() -> None:
    assert "install path" not in said("run `pip install <the missing module>` first")


def test_what_consolidation_makes_of_runs_is_understood() -> None:
    memory = AgentMemory.open(":memory:")
    for number, repo in enumerate(("shop", "pump", "cart", "till")):
        memory.learn(
            run(
                [
                    ("find. -name a.py", "bash: find.: command not found", 127),
                    ("find . -name a.py", "./a.py", 0),
                ],
                instance_id=f"acme__{repo}-{number}",
                repo=f"acme/{repo}",
            )
        )
    memory.consolidate()

    context = memory.query(State(repo="bob/other", current_error="bash: find.: command not found"))

    assert context.suggestions
    assert any("use find apart" in said(one.strategy) for one in context.suggestions)
