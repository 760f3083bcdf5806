"""What a prompt says: counted facts and examples, masked and cut to length."""

from collections.abc import Iterator

from contextgraph.model import (
    Clearance,
    Json,
    MethodologyGroup,
    TaskType,
)
from contextgraph.text import clip, mask_secrets
from contextgraph.trace import command_lines, describe_remedy

_EXAMPLES, _ACTIONS = 3, 6
_MESSAGE_CHARS, _ACTION_CHARS, _TEXT_CHARS = 300, 160, 400


def facts_of(group: MethodologyGroup) -> dict[str, Json]:
    """What several runs have in common, as JSON for a prompt."""
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


def _kind(task_type: TaskType | None) -> str:
    return task_type.replace("_", " ") if task_type else ""


def _example(clearance: Clearance) -> dict[str, Json]:
    recovered = clearance.recovered
    return {
        "message": _fit(recovered.message, _MESSAGE_CHARS),
        "what_was_done": _fit(describe_remedy(recovered.actions), _TEXT_CHARS),
        "actions": [
            _fit(line, _ACTION_CHARS) for line in command_lines(recovered.actions)[:_ACTIONS]
        ],
    }


def _fit(text: str, most: int) -> str:
    """*text* as it may leave the machine; masked before it is cut: half a secret is not found."""
    valid = text.encode("utf-8", "replace").decode()
    return clip(mask_secrets(valid), most)
