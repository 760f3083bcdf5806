"""Summaries of methodologies: by a template, and by a language model, whose answer is checked."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import orjson

from contextgraph.config import REQUEST_MARK
from contextgraph.inference.answering import Answered
from contextgraph.inference.chat import fields_in, prompt_about
from contextgraph.knowledge.distil import repair_of
from contextgraph.model import (
    NO_USAGE,
    Clearance,
    CommonRemedy,
    Json,
    MethodologyGroup,
    ModelWording,
    Summary,
    Words,
    texts_in,
)
from contextgraph.model.values import replace
from contextgraph.text import clean, clip, gives_instructions, mask_secrets, number_of, regex
from contextgraph.trace import command_lines, describe_remedy

if TYPE_CHECKING:
    from pydantic import BaseModel


MADE_BY = "template/1"
_TEMPLATE_MESSAGE_CHARS = 200


def template_summary(group: MethodologyGroup) -> Summary:
    """Return *group* in words: where, which error, and what was done, with counts."""
    return Summary(_situation(group), _strategy(group), MADE_BY)


def _situation(group: MethodologyGroup) -> str:
    where = f"in {group.repo}, when" if group.repo else "when"
    task = f" in a {group.task_type.replace('_', ' ')} task" if group.task_type else ""
    (phase, _), *_ = Counter(clearance.phase for clearance in group.clearances).most_common(1)
    return f"{where} `{_error(group)}`{task}, mostly while {phase}"


def _error(group: MethodologyGroup) -> str:
    """The error as it shows, with placeholders for what varies."""
    message = group.error.template
    if group.keyword:
        message = group.clearances[0].recovered.message
    line = clip(" ".join(message.split()), _TEMPLATE_MESSAGE_CHARS, at="end")
    kind = group.error.error_type
    if not line or line.startswith(kind) or line == kind:
        return line or kind
    return f"{kind}: {line}"


def _strategy(group: MethodologyGroup) -> str:
    """A sentence for each remedy, numbered where there are several."""
    sentences = [_remedy_sentence(remedy) for remedy in group.remedies]
    if len(sentences) == 1:
        return sentences[0]
    return " ".join(f"({number}) {sentence}" for number, sentence in enumerate(sentences, start=1))


def _remedy_sentence(remedy: CommonRemedy) -> str:
    steps = "1 step" if round(remedy.steps, 1) == 1 else f"{remedy.steps:.1f} steps"
    of_all = f"{remedy.tasks} of {number_of(remedy.cleared, 'task')} that cleared it"
    return f"{remedy.text} ({of_all}; {steps})."


_EXAMPLES, _ACTIONS = 3, 6
_MESSAGE_CHARS, _ACTION_CHARS, _TEXT_CHARS = 300, 160, 400


def facts_of(group: MethodologyGroup) -> dict[str, Json]:
    """Return what several runs have in common, as JSON for a prompt."""
    return {
        "repository": group.repo or "",
        "kind_of_task": group.task_type.replace("_", " ") if group.task_type else "",
        "about": _fit(group.keyword, _TEXT_CHARS),
        "error": {
            "type": group.error.error_type,
            "message": _fit(group.error.template, _MESSAGE_CHARS),
        },
        "remedies": [_fit(remedy.text, _TEXT_CHARS) for remedy in group.remedies],
        "examples": [_example(clearance) for clearance in group.clearances[:_EXAMPLES]],
    }


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


PROMPT_VERSION = "methodology.v2"
_ATTEMPTS = 2
USUAL_ANSWER_TOKENS = 200
_MAX_SITUATION, _MAX_STRATEGY = 400, 900
_CODE = regex(r"`([^`]+)`")
_ADDRESS = regex(r"\b[a-z][a-z0-9+.-]*://[^\s`)]+")


class _UnusableWordsError(Exception):
    """Words that cannot be used; the message is sent to the model as the reason."""


class _UnformedError(_UnusableWordsError):
    """An answer without the fields that were asked for."""


def worded_by(model: str) -> str:
    """Return the name under which words of *model* are kept, with the version of the prompt."""
    return f"{model} {PROMPT_VERSION}"


def request_about(group: MethodologyGroup) -> str:
    """Return the text that is sent about *group*; what it has of runs is masked and cut."""
    return f"{REQUEST_MARK}\n\n{prompt_about(PROMPT_VERSION, _facts(group))}"


def reword(
    group: MethodologyGroup, model: str, ask: "Callable[[str, type[BaseModel]], Answered]"
) -> ModelWording:
    """Return *group* in words of *model*, which *ask* asks; once more for an unusable answer.

    Raises `RemoteError` where *ask* does.
    """
    text, usage = request_about(group), NO_USAGE
    for _ in range(_ATTEMPTS):
        answer = ask(text, _answer_form())
        usage += answer.usage
        wording = wording_in(answer.text, group, model)
        if wording.words:
            break
        text = repair_of(request_about(group), answer.text, [wording.reason], "object")
    return replace(wording, usage=usage)


def wording_in(answer: str, group: MethodologyGroup, model: str) -> ModelWording:
    """Return the words for *group* in an *answer* of *model*, or the reason why it has none."""
    facts, name = _facts(group), worded_by(model)
    try:
        return ModelWording(_words_in(answer, "\n".join(texts_in(orjson.loads(facts))), name))
    except _UnusableWordsError as error:
        is_formed = not isinstance(error, _UnformedError)
        return ModelWording(Words(name), reason=str(error), is_formed=is_formed)


def _facts(group: MethodologyGroup) -> str:
    return orjson.dumps({key: value for key, value in facts_of(group).items() if value}).decode()


@cache
def _answer_form() -> "type[BaseModel]":
    """The form of an answer; pydantic comes with the client of OpenAI."""
    from pydantic import ConfigDict, create_model

    config = ConfigDict(extra="forbid", strict=True)
    return create_model(
        "Methodology",
        __config__=config,
        situation=(str, ...),
        strategy=(str, ...),
        not_when=(str, ...),
    )


def _words_in(answer: str, known: str, model: str) -> Words:
    """Return the words in *answer*; raise `_UnusableWordsError`.

    Code that they quote must stand in *known*, the texts of the facts.
    """
    from pydantic import ValidationError

    try:
        words = fields_in(answer, _answer_form())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _UnformedError(f"{where}: {first['msg']}" if where else first["msg"]) from error
    return Words(
        model,
        situation=_checked("situation", words["situation"], _MAX_SITUATION, known),
        strategy=_checked("strategy", words["strategy"], _MAX_STRATEGY, known),
        not_when=_checked("not_when", words["not_when"], _MAX_SITUATION, known, required=False),
    )


def _checked(name: str, value: str, limit: int, known: str, *, required: bool = True) -> str:
    """*value* on one line, masked; raises `_UnusableWordsError`.

    Quoted code must be among the facts, because an agent would run it.
    """
    text = mask_secrets(" ".join(clean(value).split()))
    if len(text) > limit:
        raise _UnusableWordsError(f"{name} is longer than {limit} characters")
    if not text and required:
        raise _UnusableWordsError(f"{name} is empty")
    if gives_instructions(text):
        raise _UnusableWordsError(f"{name} addresses its reader")
    facts = " ".join(known.split())
    for address in _ADDRESS.findall(text):
        if address not in facts:
            raise _UnusableWordsError(f"{address} does not occur in the facts")
    for code in _CODE.findall(text):
        if code.strip() not in facts:
            raise _UnusableWordsError(f"`{code}` does not occur in the facts")
    return text
