"""What a model is told: counted facts and examples, masked and cut to length."""

from collections.abc import Iterator

from contextgraph.model import (
    Clearance,
    Fragment,
    Group,
    Json,
    MethodologyGroup,
    PracticeGroup,
    Story,
    TaskType,
)
from contextgraph.text import clip, mask_secrets

_EXAMPLES, _ACTIONS = 3, 6
_MESSAGE_CHARS, _ACTION_CHARS, _TEXT_CHARS = 300, 160, 400
_TASK_CHARS, _SUMMARY_CHARS, _FILES, _ACTIONS_OF_FRAGMENT = 1_500, 900, 12, 4


def facts_of_group(group: Group) -> dict[str, Json]:
    """What is told of what several runs have in common."""
    return _of_error(group) if isinstance(group, MethodologyGroup) else _of_practice(group)


def facts_of_story(story: Story) -> dict[str, Json]:
    """What is told of one run, but for what came of it: that may be learned later."""
    run = story.trajectory
    return {
        "repository": run.repo,
        "kind_of_task": _kind(run.task_type),
        "task": _fit(run.task, _TASK_CHARS),
        "summary": _fit(run.summary, _SUMMARY_CHARS),
        "files_changed": [_fit(path, _ACTION_CHARS) for path in run.files[:_FILES]],
        "fragments": [_fragment(n, one) for n, one in enumerate(story.fragments, start=1)],
    }


def texts_in(value: Json) -> Iterator[str]:
    """All texts in *value*, without the keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts_in(one)


def _of_error(group: MethodologyGroup) -> dict[str, Json]:
    return {
        "repository": group.repo or "",
        "kind_of_task": _kind(group.task_type),
        "about": _fit(group.keyword, _TEXT_CHARS),
        "error": {
            "type": group.error.error_type,
            "message": _fit(group.error.template, _MESSAGE_CHARS),
        },
        "remedies": [_fit(remedy.text, _TEXT_CHARS) for remedy in group.remedies],
        "examples": [_example(clearance) for clearance in group.clearances[:_EXAMPLES]],
    }


def _of_practice(group: PracticeGroup) -> dict[str, Json]:
    return {
        "repository": group.repo,
        "kind_of_task": _kind(group.task_type),
        "about": _fit(group.keyword, _TEXT_CHARS),
        "phase": str(group.phase),
        "remedies": [_fit(practice.text, _TEXT_CHARS) for practice in group.practices],
    }


def _kind(task_type: TaskType | None) -> str:
    return task_type.replace("_", " ") if task_type else ""


def _example(clearance: Clearance) -> dict[str, Json]:
    recovered = clearance.recovered
    return {
        "message": _fit(recovered.message, _MESSAGE_CHARS),
        "what_was_done": _fit(recovered.what, _TEXT_CHARS),
        "actions": [_fit(action, _ACTION_CHARS) for action in recovered.actions[:_ACTIONS]],
    }


def _fragment(number: int, fragment: Fragment) -> dict[str, Json]:
    actions = fragment.action_sequence[:_ACTIONS_OF_FRAGMENT]
    return {
        "number": number,
        "steps": f"{fragment.start}-{fragment.end}",
        "phase": str(fragment.phase),
        "kind": fragment.fragment_type.replace("_", " "),
        "outcome": str(fragment.outcome),
        "description": _fit(fragment.description, _TEXT_CHARS),
        "actions": [_fit(action, _ACTION_CHARS) for action in actions],
    }


def _fit(text: str, most: int) -> str:
    """*text* as it may leave the machine; masked first, for half a secret is not recognised."""
    valid = text.encode("utf-8", "replace").decode()
    return clip(mask_secrets(valid), most)
