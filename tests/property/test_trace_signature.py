"""Reading any text is safe, deterministic and fast."""

import pytest
from hypothesis import given, strategies as st

from contextgraph.model import Action, Step
from contextgraph.trace.actions import canonical, new_text, read_action
from contextgraph.trace.run import task_type_of
from contextgraph.trace.signature import keywords_of, recognise, signature_of, template_of
from contextgraph.trace.steps import PhaseTracker
from tests.deadline import deadline

_LOG_WORDS = st.sampled_from(
    [
        *(
            "Traceback (most recent call last):\n",
            '  File "a.py", line 3, in f\n',
            "ValueError: no\n",
        ),
        *(
            "E   assert 1\n",
            "a.py:3: TypeError\n",
            "=== FAILURES ===\n",
            "____ test_a ____\n",
            "\n",
        ),
        *(
            "bash: x: command not found\n",
            "ERROR: ",
            "usage: ",
            "'",
            '"',
            "/a/b.py",
            "12",
            "<",
            ">",
        ),
        *(
            "Your proposed edit has introduced new syntax error(s)\nERRORS:\n- E999 ",
            "<<EOF\n",
            "|",
        ),
        *("Ran 1 test in 0s\n", "FAILED (errors=1)\n", "error[E0308]: x\n --> ", "\r", "  | ", " "),
        *("name()", "v1.2.3", "\x1b[31m", "&&", "`"),
    ]
)
texts = st.one_of(st.text(max_size=400), st.lists(_LOG_WORDS, max_size=30).map("".join))


@given(texts, texts, st.sampled_from([None, 0, 1, 124]))
def test_any_text_can_be_read_and_always_reads_the_same(command, observation, exit_code):
    action = Action("bash", command)

    first = recognise(action, observation, exit_code=exit_code)

    assert first == recognise(action, observation, exit_code=exit_code)
    assert signature_of(observation) == signature_of(observation)
    assert canonical(action) == canonical(action)
    reading = read_action(action, "/a", "/a/b.py")
    new = new_text(action, reading)
    assert PhaseTracker().push(Step(0, observation, action, None), reading, None, new) is not None
    assert task_type_of(observation) == task_type_of(observation)


@given(texts)
def test_the_template_of_a_template_is_itself(message):
    template = template_of(message)

    assert template_of(template) == template
    assert len(template) <= 200


@given(texts, texts)
def test_keywords_are_few_and_from_the_message(message, error_type):
    keywords = keywords_of(message, error_type)

    assert len(keywords) <= 3
    assert all(word.lower() in message.lower() for word in keywords)


@pytest.mark.parametrize(
    "unit",
    [
        *("a", " ", "\n", "'", '"', "(", "/a", "1.", "Error: x\n", "E   ", "a:1: ", "error: \n"),
        *("Traceback (most recent call last)\n", '  File "', "_ ", "not ok ", "|", "<<EOF\n"),
    ],
)
def test_a_quarter_of_a_megabyte_of_anything_does_not_take_minutes(unit):
    text = unit * (240_000 // len(unit))

    with deadline(15):
        recognise(Action("bash", "python bake.py"), text)
        signature_of(text)
        template_of(text)
        read_action(Action("bash", text), None, None)
