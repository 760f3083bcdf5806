"""Comparison of two statements: the same, a contradiction, or one supersedes the other.

Only statements with the same subject are compared: the same words with another value of something
that has one, or with and without a negation. Similar statements about other things do not conflict.
The lists of words were chosen on the development half of `benchmarks/labels/notes`.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from contextgraph.knowledge.alternatives import WEEKDAYS, replaces, says_so
from contextgraph.text import regex

if TYPE_CHECKING:
    from difflib import SequenceMatcher

_TOKEN = regex(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+(?:[.\-/:'’][^\W\u4e00-\u9fff]+)*")
_NEGATION = frozenset("not never no cannot without nobody 不 没".split())
_CONTRACTED = regex(r"n['’]t\Z")
_PREFERENCE = frozenset("prefer preferred want use using selected choose chose".split())
_PREFERENCE_HAN = regex("喜欢|偏好|选择")
_FILLER = frozenset("a an the do does did please now currently also always all longer 请".split())
# What has one value at a time; after other verbs two values may both be true.
_SINGLE_VALUED = frozenset(
    "prefer preferred want selected choose chose equals set require need default version port "
    "named called live work belong owned based deployed cost take follow come written built made "
    "done stored hashed managed parsed formatted kept = 是 为 用".split()
)
# Something has one of these, also where its value is a common word.
_SINGLE_ROLES = frozenset(
    "default license manager owner maintainer tracker indentation framework encoding language "
    "timeout ttl interval min max".split()
)
# Whether these have another value, too, is open.
_MULTIPLE = frozenset("support include contain add fix see read import provide".split())
# With a purpose, these have one value: "uses tox for tests".
_USED = frozenset("use using run".split())
_PURPOSE = frozenset("for to as with".split())
# What may have a value or a property: values are names, not adjectives.
_COPULAS = frozenset("is are was were be been being".split())
_MODALS = frozenset("may can must should shall might could will would".split())
# Words for yes, and words for no that stand for another word with a negation.
_PERMITTED = frozenset("allowed permitted ok okay fine acceptable accepted welcome".split())
_REFUSED = frozenset("forbidden banned prohibited disallowed".split())
_OPPOSITES = {
    "disabled": "enabled",
    "optional": "required",
    "invalid": "valid",
    "reject": "accept",
    "fail": "pass",
    "undefined": "defined",
    "unstable": "stable",
    "unsupported": "supported",
    "unsafe": "safe",
    "private": "public",
    "off": "on",
    "ignore": "check",
    "flaky": "deterministic",
}
_SYNONYMS = {
    "mandatory": "required",
    "needed": "required",
    "necessary": "required",
    "sec": "s",
    "second": "s",
    "minute": "min",
    "hour": "h",
    "maximum": "max",
    "minimum": "min",
    "configuration": "config",
}
_NUMBER = regex(r"[v$€]?\d[\w.:%-]*\Z")
_NUMERALS = frozenset("one two three four five six seven eight nine ten twelve".split())
_UNITS = frozenset("ms s min h day week month year b kb mb gb tb kib mib gib".split())
_NAME = regex(r"[A-Z\d_./-]")
_PLURAL = regex(r"(?<=[a-z]{2}[^s\W])s\Z")
_LONGEST_VALUE = 3
_VERB_BEFORE = 2
_WORDS_READ = 200
# How sure a conflict must be: by the words, and for a judge.
_MIN_CONFIDENCE, _MIN_JUDGED = 0.5, 0.55
# The same with other words.
_REPLACES = 0.68
# As much more credible a statement must be to supersede one of another source.
CREDIBILITY_MARGIN = 0.1


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


def conflict_confidence(
    similarity: float, ratio: float, *, opposite: bool, preference: bool
) -> float:
    """Return the confidence in a conflict, 0 to 1.

    *similarity* is that of meaning and *ratio* that of wording, 0 to 1. One statement is negative
    where they are *opposite*; one of them states a *preference*.
    """
    return min(1.0, 0.45 * similarity + 0.25 * ratio + 0.25 * opposite + 0.15 * preference)


def verdict(new: Statement, old: Statement) -> Verdict:
    """Relate *new* to *old* by their words."""
    ours, theirs = _Wording.of(new.text), _Wording.of(old.text)
    if ours.is_equal_to(theirs):
        return Verdict(Relation.SAME, 1.0)
    opposite = ours.negative != theirs.negative
    if not (ours.is_nearly(theirs) if opposite else ours.has_other_value(theirs)):
        probability = replaces(new.text, old.text) if new.stated_at > old.stated_at else 0.0
        if probability < _REPLACES:
            return _UNRELATED
        # Unless it says so itself, it is too little sure to hide the old one.
        if not says_so(new.text):
            return Verdict(Relation.CONTRADICTS, probability)
        return _conflict(new, old, probability)
    ratio = _matcher(str(ours), str(theirs)).ratio()
    preference = ours.preference or theirs.preference
    confidence = conflict_confidence(ratio, ratio, opposite=opposite, preference=preference)
    return _conflict(new, old, confidence) if confidence >= _MIN_CONFIDENCE else _UNRELATED


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


_UNRELATED = Verdict(Relation.UNRELATED, 0.0)
_NEARLY = 0.85


class _Wording(Struct, frozen=True):
    """The words of a statement without negations and fillers; *names* are those written as such.

    *core* are those that decide, without forms of "be", modals and words for yes or no.
    """

    words: tuple[str, ...]
    core: tuple[str, ...]
    modals: frozenset[str]
    names: frozenset[str]
    negative: bool
    preference: bool

    @classmethod
    def of(cls, text: str) -> "_Wording":
        tokens = _TOKEN.findall(text)[:_WORDS_READ]
        singular = (_PLURAL.sub("", token.lower()) for token in tokens)
        plain = [_SYNONYMS.get(word, word) for word in singular]
        negated = [word for word in plain if word in _NEGATION or _CONTRACTED.search(word)]
        opposites = [word for word in plain if word in _OPPOSITES or word in _REFUSED]
        words = tuple(word for word in plain if word not in {*negated, *_FILLER})
        names = (word for word, token in zip(plain, tokens, strict=True) if _NAME.search(token))
        return cls(
            words,
            tuple(_OPPOSITES.get(word, word) for word in words if word not in _NOT_CORE),
            frozenset(words) & _MODALS,
            frozenset(names),
            (len(negated) + len(opposites)) % 2 == 1,
            not _PREFERENCE.isdisjoint(words) or bool(_PREFERENCE_HAN.search(text)),
        )

    def __str__(self) -> str:
        return " ".join(self.words)

    def is_equal_to(self, other: "_Wording") -> bool:
        """Return True where the two differ only in fillers and forms of "be"."""
        ours, theirs = (self.core, self.modals), (other.core, other.modals)
        return ours == theirs and self.negative == other.negative

    def is_nearly(self, other: "_Wording") -> bool:
        """Return True where the two differ only in a word of a long text, and in a negation."""
        return _matcher(self.core, other.core).ratio() >= _NEARLY

    def has_other_value(self, other: "_Wording") -> bool:
        """Return True where the two differ only in one short value of what has one value."""
        opcodes = _matcher(self.words, other.words).get_opcodes()
        changes = [code for code in opcodes if code[0] != "equal"]
        if len(changes) != 1 or changes[0][0] != "replace":
            return False
        _, start, end, other_start, other_end = changes[0]
        mine, theirs = self.words[start:end], other.words[other_start:other_end]
        if start == 0 or max(len(mine), len(theirs)) > _LONGEST_VALUE:
            return False  # another subject, or another statement
        before, after = self.words[:start], self.words[end : end + 1]
        if not _MULTIPLE.isdisjoint(before):
            return False
        named = self.names.issuperset(mine) and other.names.issuperset(theirs)
        return _has_one_value(before, after, named=named) or _are_comparable(mine, theirs)


# What a statement may lack without saying something else.
_NOT_CORE = _COPULAS | _MODALS | _PERMITTED | _REFUSED


def _has_one_value(before: Sequence[str], after: Sequence[str], *, named: bool) -> bool:
    """Return True for a value that excludes others, by the words *before* and *after* it."""
    nearest = frozenset(before[-_VERB_BEFORE:])
    if not _USED.isdisjoint(nearest):
        return not _PURPOSE.isdisjoint((before[-1], *after))
    is_property = not _COPULAS.isdisjoint(nearest)
    if is_property and (named or not _SINGLE_ROLES.isdisjoint(before)):
        return True
    return before[-1] in _SINGLE_ROLES or not _SINGLE_VALUED.isdisjoint(nearest)


def _are_comparable(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return True for two days, numbers, or numbers with a unit: values of one quantity."""
    if WEEKDAYS.issuperset((*mine, *theirs)):
        return True
    numbers = (_is_number(mine[0]), _is_number(theirs[0]))
    return all(numbers) and all(
        _is_number(word) or word in _UNITS for word in (*mine[1:], *theirs[1:])
    )


def _is_number(word: str) -> bool:
    return word in _NUMERALS or bool(_NUMBER.match(word))


def _matcher(first: Sequence[str], second: Sequence[str]) -> "SequenceMatcher[str]":
    from difflib import SequenceMatcher

    return SequenceMatcher(None, first, second, autojunk=False)
