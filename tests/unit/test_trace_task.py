"""The type of a task, by the text of its issue."""

import pytest

from contextgraph.model import TaskType
from contextgraph.trace.run import task_type_of


@pytest.mark.parametrize(
    ("issue", "task_type"),
    [
        (
            "KeyError when the oven is empty\nTraceback (most recent call last): ...",
            TaskType.BUG_FIX,
        ),
        ("Bread does not rise\nExpected behavior: it rises.", TaskType.BUG_FIX),
        ("Loaves\nSince 1.4 slicing gives crumbs instead of slices.", TaskType.BUG_FIX),
        ("Add a timer to the oven\nIt would be nice to have one.", TaskType.FEATURE),
        ("Support rye flour", TaskType.FEATURE),
        (
            "Steam injection\n- [ ] This is a bug report\n- [x] This is a feature request",
            TaskType.FEATURE,
        ),
        ("Rename Dough to Batter and remove the old alias", TaskType.REFACTOR),
        ("Document the proving time in the README", TaskType.DOCS),
        ("Typo in the tutorial", TaskType.DOCS),
        ("Kneading tests fail on main", TaskType.TEST),
        ("Bump flour and release wheels", TaskType.OTHER),
        ("", TaskType.OTHER),
    ],
)
def test_the_words_of_an_issue_tell_its_kind(issue, task_type):
    assert task_type_of(issue) is task_type
