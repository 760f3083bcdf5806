"""What a model is told about a group: counted facts and examples, masked and cut to length."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import orjson

from contextgraph.model import Clearance, Group, Json, MethodologyGroup, PracticeGroup
from contextgraph.text import clip, mask_secrets

VERSION = "methodology.v1"
_EXAMPLES, _ACTIONS = 3, 6
_MESSAGE_CHARS, _ACTION_CHARS, _TEXT_CHARS = 300, 160, 400


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: *rules*, and the *facts* of one group as JSON; *told* is all text in them."""

    rules: str
    facts: str
    told: str

    def __str__(self) -> str:
        return f"{self.rules}\n{self.facts}"


def prompt_of(group: Group) -> Prompt:
    """The prompt about *group*."""
    facts = _of_error(group) if isinstance(group, MethodologyGroup) else _of_practice(group)
    kept: dict[str, Json] = {key: value for key, value in facts.items() if value}
    return Prompt(_rules(), orjson.dumps(kept).decode(), "\n".join(_texts(kept)))


@lru_cache(1)
def _rules() -> str:
    return files(__package__).joinpath("prompts", f"{VERSION}.md").read_text(encoding="utf-8")


def _of_error(group: MethodologyGroup) -> dict[str, Json]:
    return {
        "repository": group.repo or "",
        "kind_of_task": _kind(group),
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
        "kind_of_task": _kind(group),
        "about": _fit(group.keyword, _TEXT_CHARS),
        "phase": str(group.phase),
        "remedies": [_fit(practice.text, _TEXT_CHARS) for practice in group.practices],
    }


def _kind(group: Group) -> str:
    return group.task_type.replace("_", " ") if group.task_type else ""


def _example(clearance: Clearance) -> dict[str, Json]:
    recovered = clearance.recovered
    return {
        "message": _fit(recovered.message, _MESSAGE_CHARS),
        "what_was_done": _fit(recovered.what, _TEXT_CHARS),
        "actions": [_fit(action, _ACTION_CHARS) for action in recovered.actions[:_ACTIONS]],
    }


def _fit(text: str, most: int) -> str:
    """*text* as it may leave the machine; masked first, for half a secret is not recognised."""
    valid = text.encode("utf-8", "replace").decode()
    return clip(mask_secrets(valid), most)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
