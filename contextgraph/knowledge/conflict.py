"""Comparison of two statements: the same, a contradiction, or one supersedes the other.

Two logistic regressions over the alignment of both texts, `same` and `conflicts` of `fitted.json`
(`python -m benchmarks.conflicts --fit`), decide: how much they share, which words only one of them
has, and what stands in the place of what. A word that was not met in labelled pairs has no weight;
statements in a language that the models do not know are compared by their structure.
"""

from collections.abc import Collection, Iterator, KeysView, Sequence
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from msgspec import Struct

from contextgraph.knowledge.fitted import fitted
from contextgraph.text import regex, stem, words

SAME_MODEL, CONFLICT_MODEL = "same", "conflicts"
# How sure a model must be, and a judge.
_SURE, _MIN_JUDGED = 0.75, 0.55
# As much more credible a statement must be to supersede one of another source.
CREDIBILITY_MARGIN = 0.1
_TOKEN = regex(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+(?:[.\-/:'’@+][^\W\u4e00-\u9fff]+)*[+#]*|[%$€]")
_CANNOT, _NOT = regex(r"(?i)\bcan(?:['’]t|not)\b"), regex(r"(?i)(?<=[a-z])n['’]t\b")
_NUMBER, _PATH = regex(r"[v$]?\d"), regex(r"[\w.-]*[/_]|\w+\.[a-z]")
_WORDS_READ = 200
_WORD, _SHAPES = "word", ("number", "name", "path")
# Two statements about the same share so much of what one of them is about, and have few words that
# the other has not: those of people that have more are no conflicts.
_LEAST_SHARED, _MOST_OTHERS = 0.33, 6
# Two gaps in texts that share less than half are not one value in the place of another.
_MOST_GAPS, _LEAST_ALIGNED = 2, 0.5


class Relation(StrEnum):
    """Relation of a statement to an earlier one."""

    SAME = "same"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    UNRELATED = "unrelated"


class Statement(Struct, frozen=True):
    """The *text* of a note, its *source* and time, and how credible it is."""

    text: str
    source: str
    stated_at: datetime
    credibility: float = 0.75


class Verdict(Struct, frozen=True):
    """A relation and how sure it is, 0 to 1."""

    relation: Relation
    confidence: float


_UNRELATED = Verdict(Relation.UNRELATED, 0.0)


def verdict(new: Statement, old: Statement) -> Verdict:
    """Relate *new* to *old* by their words."""
    ours, theirs = _Wording.of(new.text), _Wording.of(old.text)
    if ours == theirs:
        return Verdict(Relation.SAME, 1.0)
    if ours.rest != theirs.rest or not may_conflict(new.text, old.text):
        return _UNRELATED
    found = features(new.text, old.text)
    if (probability := fitted(SAME_MODEL).probability(found)) >= _SURE:
        return Verdict(Relation.SAME, probability)
    if (probability := fitted(CONFLICT_MODEL).probability(found)) >= _SURE:
        return _conflict(new, old, probability)
    return _UNRELATED


def may_conflict(new: str, old: str) -> bool:
    """Return whether two statements share enough words to be about the same."""
    ours, theirs = _Wording.of(new).content, _Wording.of(old).content
    is_shared = len(ours & theirs) >= max(1, _LEAST_SHARED * min(len(ours), len(theirs)))
    return is_shared and len(ours ^ theirs) <= _MOST_OTHERS


def judged(verdict: Verdict, new: Statement, old: Statement) -> Verdict:
    """Return the *verdict* of a judge if it is sure; this decides which statement prevails."""
    if verdict.confidence < _MIN_JUDGED:
        return _UNRELATED
    if verdict.relation in (Relation.SAME, Relation.UNRELATED):
        return verdict
    return _conflict(new, old, verdict.confidence)


def _conflict(new: Statement, old: Statement, confidence: float) -> Verdict:
    """*new* prevails if it is not older, and of the same source or clearly more credible."""
    more_credible = new.credibility >= old.credibility + CREDIBILITY_MARGIN
    prevails = new.stated_at >= old.stated_at and (new.source == old.source or more_credible)
    return Verdict(Relation.SUPERSEDES if prevails else Relation.CONTRADICTS, confidence)


class _Wording(Struct, frozen=True):
    """The stems of a statement in order, and the *shape* of each: word, number, name or path.

    *rest* is the text after the words that are compared.
    """

    words: tuple[str, ...]
    shapes: tuple[str, ...]
    rest: str

    @classmethod
    @lru_cache(1024)
    def of(cls, text: str) -> "_Wording":
        plain = _NOT.sub(" not", _CANNOT.sub("can not", text))
        read = [*islice(_TOKEN.finditer(plain), _WORDS_READ)]
        tokens = [one.group() for one in read]
        shapes = (_shape(token, is_first=not at) for at, token in enumerate(tokens))
        rest = plain[read[-1].end() :] if len(read) == _WORDS_READ else ""
        return cls(tuple(stem(token.lower()) for token in tokens), tuple(shapes), rest.strip())

    @property
    def content(self) -> KeysView[str]:
        """The words that say what it is about, in order."""
        given = zip(self.words, self.shapes, strict=True)
        return dict.fromkeys(word for word, one in given if one != _WORD or words(word)).keys()

    def of_shape(self, shape: str) -> set[str]:
        """Return its words of this shape."""
        given = zip(self.words, self.shapes, strict=True)
        return {word for word, one in given if one == shape}

    def units(self) -> set[str]:
        """Return the words that follow a number."""
        following = pairwise(zip(self.words, self.shapes, strict=True))
        return {word for (_, shape), (word, _) in following if shape == "number"}


def _shape(token: str, *, is_first: bool) -> str:
    if _NUMBER.match(token):
        return "number"
    if _PATH.match(token):
        return "path"
    is_plain = token.islower() or not token.isascii() or (is_first and token[1:].islower())
    return _WORD if is_plain or token == "A" else "name"


class _Gap(NamedTuple):
    """Where the old statement has *old* words and the new one *new* ones, from these places on."""

    old: Sequence[str]
    new: Sequence[str]
    old_at: int
    new_at: int


def features(new: str, old: str) -> dict[str, float]:
    """Return by name how two statements differ; those of words have a prefix with a blank."""
    from difflib import SequenceMatcher

    ours, theirs = _Wording.of(new), _Wording.of(old)
    mine, its = ours.content, theirs.content
    content = {*mine, *its}
    added = [word for word in mine if word not in theirs.words]
    gone = [word for word in its if word not in ours.words]
    shares = [1 - len(added) / max(1, len(mine)), 1 - len(gone) / max(1, len(its))]
    matcher = SequenceMatcher(None, theirs.words, ours.words, autojunk=False)
    aligned = matcher.ratio()
    changes = [
        _Gap(theirs.words[start:end], ours.words[new_start:new_end], start, new_start)
        for tag, start, end, new_start, new_end in matcher.get_opcodes()
        if tag != "equal"
    ]
    gaps = [one for one in changes if not content.isdisjoint((*one.old, *one.new))]
    found = {
        "aligned": aligned,
        "most shared": max(shares),
        "least shared": min(shares),
        "same subject": float([*mine][:1] == [*its][:1]),
        "subject named": float(bool(its) and next(iter(its)) in ours.words),
        "added": min(len(added), 4) / 2,
        "gone": min(len(gone), 4) / 2,
        "differing": (len(added) + len(gone)) / 5,
        "rewritten": min(len(added), len(gone)) / 2,
        "one side": float((not added) != (not gone)),
        "nothing else": float(not added and not gone),
        "same order": float(not changes),
        "changes": min(len(changes), 4) / 2,
        "gaps": min(len(gaps), 4) / 2,
    }
    for word in {*ours.words} ^ {*theirs.words}:
        if {*added, *gone} <= {word}:
            found[f"only {word}"] = 1.0
        else:
            found[f"one {word}"] = 2 * aligned**2
        if word in ours.words:
            found[f"new {word}"] = 2 * aligned**2
    replaced = [gap for gap in gaps if all(not content.isdisjoint(one) for one in gap[:2])]
    if len(replaced) == 1 and len(gaps) <= _MOST_GAPS and aligned >= _LEAST_ALIGNED:
        found |= {"more gaps": (len(gaps) - 1) / 2, "one change": float(len(changes) == 1)}
        found |= _of_gap(replaced[0], ours, theirs, content)
    for shape in _SHAPES:
        one, other = ours.of_shape(shape), theirs.of_shape(shape)
        found[f"both {shape}"] = float(bool(one and other))
        found[f"other {shape}"] = float(bool(one and other) and one.isdisjoint(other))
        found[f"{shape} in one"] = float(bool(one) != bool(other))
    units = ours.units(), theirs.units()
    found["same unit"] = float(not units[0].isdisjoint(units[1]))
    found["other unit"] = float(all(units) and units[0].isdisjoint(units[1]))
    return found | dict.fromkeys(_beside(ours.words, theirs.words, content), 2.0)


def _of_gap(
    gap: _Gap, ours: _Wording, theirs: _Wording, content: Collection[str]
) -> dict[str, float]:
    """Return the size, place and shape of the one *gap* in two statements."""
    sizes = len(gap.old), len(gap.new)
    end, new_end = gap.old_at + sizes[0], gap.new_at + sizes[1]
    before, after = theirs.words[: gap.old_at], theirs.words[end : end + 1] or ("",)
    is_first = not (gap.new_at and any(word in content for word in before))
    kinds = sorted(
        next(
            shape
            for word, shape in zip(wording.words[start:], wording.shapes[start:], strict=True)
            if word in content
        )
        for wording, start in ((theirs, gap.old_at), (ours, gap.new_at))
    )
    named = [f"{'start' if is_first else 'after'} {after[0]}", f"gap {kinds[0]}-{kinds[1]}"]
    named += [f"before {word}" for word in before[-1:]] + [f"ahead {word}" for word in before]
    return {
        "gap": 1.0,
        "first": float(is_first),
        "last": float(end == len(theirs.words) and new_end == len(ours.words)),
        "long gap": min(*sizes, 4) / 2,
        "longest gap": min(max(sizes), 6) / 3,
        **dict.fromkeys(named, 1.0),
    }


def _beside(new: Sequence[str], old: Sequence[str], content: Collection[str]) -> Iterator[str]:
    """Yield the words that *new* has within two of one that both have, and *old* has not."""
    for at, word in enumerate(new):
        if word in content and word in old:
            yield from (f"lead {one}" for one in new[max(0, at - 2) : at] if one not in old)
            yield from (f"trail {one}" for one in new[at + 1 : at + 3] if one not in old)
