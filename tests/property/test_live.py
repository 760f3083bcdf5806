"""For any actions of an agent, nothing is shown twice, and only new errors are queried."""

import re
from collections import Counter

from hypothesis import given, settings, strategies as st

from contextgraph import AgentMemory, State
from contextgraph.text import strip_fenced
from tests.builders import NO_MODULE, detouring_run, run

NO_FILE = "cat: totals.py: No such file or directory"
STEPS = (
    ("python reproduce.py", NO_MODULE, 1),
    ("PYTHONPATH=lib python reproduce.py", "total: 12\n", 0),
    ("cat totals.py", NO_FILE, 1),
    ("ls", "README.md\nlib", 0),
    ("gti status", "bash: gti: command not found", 127),
    ("python check.py", NO_MODULE.replace("tariffs", "rates"), 1),
    ("sed -i 's/1/2/' shop/totals.py", "", 0),
)
ERRORS = 3  # kinds of error among the steps: modules that are missing are one kind

MEMORY = AgentMemory.open(":memory:")
for number in range(3):
    MEMORY.learn(detouring_run(number))
    MEMORY.learn(
        run(
            [STEPS[2], ("cat shop/totals.py", "x = 1", 0), STEPS[4], ("git status", "", 0)],
            instance_id=f"acme__shop-{number + 5}",
        )
    )


@settings(max_examples=30, deadline=None)
@given(chosen=st.lists(st.sampled_from(STEPS), max_size=40), repeated=st.integers(1, 8))
def test_nothing_is_shown_twice(chosen: list[tuple[str, str, int]], repeated: int) -> None:
    live = MEMORY.live(repo="acme/shop", instance_id="acme__shop-9", task="Totals are wrong")
    shown = [live.start()]
    shown += [live.before(command) or "" for command, _, _ in STEPS]
    shown += [
        live.observe(command, output, exit_code=code) or ""
        for command, output, code in chosen
        for _ in range(repeated)
    ]
    shown += [live.before(command) or "" for command, _, _ in chosen]
    texts = Counter(re.sub(r'id="\w+"', "", text) for text in shown if text)
    assert set(texts.values()) <= {1}
    assert all(strip_fenced(text)[0] == "" for text in shown)


@settings(max_examples=30, deadline=None)
@given(chosen=st.lists(st.sampled_from(STEPS), max_size=40))
def test_only_the_start_and_new_errors_are_asked_about(chosen: list[tuple[str, str, int]]) -> None:
    queried: list[State] = []
    query = MEMORY.query

    def counted(state: State, *arguments, **options):
        queried.append(state)
        return query(state, *arguments, **options)

    live = MEMORY.live(repo="acme/shop", instance_id="acme__shop-9", task="Totals are wrong")
    MEMORY.query = counted  # type: ignore[method-assign, assignment]
    try:
        live.start()
        for command, output, code in chosen:
            live.observe(command, output, exit_code=code)
    finally:
        del MEMORY.query
    assert sum(not state.steps for state in queried) <= 1 + ERRORS
    # How far the run is, is compared with earlier runs now and then.
    assert sum(state.steps > 0 for state in queried) <= len(chosen) // 10
