"""Whether two statements say the same, contradict each other, or one supersedes the other.

Only statements with the same subject are compared: nearly the same words with another value at the
end, or with and without a negation. Similar statements about different things do not conflict.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from enum import StrEnum

_TOKEN = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+(?:[.\-/:'’][^\W\u4e00-\u9fff]+)*")
_NEGATION = frozenset("not never no cannot without 不 没".split())
_CONTRACTED = re.compile(r"n['’]t\Z")
_PREFERENCE = frozenset("prefer preferred using use selected choose chose".split())
_PREFERENCE_HAN = re.compile("喜欢|偏好|选择")
_FILLER = frozenset("a an the do does did please now currently".split())
# What has one value at a time; after other verbs two values may both be true.
_SINGLE_VALUED = _PREFERENCE | frozenset(
    "equals set run require need default version port named called live work belong owned based "
    "deployed cost take = 是 为 用".split()
)
# What may have a value or a property: values are names, not adjectives.
_COPULAS = frozenset("is are was were be".split())
_NUMBER = re.compile(r"[v$€]?\d[\w.:%-]*\Z")
_NAME = re.compile(r"[A-Z\d_./-]")
_THIRD_PERSON = re.compile(r"(?<=[a-z]{2}[^s\W])s\Z")
_LONGEST_VALUE = 3
_VERB_BEFORE = 2
_WORDS_READ = 200


class Relation(StrEnum):
    """What a statement is to an earlier one."""

    SAME = "same"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    UNRELATED = "unrelated"


@dataclass(frozen=True, slots=True)
class Statement:
    """What a note says, who says so (*source*), how credible that is, and when it was said.

    *subject* is an entity, key or title. Statements with different subjects never conflict.
    """

    text: str
    source: str
    said_at: datetime
    credibility: float = 0.75
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A relation and how sure it is, 0 to 1."""

    relation: Relation
    confidence: float


def conflict_confidence(
    similarity: float, ratio: float, *, opposite: bool, preference: bool
) -> float:
    """How sure a conflict is, 0 to 1.

    *similarity* is that of meaning and *ratio* that of wording, 0 to 1. One statement is negative
    where they are *opposite*; one of them states a *preference*.
    """
    return min(1.0, 0.45 * similarity + 0.25 * ratio + 0.25 * opposite + 0.15 * preference)


@dataclass(frozen=True, slots=True)
class ConflictPolicy:
    """What counts as a conflict, and which statement then prevails."""

    min_confidence: float = 0.55
    # As much more credible a statement must be to supersede one of another source.
    credibility_margin: float = 0.1

    def verdict(self, new: Statement, old: Statement, similarity: float | None = None) -> Verdict:
        """What *new* is to *old*, by their words and the *similarity* of meaning, where known."""
        if _differ(new.subject, old.subject):
            return _UNRELATED
        ours, theirs = _Wording.of(new.text), _Wording.of(old.text)
        if (ours.words, ours.negative) == (theirs.words, theirs.negative):
            return Verdict(Relation.SAME, 1.0)
        opposite = ours.negative != theirs.negative
        if not ((opposite and ours.is_nearly(theirs)) or ours.has_other_value(theirs)):
            return _UNRELATED
        ratio = SequenceMatcher(None, str(ours), str(theirs), autojunk=False).ratio()
        confidence = conflict_confidence(
            ratio if similarity is None else similarity,
            ratio,
            opposite=opposite,
            preference=ours.preference or theirs.preference,
        )
        if confidence < self.min_confidence:
            return _UNRELATED
        supersedes = self._prevails(new, old)
        return Verdict(Relation.SUPERSEDES if supersedes else Relation.CONTRADICTS, confidence)

    def _prevails(self, new: Statement, old: Statement) -> bool:
        more_credible = new.credibility >= old.credibility + self.credibility_margin
        return new.said_at >= old.said_at and (new.source == old.source or more_credible)


_UNRELATED = Verdict(Relation.UNRELATED, 0.0)
_NEARLY = 0.85


@dataclass(frozen=True, slots=True)
class _Wording:
    """The words of a statement without negations and fillers; *names* are those written as such."""

    words: tuple[str, ...]
    names: frozenset[str]
    negative: bool
    preference: bool

    @classmethod
    def of(cls, text: str) -> "_Wording":
        tokens = _TOKEN.findall(text)[:_WORDS_READ]
        plain = [_THIRD_PERSON.sub("", token.lower()) for token in tokens]
        negated = [word for word in plain if word in _NEGATION or _CONTRACTED.search(word)]
        words = tuple(word for word in plain if word not in {*negated, *_FILLER})
        return cls(
            words,
            frozenset(
                word for word, token in zip(plain, tokens, strict=True) if _NAME.search(token)
            ),
            len(negated) % 2 == 1,
            not _PREFERENCE.isdisjoint(words) or bool(_PREFERENCE_HAN.search(text)),
        )

    def __str__(self) -> str:
        return " ".join(self.words)

    def is_nearly(self, other: "_Wording") -> bool:
        """Whether the two are the same but for a word in a long text."""
        return _matcher(self, other).ratio() >= _NEARLY

    def has_other_value(self, other: "_Wording") -> bool:
        """Whether the two differ in one short value alone, of something that has one value."""
        changes = [code for code in _matcher(self, other).get_opcodes() if code[0] != "equal"]
        if len(changes) != 1 or changes[0][0] != "replace":
            return False
        _, start, end, other_start, other_end = changes[0]
        mine, theirs = self.words[start:end], other.words[other_start:other_end]
        if start == 0 or max(len(mine), len(theirs)) > _LONGEST_VALUE:
            return False  # another subject, or another statement
        before = self.words[max(0, start - _VERB_BEFORE) : start]
        if not _SINGLE_VALUED.isdisjoint(before):
            return True
        if all(_NUMBER.match(word) for word in (*mine, *theirs)):
            return True
        named = self.names.issuperset(mine) and other.names.issuperset(theirs)
        return named and not _COPULAS.isdisjoint(before)


def _matcher(one: _Wording, other: _Wording) -> "SequenceMatcher[str]":
    return SequenceMatcher(None, one.words, other.words, autojunk=False)


def _differ(one: str, other: str) -> bool:
    return bool(one and other) and one.casefold() != other.casefold()
