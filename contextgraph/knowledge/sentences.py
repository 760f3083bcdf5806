"""Rates a person's sentence: how likely a reader wants it as a lesson that stands alone.

A logistic regression over words that occur in labelled sentences of several projects, and over the
form of the sentence and its place in the turn (`python -m benchmarks.lessons --fit`). A sentence
whose words it does not know, as of another language, has only its form, and stays unsure.
"""

from collections.abc import Mapping

from msgspec import Struct

from contextgraph.ranking.fitted import fitted
from contextgraph.text import regex, stems

MODEL = "lessons"
# From the first on a sentence is kept as proposed, from the second on as active.
LEAST, SURE = 0.2, 0.4
_MOST_WORDS, _FEW, _MANY = 30, 5, 25
_MOST_SENTENCES, _TURN, _LONGEST_TURN, _AGENT = 10, 200, 5, 600
_WORD = regex(r"[a-z]+(?:'[a-z]+)?")
_LETTER, _DIGIT, _SHOUTED = regex(r"[^\W\d_]"), regex(r"\d"), regex(r"\b[A-Z]{3,}\b")
_NAME = regex(r"`|\w/\w|\w\.\w|\w_\w|--\w|[a-z][A-Z]")
# So many of the letters belong to words that the model can read.
_READABLE = 0.5


class Place(Struct, frozen=True):
    """The place of a sentence: its *turn*, and how many of its *sentences* come *before* it.

    *agent* is what the agent wrote before the turn. *is_task*: the turn began the session.
    *answers*: it follows a question of the agent.
    """

    turn: str
    before: int = 0
    sentences: int = 1
    agent: str = ""
    is_task: bool = False
    answers: bool = False


def features(text: str, place: Place) -> dict[str, float]:
    """Return the words of a sentence and its form, by name."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    own, heard = {*stems(text)}, {*stems(place.agent[-_AGENT:])}
    end, count = text.rstrip()[-1:], len(words)
    found = dict.fromkeys((f"word {word}" for word in words), 1.0)
    found |= {f"first {word}": 1.0 for word in words[:1]}
    return found | {
        "words": min(count, _MOST_WORDS) / 15,
        "few words": float(count < _FEW),
        "many words": float(count > _MANY),
        "?": float("?" in text),
        "!": float("!" in text),
        "continues": float(end in (":", "…")),
        "ends": float(end in (".", "!", "?")),
        "digit": float(bool(_DIGIT.search(text))),
        "name": float(bool(_NAME.search(text))),
        "shouted": float(bool(_SHOUTED.search(text))),
        "small": float(text[:1].islower()),
        "open bracket": float(text.count("(") != text.count(")")),
        "first": float(place.before == 0),
        "place": place.before / max(1, place.sentences),
        "sentences": min(place.sentences, _MOST_SENTENCES) / 5,
        "turn": min(len(place.turn) / _TURN, _LONGEST_TURN) / 2,
        "task": float(place.is_task),
        "long task": place.is_task * min(place.sentences, _MOST_SENTENCES) / 5,
        "answers": float(place.answers and place.before < 2),
        "agent's words": len(own & heard) / max(1, len(own)),
    }


def probability(text: str, place: Place) -> float:
    """Return how likely a reader wants the sentence as a lesson; 0 for another script."""
    letters = len(_LETTER.findall(text))
    readable = sum(map(len, _WORD.findall(text.lower().replace("’", "'"))))
    if not letters or readable < _READABLE * letters:
        return 0.0
    model = fitted(MODEL)
    found: Mapping[str, float] = features(text, place)
    return model.probability({name: found[name] for name in found if name in model.weights})


def is_common(word: str) -> bool:
    """Return whether the model knows a *word*: several projects use it."""
    return f"word {word}" in fitted(MODEL).weights


def is_open(text: str) -> bool:
    """Return whether a bracket or a quote of *text* has no second half."""
    return text.count("(") != text.count(")") or any(text.count(mark) % 2 for mark in '"`')


_ENDS = regex(r"(?:[:…,]|\.\.\.)\s*\Z")


def is_whole(text: str) -> bool:
    """Return whether *text* is a whole sentence: nothing is open, nothing follows."""
    return not (is_open(text) or _ENDS.search(text))
