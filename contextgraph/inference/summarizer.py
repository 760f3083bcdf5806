"""Summaries of methodologies: by a template, and by a language model, whose answer is checked."""

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import orjson
from msgspec import Struct

from contextgraph.inference.chat import Chat, fields_in, first_messages, prompt_text
from contextgraph.model import (
    NO_USAGE,
    Clearance,
    CommonRemedy,
    Json,
    MethodologyGroup,
    ModelWording,
    Summary,
    Usage,
    Words,
    texts_in,
)
from contextgraph.text import (
    clean,
    clip,
    count_tokens,
    gives_instructions,
    mask_secrets,
    number_of,
    regex,
)
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
    sentences = [_remedy_sentence(remedy, group.cleared) for remedy in group.remedies]
    if len(sentences) == 1:
        return sentences[0]
    return " ".join(f"({number}) {sentence}" for number, sentence in enumerate(sentences, start=1))


def _remedy_sentence(remedy: CommonRemedy, cleared: int) -> str:
    steps = "1 step" if round(remedy.steps, 1) == 1 else f"{remedy.steps:.1f} steps"
    of_all = f"{remedy.tasks} of {number_of(cleared, 'task')} that cleared it"
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
_USUAL_ANSWER_TOKENS = 200
_MAX_SITUATION, _MAX_STRATEGY = 400, 900
_CODE = regex(r"`([^`]+)`")
_ADDRESS = regex(r"\b[a-z][a-z0-9+.-]*://[^\s`)]+")


class UnusableWordsError(Exception):
    """Words that cannot be used; the message is sent to the model as the reason."""


class RemoteSummarizer(Struct, frozen=True):
    """Asks a language model for the words of a methodology. What is sent is masked and cut."""

    chat: Chat

    @property
    def name(self) -> str:
        """The model and the version of the prompt."""
        return f"{self.chat.model.full_name} {PROMPT_VERSION}"

    def prompt(self, group: MethodologyGroup) -> str:
        """Return the prompt about *group*."""
        return request_about(group)

    def estimate(self, group: MethodologyGroup) -> Usage:
        """About what one answer uses."""
        sent, answered = count_tokens(self.prompt(group)), _USUAL_ANSWER_TOKENS
        return Usage(1, sent + answered, self.chat.model.prices.cost(sent, answered))

    def reword(self, group: MethodologyGroup, *, interactive: bool = False) -> ModelWording:
        """Return *group* in the model's words; an unusable answer is requested once more.

        Raises `RemoteError` where the server fails.
        """
        facts, known = _facts(group), known_of(group)
        messages = first_messages(PROMPT_VERSION, facts)
        usage, reason = NO_USAGE, ""
        for _ in range(_ATTEMPTS):
            answer, call = self.chat.complete(messages, _answer_form(), interactive=interactive)
            usage += call
            try:
                return ModelWording(words_in(answer, known, self.name), usage)
            except UnusableWordsError as error:
                reason = str(error)
            messages.append({"role": "assistant", "content": answer})
            messages.append({"role": "user", "content": f"Not usable: {reason}. Answer again."})
        return ModelWording(Words(self.name), usage, reason)


def request_about(group: MethodologyGroup) -> str:
    """Return the whole request for words of *group*, as one text."""
    return f"{prompt_text(PROMPT_VERSION)}\n{_facts(group)}"


def known_of(group: MethodologyGroup) -> str:
    """Return the texts of the facts of *group*, in which quoted code has to stand."""
    return "\n".join(texts_in(orjson.loads(_facts(group))))


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


def words_in(answer: str, known: str, model: str) -> Words:
    """Return the words in *answer*; raise `UnusableWordsError`.

    Code that they quote must stand in *known*, the texts of the facts.
    """
    from pydantic import ValidationError

    try:
        words = fields_in(answer, _answer_form())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnusableWordsError(f"{where}: {first['msg']}" if where else first["msg"]) from error
    return Words(
        model,
        situation=_checked("situation", words["situation"], _MAX_SITUATION, known),
        strategy=_checked("strategy", words["strategy"], _MAX_STRATEGY, known),
        not_when=_checked("not_when", words["not_when"], _MAX_SITUATION, known, required=False),
    )


def _checked(name: str, value: str, limit: int, known: str, *, required: bool = True) -> str:
    """*value* on one line, masked; raises `UnusableWordsError`.

    Quoted code must be among the facts, because an agent would run it.
    """
    text = mask_secrets(" ".join(clean(value).split()))
    if len(text) > limit:
        raise UnusableWordsError(f"{name} is longer than {limit} characters")
    if not text and required:
        raise UnusableWordsError(f"{name} is empty")
    if gives_instructions(text):
        raise UnusableWordsError(f"{name} addresses its reader")
    facts = " ".join(known.split())
    for address in _ADDRESS.findall(text):
        if address not in facts:
            raise UnusableWordsError(f"{address} does not occur in the facts")
    for code in _CODE.findall(text):
        if code.strip() not in facts:
            raise UnusableWordsError(f"`{code}` does not occur in the facts")
    return text
