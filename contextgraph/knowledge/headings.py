"""Headings under which lessons are listed."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from contextgraph.knowledge.sentences import is_common
from contextgraph.model import Lesson, Origin
from contextgraph.text import regex, stems

# The noun phrase after one of these ends at a word that the model of sentences knows.
_PHRASE = regex(
    r"\b(?i:the|an?|our|your|its|their|each|every|any|of)\s+(?=(?P<words>[A-Za-z][\w'-]*"
    r"(?: [A-Za-z][\w'-]*){0,3}))"
)
_FEWEST_LETTERS, _MOST_WORDS = 3, 2
# A word that more of the lessons have is the project's.
_OF_THE_PROJECT, _FEW = 0.2, 8
_NAME, _PHRASES, _WORD = 3, 2, 1
# So many lessons have to share it: one word says less than a phrase.
_FEWEST = {_NAME: 2, _PHRASES: 2, _WORD: 3}


def by_heading(lessons: Sequence[Lesson]) -> dict[str, list[Lesson]]:
    """Return *lessons* by heading, in their order; the group of the first is first.

    A heading is the subject that a model gave; else a file, symbol, program, or noun phrase that
    another one shares, else what the lesson names, else its kind.
    """
    named = headings(lessons)
    groups = defaultdict[str, list[Lesson]](list)
    for one in lessons:
        groups[named.get(one.id, f"{one.kind}s")].append(one)
    return dict(groups)


def headings(lessons: Sequence[Lesson]) -> dict[str, str]:
    """Return headings of *lessons* by id, as `by_heading` says; none where there is only a kind."""
    found = {one.id: one.about.subject for one in lessons if one.about.subject}
    members = defaultdict[tuple[int, str], list[str]](list)
    shown = defaultdict[tuple[int, str], Counter[str]](Counter)
    for one in lessons:
        candidates = {(rank, key): as_shown for rank, key, as_shown in _candidates(one)}
        for candidate, as_shown in candidates.items() if one.id not in found else ():
            members[candidate].append(one.id)
            shown[candidate][as_shown] += 1
    most = max(_FEW, _OF_THE_PROJECT * len(lessons))

    def worth(candidate: tuple[int, str]) -> tuple[int, int, str]:
        return candidate[0], len(members[candidate]), candidate[1]

    for candidate in sorted(members, key=worth, reverse=True):
        own = [id_ for id_ in members[candidate] if id_ not in found]
        is_wide = candidate[0] != _NAME and len(members[candidate]) > most
        if len(own) >= _FEWEST[candidate[0]] and not is_wide:
            found |= dict.fromkeys(own, shown[candidate].most_common(1)[0][0])
    for one in lessons:
        if one.about.names:
            found.setdefault(one.id, one.about.names[0])
    return found


def _candidates(lesson: Lesson) -> Iterator[tuple[int, str, str]]:
    """Yield possible headings: their rank, by what two are the same, and as they are shown."""
    for name in lesson.about.names:
        yield _NAME, name.rpartition("/")[2].casefold(), name
    # What is counted is said in one form: its names are all that it speaks of.
    text = "" if lesson.origin is Origin.COUNTED else lesson.text
    for match in _PHRASE.finditer(text):
        phrase = list[str]()
        for word in match["words"].split():
            if is_common(word.lower()) or len(word) < _FEWEST_LETTERS:
                break
            phrase.append(word)
        for size in range(1, _MOST_WORDS + 1):
            for at in range(len(phrase) - size + 1):
                part = " ".join(phrase[at : at + size])
                if len(key := stems(part)) == size:
                    yield _PHRASES if size > 1 else _WORD, " ".join(key), part.lower()
