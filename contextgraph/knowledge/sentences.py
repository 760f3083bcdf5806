"""Rates a person's sentence: how likely a reader wants it as a lesson that stands alone.

A logistic regression over words that occur in labelled sentences of several projects, and over the
form of the sentence and its place in the turn (`python -m benchmarks.lessons --fit`). A sentence
whose words it does not know, as of another language, has only its form, and stays unsure.
"""

from collections.abc import Mapping
from re import IGNORECASE

from msgspec import Struct

from contextgraph.ranking.fitted import fitted
from contextgraph.text import regex, stems

MODEL = "lessons"
# From the first on a sentence is kept as proposed. It is active if it stands alone, from the second
# on, and from the third on where it says that it holds for all cases.
LEAST, SURE, _SURE_OF_ALL = 0.2, 0.6, 0.4
_MOST_WORDS, _FEW, _MANY = 30, 5, 25
_MOST_SENTENCES, _TURN, _LONGEST_TURN, _AGENT = 10, 200, 5, 600
_WORD = regex(r"[a-z]+(?:'[a-z]+)?")
_LETTER, _DIGIT, _SHOUTED = regex(r"[^\W\d_]"), regex(r"\d"), regex(r"\b[A-Z]{3,}\b")
_NAME = regex(r"`|\w/\w|\w\.\w|\w_\w|--\w|[a-z][A-Z]")
# "OK, so", "No man...", "Umm": what a person says before the sentence.
_INTERJECTION = regex(
    r"\W*(?:(?:ok(?:ay)?|k|yes|yeah|yep|yup|no|nope|well|hm+|u[hm]+|oh|ah|so|now|actually|right|sure"
    r"|hey|man|please|thanks|just|and|but|also|because)\b\W*)+",
    IGNORECASE,
)
# Such a word at the start stands for what was said before.
_BACKWARD = regex(
    r"\W*(?:it|its|he|she|they|them|their|this|that|these|those|such|then|there|otherwise|instead"
    r"|therefore|hence|thus|besides|likewise|similarly|whereas|whose|which|or|nor|neither|either"
    r"|both|in particular|for (?:example|instance)|same|ditto|the (?:same|other|others|rest|former"
    r"|latter|first|second|third|last) ?(?:one)?)\b",
    IGNORECASE,
)
# The words that stand for what was said before, wherever they are in a sentence.
_POINTING = regex(
    r"\b(?:this|these|those)\b(?!\s+(?:repo|repository|project|codebase|workspace|machine)\b)"
    r"|\bthat(?=['’]s\b|\s+(?:is|was|way|one)\b|\W*\Z|\s*[,;.)])"
    r"|\b(?:the|that|any|no|have|an?)(?: \w+)? ones?\b|\b(?:above|below|aforementioned)\b"
    r"|\b(?:the|that) (?:same|latter|former)\b|\b(?:like|as) before\b",
    IGNORECASE,
)
# One who says so is not settled yet, or reports what happened to be seen.
_UNSETTLED = regex(
    r"\b(?:could|might|may|maybe|perhaps|probably|possibly|presumably|seems?|feels?|looks? like"
    r"|guess|wonder\w*|worried|thinking|suppose|hopefully|not sure|pretty sure)\b"
    r"|\bI(?:['’](?:m|d|ll|ve)|\s+(?:was|am|had|have|will|did|could|just|also))\b",
    IGNORECASE,
)
_FOR_ALL = regex(r"\b(?:never|always|must|only|every|each|any|all|ever|none)\b", IGNORECASE)
# "address 41, 42", "#3": an item of a list that stands elsewhere.
_ITEM = regex(r"(?<!\w)#\d+|\A\W*(?:[a-z]+\s+){0,2}\d{1,3}\s*(?:[,:.)]|and\b|\Z)", IGNORECASE)
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


def is_sure(text: str, likely: float) -> bool:
    """Return whether a sentence that is so *likely* a lesson is active before any review."""
    least = _SURE_OF_ALL if _FOR_ALL.search(text) else SURE
    return likely >= least and stands_alone(text) and not _UNSETTLED.search(text)


def stands_alone(text: str) -> bool:
    """Return whether *text* can be understood without what was said before it, by its form.

    It neither begins with a word that continues something nor points at it, asks nothing, and names
    no item of a list that stands elsewhere.
    """
    start = _INTERJECTION.match(text)
    said = text[start.end() :] if start else text
    refers = _BACKWARD.match(said) or _POINTING.search(said) or _ITEM.search(said)
    return bool(said) and not refers and "?" not in said


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
