"""Rates a person's sentence: how likely a reader wants it as a lesson that stands alone.

A logistic regression over words that occur in labelled sentences of several projects, and over the
form of the sentence and its place in the turn (`python -m benchmarks.lessons --fit`). A sentence
whose words it does not know, as of another language, has only its form, and stays unsure.
"""

from collections.abc import Mapping
from re import IGNORECASE

from msgspec import Struct

from contextgraph.knowledge.fitted import fitted
from contextgraph.text import regex, stems

MODEL = "lessons"
# From the first on a sentence is kept as proposed. It is active if it stands alone, from the second
# on, and from the third on where it says what is always or never so.
LEAST, SURE, _SURE_OF_ALWAYS = 0.2, 0.8, 0.4
_MOST_WORDS, _FEW, _MANY = 30, 5, 25
_MOST_SENTENCES, _TURN, _LONGEST_TURN, _AGENT = 10, 200, 5, 600
_WORD = regex(r"[a-z]+(?:'[a-z]+)?")
_LETTER, _DIGIT, _SHOUTED = regex(r"[^\W\d_]"), regex(r"\d"), regex(r"\b[A-Z]{3,}\b")
_NAME = regex(r"`|\w/\w|\w\.\w|\w_\w|--\w|[a-z][A-Z]")
# Short lists of English words, of which each ranks sentences of a project that the model was not
# fitted on better than the model does without it (docs/measurements.md).
_OPENING = regex(r"\W*(?:(?:ok(?:ay)?|yes|yeah|no|well|so|now|actually)\b\W*)+", IGNORECASE)
# An answer, or the second half of a sentence: "no — round up", "and if both are there".
_GOES_ON = regex(
    r"\W*(?:(?:ok(?:ay)?|well|so|now|actually)\b\W*)*"
    r"(?:(?:and|but|also|because)\b|(?:yes|yeah|no)\b(?:\s\w+)?(?:[,.;:!?…]+\s|\s+[–—-]))",
    IGNORECASE,
)
_PRONOUN = regex(
    r"\W*(?:it|its|he|she|they|them|their|this|that|these|those|then|there)\b", IGNORECASE
)
_POINTING = regex(
    r"\b(?:this|these|those)\b(?!\s+(?:repo|repository|project|codebase)\b)"
    r"|\b(?:that|above|below)(?=\W*\Z|\s*[,;.)])",
    IGNORECASE,
)
_DOUBT = regex(
    r"\b(?:could|might|may|maybe|perhaps|probably|possibly|presumably|seems?|feels?|looks? like"
    r"|guess|wonder\w*|worried|thinking|suppose|hopefully|not sure|pretty sure)\b",
    IGNORECASE,
)
# An order for all times by its form; the model has met few.
_STANDING = regex(r"\W*(?:please\s+)?(?:always|never)\s+\w+\s+[\w`]", IGNORECASE)
# At the end of a sentence it stresses what was said before: "no — round up, always".
_ALWAYS = regex(r"\b(?:always|never)\s+[\w`]", IGNORECASE)
# "address 41, 42", "#3", "issues 17": an item of a list that stands elsewhere.
_ITEM = regex(
    r"(?<!\w)#\d+|\A\W*(?:[a-z]+\s+){0,2}\d{1,3}\s*(?:[,:.)]|and\b|\Z)"
    r"|\b(?:issue|item|point|option|finding|comment|suggestion|improvement|problem|bug)s?\s+\d",
    IGNORECASE,
)
_ABSENT = regex(
    r"(?i:\b(?:no|not|never|without|instead|delet\w+|remov\w+|mov\w+|renam\w+|merg\w+|new|add\w*)\b)"
)
_AFTER = 3  # words after the name of a file that may say so of it
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
    """Return the probability that a reader wants the sentence as a lesson; 0 for another script."""
    letters = len(_LETTER.findall(text))
    readable = sum(map(len, _WORD.findall(text.lower().replace("’", "'"))))
    if not letters or readable < _READABLE * letters:
        return 0.0
    model = fitted(MODEL)
    found: Mapping[str, float] = features(text, place)
    return model.probability({name: found[name] for name in found if name in model.weights})


def is_sure(text: str, likely: float) -> bool:
    """Return whether a sentence that is so *likely* a lesson is active before any review.

    It can be understood without what was said before it, and asks and doubts nothing.
    """
    least = LEAST if is_standing_order(text) else _SURE_OF_ALWAYS if holds_always(text) else SURE
    return likely >= least and is_settled(text) and stands_alone(text)


def is_settled(text: str) -> bool:
    """Return whether *text* has neither a question nor a doubt."""
    return "?" not in text and not _DOUBT.search(text)


def stands_alone(text: str) -> bool:
    """Return whether the form of *text* lets it be understood without what was said before it.

    It begins with no pronoun, points at nothing unnamed, and names no item of a list elsewhere. Of
    those that begin with an answer only what says what is always or never so.
    """
    opening = _OPENING.match(text)
    said = text[opening.end() :] if opening else text
    pointing = _POINTING.search(said)
    # "keep walk.py apart from main.py, never merge those files" has named what it points at.
    is_named = (
        pointing
        and said[pointing.end() :].startswith(" ")
        and _NAME.search(said[: pointing.start()])
    )
    points = pointing and not is_named
    goes_on = _GOES_ON.match(text) and not holds_always(text)
    return bool(said) and not (goes_on or _PRONOUN.match(said) or points or _ITEM.search(said))


def names_code(text: str) -> bool:
    """Return whether *text* names a file, symbol or option: it is the same in any conversation."""
    return bool(_NAME.search(text))


def is_standing_order(text: str) -> bool:
    """Return whether *text* says what is always or never to be done: "always run pytest"."""
    return bool(_STANDING.match(text))


def holds_always(text: str) -> bool:
    """Return whether *text* says anywhere what is always or never so: "we never commit those"."""
    return bool(_ALWAYS.search(text))


def speaks_of_absence(text: str, of: str = "") -> bool:
    """Return whether *text* says that something is not to be there, or new, or moved.

    Where it names the file *of*, it says so before the name, or soon after it.
    """
    before, found, after = text.rpartition(of) if of else ("", "", text)
    near = after.split()[:_AFTER] if found else [after]
    return any(map(_ABSENT.search, (before, *near)))


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
