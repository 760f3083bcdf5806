"""Removal of what wraps issues, replies and observations."""

import pytest

from contextgraph.readers.envelopes import (
    ShellPrompt,
    said,
    task_in,
    thought_and_command,
    without_prompt,
)

SHELL = "(Open file: /a b/c.py)\n(Current directory: /a b)\nbash-$"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Look.\n\n```\nls\n```", ("Look.", "ls")),
        ("```\nls\n```\n", ("", "ls")),
        ("Look.\n```bash\nls -F\n\n```\nThen we see.", ("Look.", "ls -F")),
        ("A\n```\nfirst\n```\nB\n```\nsecond\n```", ("A\n```\nfirst\n```\nB", "second")),
        (
            "A\n```\nedit 1:1\n```python\nx\n```\nend_of_edit\n```",
            ("A", "edit 1:1\n```python\nx\n```\nend_of_edit"),
        ),
        ("Say ``` twice ``` here", ("Say ``` twice ``` here", "")),
        ("Say ```x\n``` or so", ("Say ```x\n``` or so", "")),
        ("A\n```\nedit 1:1\ncut off", ("A", "edit 1:1\ncut off")),
        ("A\n```\n    indented\n```", ("A", "    indented")),
        ("nothing to do", ("nothing to do", "")),
    ],
)
def test_the_last_block_is_the_command_and_all_before_it_the_thought(reply, expected):
    assert thought_and_command(reply) == expected


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        (f"done\n{SHELL}", ShellPrompt("done", "/a b/c.py", "/a b")),
        (f"done\n{SHELL} \n", ShellPrompt("done", "/a b/c.py", "/a b")),
        (SHELL.replace("/a b/c.py", "n/a"), ShellPrompt("", None, "/a b")),
        (f"{SHELL}\ndone", ShellPrompt(f"{SHELL}\ndone", None, None)),
        (f"{SHELL}\n{SHELL}", ShellPrompt(SHELL, "/a b/c.py", "/a b")),
        ("(Open file: x)\nbash-$", ShellPrompt("(Open file: x)\nbash-$", None, None)),
        ("done", ShellPrompt("done", None, None)),
    ],
)
def test_only_a_prompt_at_the_end_is_taken_off(observation, expected):
    assert without_prompt(observation) == expected


@pytest.mark.parametrize(
    ("prompt", "task"),
    [
        ("Text\nISSUE:\nIt leaks\n\nINSTRUCTIONS:\nGo", "It leaks"),
        ("ISSUE:\nIt says\n\nINSTRUCTIONS:\nx\n\nINSTRUCTIONS:\nGo", "It says\n\nINSTRUCTIONS:\nx"),
        ("<pr_description>\nIt leaks\n</pr_description>\nGo", "It leaks"),
        ("Please solve this issue: It leaks\n\nYou can execute bash commands and", "It leaks"),
        ("Please solve this issue: It leaks", "It leaks"),
        ("It leaks", None),
    ],
)
def test_the_task_is_what_the_prompt_marks_as_such(prompt, task):
    assert task_in(prompt) == task


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Use the glass one.", "Use the glass one."),
        ("<system-reminder>Be quick.</system-reminder>\nUse glass.", "Use glass."),
        ("Use glass.\n<ide_selection>def boil():</ide_selection>", "Use glass."),
        ("<local-command-stdout>", ""),
        ("<command-name>/fix</command-name>\n<command-args>12</command-args>", "/fix 12"),
        ("<command-name>/clear</command-name>\n<command-args></command-args>", ""),
        ("<command-message>fix</command-message>\n<command-name>/fix</command-name>", "/fix"),
        ("<command-name>/fix</command-name>\n<command-args></command-args>\nAlways use glass", ""),
        ("Look.\nCalled the Read tool with the following input: {}\nAlways use glass", "Look."),
        ('Result of calling the Read tool: "Always use glass"', ""),
        (
            "Look.\n--- Content from referenced files ---\nGlass.\n--- End of content ---\nSteel.",
            "Look.\n\nSteel.",
        ),
        ("--- Context from: GEMINI.md ---\nUse glass.", ""),
        ("Another language model started to solve this problem and produced a summary of", ""),
        ('<teammate-message from="b">done</teammate-message>', ""),
        ("Why does <system-reminder> stand there?", "Why does <system-reminder> stand there?"),
        ("Is a < b?", "Is a < b?"),
        ("This session is being continued from a previous conversation that ran out", ""),
    ],
)
def test_what_programs_put_into_a_turn_was_not_said(message, words):
    assert said(message) == words
