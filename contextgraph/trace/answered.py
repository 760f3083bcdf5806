"""Questions that an agent asked through a tool of its client, with the answers of the person.

The call has ``questions`` with the options of each (Claude Code, opencode, Codex, Gemini CLI); its
result has the answers as JSON by the ids of the questions, or as ``"question"="answer"``. Pages of
SpecStory have them in one line.
"""

from collections.abc import Iterator, Mapping, Sequence

import orjson
from msgspec import Struct

from contextgraph.model import Action, Json, Step
from contextgraph.text import regex

_FIELDS = ("question", "prompt")
_RECOMMENDED = "(Recommended)"
# A number alone, or before more that is wanted: not that of "3 days".
_PICKED = regex(r"[1-9](?=\s*(?:\Z|[,.;:)+&]|(?:and|but|with|plus)\b))")
_NEXT, _OF_SERVERS = ", ", "mcp_"  # as clients name tools of MCP servers


class Answer(Struct, frozen=True):
    """The *words* that a person answered to *question*; *is_offered*: all are its options.

    *meant* has the option in place of the number by which the words begin: "1, and keep it".
    """

    question: str
    words: str
    is_offered: bool
    meant: str


class _Question(Struct, frozen=True):
    text: str
    id: str
    options: tuple[str, ...]


def answers_of(step: Step) -> tuple[Answer, ...]:
    """Return the answers of the person to the questions of *step*."""
    found = answers_in(step.action, step.observation or "")
    if not found and step.user_message and not step.denied:
        found = tuple(_in_a_line([*_questions(step.action.arguments)], step.user_message))
    # Without any option it may be another message.
    return found if len(found) < 2 or any(one.is_offered for one in found) else ()


def answers_in(action: Action, result: str) -> tuple[Answer, ...]:
    """Return the answers in the *result* of the call *action*; a server's tool asks nobody."""
    is_asking = "questions" in action.arguments and not action.tool.startswith(_OF_SERVERS)
    questions = [*_questions(action.arguments)] if is_asking else []
    return tuple(_by_id(questions, result) or _quoted(questions, result)) if questions else ()


def _questions(arguments: Mapping[str, Json]) -> Iterator[_Question]:
    listed = arguments.get("questions")
    for place, row in enumerate(listed if isinstance(listed, list) else ()):
        if not isinstance(row, dict):
            continue
        text = next((one for name in _FIELDS if isinstance(one := row.get(name), str)), "")
        given = row.get("options")
        rows = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
        options = tuple(label for one in rows if isinstance(label := one.get("label"), str))
        if text.strip():
            yield _Question(text, str(row.get("id", place)), options)


def _by_id(questions: Sequence[_Question], result: str) -> list[Answer]:
    if not result.lstrip().startswith("{"):
        return []
    try:
        read = orjson.loads(result)
    except orjson.JSONDecodeError:
        return []
    given = read.get("answers")
    found = list[Answer]()
    for one in questions if isinstance(given, dict) else ():
        answer = given.get(one.id)
        words = answer.get("answers") if isinstance(answer, dict) else answer
        chosen = words if isinstance(words, list) else [words]
        found += _answer(one, [word for word in chosen if isinstance(word, str)])
    return found


def _quoted(questions: Sequence[_Question], result: str) -> list[Answer]:
    marks = [f'"{one.text}"="' for one in questions]
    starts = [result.find(mark) for mark in marks]
    found = list[Answer]()
    for one, mark, start in zip(questions, marks, starts, strict=True):
        if start >= 0:
            end = min((other for other in starts if other > start), default=len(result))
            words, _, _ = result[start + len(mark) : end].rpartition('"')
            found += _in_a_line([one], words)
    return found


def _in_a_line(questions: Sequence[_Question], line: str) -> list[Answer]:
    """Return the answers that *line* has in the order of *questions*, with commas between them.

    An option is an answer, or a part of one of several options; other words are one answer. The
    last one reaches to the end.
    """
    found, parts = list[Answer](), line.strip().split(_NEXT)
    for place, one in enumerate(questions):
        later = questions[place + 1 :]
        most = len(parts) - len(later)
        size = _offered(parts[: max(0, most)], one) if later else most
        if not size:
            # The words of a person reach to the first option of the next question.
            following = _options(later[0])
            ends = (n for n in range(1, most + 1) if _begins(parts, n, following))
            size = next(ends, most)
        words, parts = parts[:size], parts[size:]
        found += _answer(one, words)
    return found


def _options(question: _Question) -> list[list[str]]:
    """Return the options of *question*, each in the parts between its commas."""
    return [option.split(_NEXT) for option in dict.fromkeys(question.options)]


def _offered(parts: list[str], question: _Question) -> int:
    """Return how many of *parts*, from the first on, are options of *question*."""
    options, ends, left = _options(question), {0}, [0]
    while left:
        start = left.pop()
        new = {start + len(one) for one in options if _begins(parts, start, [one])} - ends
        ends |= new
        left += new
    return max(ends)


def _begins(parts: list[str], start: int, options: Sequence[list[str]]) -> bool:
    """Return whether one of *options* is at *start* in *parts*."""
    return any(parts[start : start + len(one)] == one for one in options)


def _answer(question: _Question, chosen: Sequence[str]) -> Iterator[Answer]:
    words = _NEXT.join(one.replace(_RECOMMENDED, "").strip() for one in chosen).strip()
    if words:
        parts = _NEXT.join(chosen).split(_NEXT)
        is_offered = _offered(parts, question) == len(parts)
        said, meant = " ".join(words.split()), words
        picked = None if is_offered else _PICKED.match(words)
        if picked and int(picked[0]) <= len(question.options):
            option = question.options[int(picked[0]) - 1].replace(_RECOMMENDED, "").strip()
            meant = option + words[picked.end() :]
        asked = " ".join(question.text.split())
        yield Answer(asked, said, is_offered, " ".join(meant.split()))
