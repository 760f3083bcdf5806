"""Read which values, of kinds that exclude each other, a statement gives to what.

`alternatives.toml` lists what a software team has one of for one purpose, units, scopes and
synonyms; none of it knows a project.
"""

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set as AbstractSet
from functools import cache, lru_cache
from itertools import pairwise
from math import exp

from msgspec import Struct

from contextgraph.text import regex, stem, stems

WEEKDAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_TOKEN = regex(r"\d\d?:\d\d|\d[\d,_]*(?:\.\d+)*(?!\w|-\d)|[%€$\0]|[@\w][\w.+#/'’@*-]*[\w+#/]|\w")
_NUMBER = regex(r"\d+(?:\.\d+)*\Z|\.\d\Z")
_CLOCK = regex(r"\d\d?:\d\d\Z")
_FILE = regex(r"[\w./*-]*\*?\w\.[a-z]{1,5}\Z|[\w.-]+/[\w./-]*\Z|_?[a-z\d]+_[a-z\d_]+\Z")
# Who has something in charge: a name within a sentence, or before such a verb; a team.
_PERSON = regex(
    r"\b(?:[Aa]sk|[Cc]ontact|[Pp]ing|to|by|is) ([A-Z][a-z]{2,})\b(?! \d)|\b([A-Z][a-z]+)"
    r"(?: is (?:in charge|responsible)| (?:owns?|reviews?|looks? after|maintains?|decides?"
    r"|organi[sz]es?|approves?|handles?|leads?|manages?|signs|triages?|coordinates?)\b)"
    r"|\b([\w-]+) (?:team|squad|guild|crew)\b|\b(SRE|QA|DevOps|Ops|Legal|Finance|Security)\b"
)
_MONTHS = frozenset(
    "january february march april may june july august september october november december".split()
)
_PHRASE = r"([\w.+#/-]*\w(?: [\w.+#/-]*\w)?)"
# What is no longer so, after these words and before those.
_GONE = regex(
    r"\b(?:instead of|rather than|in place of|as opposed to|used to be|formerly|no longer|stopped"
    r"|(?:mov|switch|migrat|chang|convert|port)\w* (?:away )?from|replac(?:ed|es|ing)"
    r"|drop(?:ped|ping)|retired|abandoned|took over from|never|not)"
    rf" (?:us(?:e|ed|ing) |support(?:ing)? |on |in |with |the |our |to )*{_PHRASE}"
    rf"|{_PHRASE} (?:is|was|are|were|has been|have been) (?:not |now )?(?:dropped|removed|replaced"
    r"|retired|renamed|gone|banned|abandoned|abolished|deprecated|switched off|shut down)\b",
    re.IGNORECASE,
)
_CHANGE = regex(
    r"\b(?:now|no longer|from now on|any ?more|these days|today|instead|since|forget|took over"
    r"|renamed|replaced|(?:changed|moved|switched|migrated|ported|move|switch) (?:to|from|over))\b",
    re.IGNORECASE,
)
# It holds beside the other.
_ADDS = regex(
    r"\b(?:too|also|as well|additionally|besides|in addition|except(?:ions?)?)\b", re.IGNORECASE
)
# Says what happened: its numbers and days are no rule.
_EVENT = regex(
    r"\b(?:ago|recently|yesterday|once|(?:has|have) been|had|was|were|did|started"
    r"|last (?:\w+day|week|month|year|spring|summer|autumn|winter))\b",
    re.IGNORECASE,
)
_PAST = regex(r"\b(?:used to|until (?:19|20)\d\d|back then|at that time)\b", re.IGNORECASE)
# What a statement says of its subject; the first of these that is met counts.
_MODES = {
    "forbidden": regex(
        r"\b(?:never|(?:do|must|may|should|can) ?n[o'’]t|(?:do|must|may|should) not|forbid\w*"
        r"|bann?ed|prohibit\w*|not (?:allowed|accepted|permitted)|disallow\w*|off limits"
        r"|nobody|no one)\b(?! (?:need|have to))",
        re.IGNORECASE,
    ),
    "needless": regex(
        r"\b(?:optional\w*|no need|need(?:s|ed)? not|needn['’]t|(?:do|does)(?: not|n['’]t) (?:need"
        r"|have to)|not (?:required|necessary|needed|mandatory)|needless|unnecessary|abolished"
        r"|waived|voluntary|up to you|no longer (?:needed|required|necessary|needs?|mandatory)"
        r"|no [\w ]{1,20} is (?:needed|required|necessary))\b",
        re.IGNORECASE,
    ),
    "required": regex(
        r"\b(?:must|requires?d?|needs?|ha(?:ve|s) to|mandatory|compulsory|obligatory|shall)\b",
        re.IGNORECASE,
    ),
    "allowed": regex(
        r"\b(?:may|can|allowed|fine|ok(?:ay)?|accept(?:ed|able)|permitted|welcome|free to)\b",
        re.IGNORECASE,
    ),
}
_OPPOSED = (
    frozenset({"forbidden", "allowed"}),
    frozenset({"forbidden", "required"}),
    frozenset({"needless", "required"}),
)
# Words that say that something is so, not what it is about.
_PLAIN = frozenset(
    "the an of in on at to for from by with as and or but not no nor is are was were be been being "
    "it its this that these those there we you they he she our your their us them who which what "
    "when where how all any each every both either some more most other only also just so then if "
    "than else until because while after before now today currently anymore longer instead rather "
    "never always must should shall may can could would will does did do done has have had having "
    "get gets got go goes use uses used using via through per over under above below between into "
    "onto out up down off about around without within make makes made take takes taken need needs "
    "needed new old current former latest thing things way let want please still too again ever "
    "even yet already nobody everyone everybody nothing anything everything put set give come here "
    "comes work works happen happens happening first last next allowed forbidden required optional "
    "mandatory fine ok okay banned permitted switched switch moved move replaced replace dropped "
    "changed change took stopped starting very a i s t one".split()
)
_LANGUAGE = "backend program language"


class Meaning(Struct, frozen=True):
    """The values that a statement names, by kind, and the words of its *subject*.

    *gone* are values that it says hold no more, *scopes* where and for whom it holds, *roles* what
    its values are for. A word stands for itself and for the groups of synonyms that it is in.
    """

    values: Mapping[str, AbstractSet[str]]
    gone: Mapping[str, AbstractSet[str]]
    scopes: Mapping[str, AbstractSet[str]]
    subject: Sequence[frozenset[str]]
    roles: frozenset[str]

    @classmethod
    @lru_cache(256)
    def of(cls, text: str) -> "Meaning":
        """Read *text*."""
        phrases = [group for groups in _GONE.findall(text) for group in groups if group]
        gone, _, gone_roles = _values(" ; ".join(phrases))
        values, _, roles = _values(_GONE.sub(" ", text))
        rest = _values(text)[1]
        scopes: defaultdict[str, set[str]] = defaultdict(set)
        for word in _TOKEN.findall(text.lower().replace("-", "_").replace("front end", "frontend")):
            known = _known("scopes")
            for kind, name in known.get(word, known.get(word.removesuffix("s"), [])):
                scopes[kind].add(name)
        subject = dict.fromkeys(_concepts(word) for word in rest if word not in _PLAIN)
        return cls(values, gone, scopes, [*subject], frozenset(roles | gone_roles))

    @property
    def concepts(self) -> frozenset[str]:
        """All that its words and values stand for."""
        return self.roles.union(*self.subject)


def _values(text: str) -> tuple[dict[str, set[str]], list[str], set[str]]:
    """The values in *text* by kind, its other words, and what the values are for."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    roles, rest, known, units = set[str](), list[str](), _known("alternatives"), _known("units")
    people = {next(filter(None, found)).lower() for found in _PERSON.findall(text)}
    people -= known.keys() | WEEKDAYS | _MONTHS

    def named(match: "re.Match[str]") -> str:
        said = re.sub(r"[ -]", "_", match[0])
        for kind, name in known.get(said) or known[said.lower()]:
            values[kind].add(name)
            roles.update(*map(_concepts, kind.split()))
        return " \0 "

    tokens = _TOKEN.findall(_names().sub(named, re.sub(r"\AOne\b", "1", text)).lower())
    for token, following in pairwise([*tokens, ""]):
        unit = units.get(following) or units.get(following.removesuffix("s"))
        if found := _value(token, unit[0] if unit else None) or (
            token in people and ("person", token)
        ):
            values[found[0]].add(found[1])
        elif token != "\0" and token.removesuffix("s") not in units:
            rest.append(token)
    return dict(values), rest, roles


def _value(token: str, unit: tuple[str, str] | None) -> tuple[str, str] | None:
    """The kind and value of a number, time, day or file; *unit* is what follows it."""
    numerals = _known("numerals")
    number = numerals[token][0][1] if token in numerals else token.replace(",", "")
    if unit and token in {"a", "an"}:
        number = "1"
    if unit and _NUMBER.match(number) and number.count(".") < 2:
        return unit[0], f"{float(number) * float(unit[1]):g}"
    if _CLOCK.match(token):
        return "clock", token.zfill(5)
    if _NUMBER.match(number):
        return ("number", number) if token != "one" else None
    if token.removesuffix("s") in WEEKDAYS:
        return "weekday", token.removesuffix("s")
    return ("file", token) if _FILE.match(token) else None


@cache
def _lists() -> dict[str, dict[str, str]]:
    import tomllib

    with open(f"{os.path.splitext(__file__)[0]}.toml", "rb") as file:
        return tomllib.load(file)


@cache
def _known(table: str) -> dict[str, list[tuple[str, str]]]:
    """Name -> the kinds of a table that it is of, and what it is called there."""
    known: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for kind, names in _lists()[table].items():
        for name in names.split():
            said, _, same = name.partition("=")
            known[said.replace("-", "_")].append((kind, same or said))
    return dict(known)


@cache
def _names() -> re.Pattern[str]:
    names = sorted(map(re.escape, _known("alternatives")), key=len, reverse=True)
    lower, capital = ("|".join(n for n in names if n.islower() is case) for case in (True, False))
    pattern = rf"(?<![\w/.@-])(?:(?i:{lower})|{capital})(?![\w/-]|\.\w)"
    return re.compile(pattern.replace("_", "[ _-]"))


@cache
def _concepts(word: str) -> frozenset[str]:
    """The stem of *word*, and its groups of synonyms."""
    synonyms = _known("synonyms")
    groups = [group for form in {word, stem(word)} for group, _ in synonyms.get(form, ())]
    return frozenset((stem(word), *groups))


# A logistic regression, fitted on pairs of statements written for it (benchmarks/labels/notes): the
# subject of the old one is named, that of the new one, how many words are shared and which shares
# of each, whether it says that something changed, what is gone, or only allows or forbids.
_BIAS, _SUBJECT, _START, _WORD, _MOST, _LEAST = -1.0, 0.7, 0.9, 0.9, 0.6, 0.6
_SAYS_SO, _IS_GONE, _IS_OPPOSED = 0.6, 0.5, -0.6
_MOST_WORDS, _HALF, _LONG = 3, 0.5, 8


def replaces(new: str, old: str) -> float:
    """Return the probability that *new* puts another value in the place of what *old* says.

    0 where nothing speaks for it: no other value of one kind, nothing that is gone, nothing allowed
    that was forbidden; and where both say for what they hold, and that is not the same.
    """
    ours, theirs = Meaning.of(new), Meaning.of(old)
    clashing = {
        kind
        for kind in ours.values.keys() & theirs.values.keys()
        if ours.values[kind].isdisjoint(theirs.values[kind])
    }
    if not {"own", "review"} & ours.concepts & theirs.concepts:
        clashing.discard("person")
    is_gone = any(
        not names.isdisjoint(theirs.values.get(kind, ())) for kind, names in ours.gone.items()
    )
    is_opposed = frozenset((_mode(new), _mode(old))) in _OPPOSED
    apart = any(
        ours.scopes[kind].isdisjoint(theirs.scopes[kind])
        for kind in ours.scopes.keys() & theirs.scopes.keys()
    )
    if _EVENT.search(new) or _EVENT.search(old):
        clashing &= _lists()["alternatives"].keys()
        is_opposed = False
    others = clashing - {*_lists()["units"], "number", "clock", "weekday"}
    if apart or _ADDS.search(new) or _PAST.search(new) or (_LANGUAGE in others and len(others) > 1):
        return 0.0
    mine = [not words.isdisjoint(theirs.concepts) for words in ours.subject]
    known = [not words.isdisjoint(ours.concepts) for words in theirs.subject]
    starts = any(mine[:1]), any(known[:1])
    # What is counted in a long sentence is not what it is about.
    if not starts[1] or max(len(mine), len(known)) > _LONG:
        clashing.discard("number")
    # In the same words, another word on both sides is another subject.
    same = sum(words in theirs.subject for words in ours.subject)
    if 2 * same >= max(len(mine), len(known)):
        is_other = not (all(mine) or all(known))
        if is_other or not _CHANGE.search(new):
            clashing &= set() if is_other else _lists()["alternatives"].keys()
        is_opposed = False
    shares = [sum(found) / len(found) if found else 0.0 for found in (mine, known)]
    is_opposed = is_opposed and sum(mine) > 1 and max(shares) >= _HALF
    if not (clashing or is_gone or is_opposed):
        return 0.0
    score = (
        _BIAS
        + _START * starts[0]
        + _SUBJECT * starts[1]
        + _WORD * min(sum(mine), _MOST_WORDS)
        + _MOST * max(shares)
        + _LEAST * min(shares)
        + _SAYS_SO * bool(_CHANGE.search(new))
        + _IS_GONE * is_gone
        + _IS_OPPOSED * (not clashing)
    )
    return 1 / (1 + exp(-score))


def _mode(text: str) -> str:
    return next((mode for mode, pattern in _MODES.items() if pattern.search(text)), "")


def says_so(text: str) -> bool:
    """Return whether *text* says itself that something changed."""
    return bool(_CHANGE.search(text) or _GONE.search(text))


def related_words(text: str) -> list[str]:
    """Return the stems of *text*, then those of alternatives to what it names and of synonyms."""
    lists, (values, rest, _) = _lists(), _values(text)
    named = [names for kind, names in lists["alternatives"].items() if kind in values]
    said = {group for word in rest for group, _ in _known("synonyms").get(stem(word), ())}
    others = " ".join((*named, *(lists["synonyms"][group] for group in sorted(said))))
    return [*dict.fromkeys((*stems(text), *stems(re.sub(r"=\S+|_", " ", others))))]
