"""Fusion of rankings, and quotes of the conversation that a request is about."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from datetime import UTC
from functools import lru_cache
from itertools import chain, zip_longest
from math import log, sqrt
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from contextgraph.knowledge.asked import without_asking
from contextgraph.model import Lesson, LessonFacts, LessonKind, Note, Origin
from contextgraph.text import count_tokens, gives_instructions, regex, stems
from contextgraph.text.strings import nearness, overlap, rarity

# Of reciprocal rank fusion (Cormack, Clarke & Büttcher 2009).
RRF_K = 60

# Chosen on fifty questions about sessions and 360 sentences and subjects of lessons of these: how
# long a text is and how much a longer one is counted down, what phrases are worth beside words, and
# what further texts of a session count.
_TURN, _BY_LENGTH, _PHRASES = 110, 0.9, 2.2
_OTHERS, _OTHER_WORDS = 4, 0.15
# The best of many texts shares more words by chance.
_BY_NUMBER = 0.15
# Texts about other things have such a cosine.
UNRELATED = 0.2
# What has no vector counts so much by its words where others have one: remedies have none, and by
# words alone they stood before the sessions that answer.
_WITHOUT_VECTOR = 0.8

Key = TypeVar("Key", bound=Hashable)


def blend(
    scores: Mapping[Key, Mapping[str, float]], weights: Mapping[str, float]
) -> dict[Key, float]:
    """Key -> the weighted mean, 0 to 1, of its *scores* by channel.

    The channels are those of *weights*. The scores of each are divided by the greatest of them; a
    channel with no score above 0 is left out. 1 means that this key has the greatest score in each
    channel, or that no channel has any.

    A convex combination (Bruch, Gai & Ingber 2023): unlike ranks it keeps by how much one is better
    than the next.
    """
    most = {name: max((score[name] for score in scores.values()), default=0.0) for name in weights}
    shares = {name: weight / most[name] for name, weight in weights.items() if most[name] > 0}
    if not shares:
        return dict.fromkeys(scores, 1.0)
    total = sum(weights[name] for name in shares)
    return {
        key: sum(share * score[name] for name, share in shares.items()) / total
        for key, score in scores.items()
    }


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[Key]], k: int = RRF_K
) -> dict[Key, float]:
    """Key -> the sum of 1 / (k + rank) over the *rankings* (each best first), highest first.

    Ranks begin at 1. `blend` gives a better order where channels know by how much one item is
    better than the next: see docs/retrieval.md.
    """
    scores: dict[Key, float] = {}
    for ranking in rankings.values():
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
    return dict(sorted(scores.items(), key=lambda entry: -entry[1]))


class Rated(NamedTuple):
    """The rating of a text as the answer to a question.

    By *words* (BM25 with phrases, over the maximum of BM25), and by *meaning* (the cosine of their
    vectors; 0 where there is none).
    """

    words: float
    meaning: float = 0.0


def ratings(
    weights: Mapping[str, float],
    texts: Mapping[str, Sequence[str]],
    cosines: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Rated]:
    """Rate texts (id -> stems) by the *weights* of the stems of a question, in its order.

    *cosines* are those of its vector by id. Left out is what shares no word and has no cosine
    above 0.
    """
    known = {}
    for id_, sequence in texts.items():
        meaning = max(0.0, cosines.get(id_, 0.0))
        words = 0.0
        if not weights.keys().isdisjoint(sequence):
            by_word = overlap(weights, Counter(sequence), by_length=_BY_LENGTH, length=_TURN)
            words = by_word + nearness(weights, sequence) / _PHRASES
        if words or meaning:
            known[id_] = Rated(words, meaning)
    return known


def most_words(share: float) -> float:
    """Return what `ratings` by words do not exceed of texts with this *share* of all weights.

    Of each word BM25 counts less than its weight, and of each two neighbours a phrase at most the
    weight of the first.
    """
    return share + share / _PHRASES


def fused(
    groups: Mapping[Key, Sequence[Rated]], sizes: Mapping[Key, int] = MappingProxyType({})
) -> dict[Key, float]:
    """Key -> the score of each of *groups* of texts, 0 to 1, the best first.

    Half by words and half by meaning, each over its maximum; of what has no vector words decide
    alone, and for less than where there is one. The best text of a group counts whole; by words
    also a share of the next few, not by meaning: any text of a long session is a little near to
    anything. By *sizes* groups have more texts than those rated; words in one of many count less.
    """
    words, meaning = dict[Key, float](), dict[Key, float]()
    for key, texts in groups.items():
        by_number = 1 + _BY_NUMBER * log(max(1, sizes.get(key, 1)))
        words[key] = _with_others([one.words for one in texts]) / by_number
        if near := max(one.meaning for one in texts):
            meaning[key] = max(0.0, near - UNRELATED)
    most_words = max(words.values(), default=0.0) or 1.0
    most_meaning = max(meaning.values(), default=0.0) or 1.0
    scores = {}
    for key, by_words in words.items():
        share = by_words / most_words
        if key in meaning:
            share = (share + meaning[key] / most_meaning) / 2
        elif meaning:
            share *= _WITHOUT_VECTOR
        scores[key] = share
    return dict(sorted(scores.items(), key=lambda entry: (-entry[1], str(entry[0]))))


def _with_others(scores: Sequence[float]) -> float:
    """Return the best of *scores* and a share of the next ones."""
    if len(scores) == 1:
        return scores[0]
    best, *others = sorted(scores, reverse=True)
    return best + _OTHER_WORDS * sum(others[:_OTHERS])


# Words of a request that are looked up, and lessons that are proposed for it.
REQUEST_WORDS, PROPOSED = 48, 240
# From here on two conversations are about the same subject.
SAME_SUBJECT = 0.2
# What a word counts that stands beside a lesson, or in the request that its session began with;
# how much it matters that the words of a lesson are in the request. Chosen on the earlier sessions
# of a team, and on talks of another project.
_BESIDE, _OPENING, _WHOLE = 0.5, 0.6, 0.75
# The model of the probability that a lesson helps with a request.
ABOUT = "lessons about"
_OPENING_WORDS = 60
# A statement that names a file in passing matters to an edit that puts in so many of its words.
FEWEST_WRITTEN = 2
# Code, files, symbols, acronyms, and what has a capital letter within a sentence.
NAMED = regex(
    r"`([^`\s]+)`|\b([A-Z]{2,})\b|\b([A-Za-z]\w*_\w+)\b|\b([a-z]+[A-Z]\w+|[A-Z][a-z0-9]+"
    r"(?:[A-Z]\w*)+)\b|((?:[\w.-]+/)*[\w-]+\.[a-z]{1,5})\b|(?<=[\w,;)(] )([A-Z]\w+)"
)
_SUFFIX, _NOT_LETTERS = regex(r"\.\w{1,5}\Z"), regex(r"[\W_]")
# Folders say where somebody works, not what a request is about.
_FOLDERS = regex(r"(?<![\w.])~?/(?:[\w.@+-]+/)+")
# Of all quotes together; one that shares so many words with others that are shown says nothing new,
# and a short one may be unclear without what it answers.
# With a recap of what was agreed, which is worth little in part, they may be longer.
QUOTED_TOKENS, WHOLE_TOKENS, _REPEATED, _SHORT_QUOTE, _UNCLEAR = 125, 275, 0.7, 60, 100
# A clause is the least that is quoted of a long statement.
_CLAUSE = regex(r"(?<=[;.!?])\s+|(?<=,)\s+(?=and |but |except |then )|\s+[-–—]\s+")
# Of a plan each section is about something else; of so many.
SECTION, MOST_SECTIONS = regex(r"\n(?=#+ )"), 32
# A word of a small collection is not rarer than in one of so many texts.
_FEWEST_TEXTS = 50


def request_words(request: str) -> list[str]:
    """Return the words of *request* that are looked up: not how it asks, nor the folders in it."""
    said = _FOLDERS.sub(" ", request)
    words = stems(without_asking(said)) or stems(said)
    return [*dict.fromkeys(words)][:REQUEST_WORDS]


@lru_cache(maxsize=1 << 12)
def names_in(text: str) -> frozenset[str]:
    """Return what *text* names, in one spelling: `fs_watcher.go` and `fsWatcher` are one name."""
    found = (next(filter(None, match.groups())) for match in NAMED.finditer(text))
    spelled = (_NOT_LETTERS.sub("", _SUFFIX.sub("", name.rpartition("/")[2])) for name in found)
    return frozenset(name.casefold() for name in spelled if name)


class Quote(NamedTuple):
    """A lesson as it is ranked and quoted, made at *place*: a time and where in the session.

    *head* attributes it, *context* is what a short one answers, *words* are the stems of all that.
    *is_agreed*: a person confirmed it. *is_opening*: it stands in the first request.
    """

    id: str
    place: str
    head: str
    content: str
    context: str
    words: Sequence[str]
    weight: float
    is_agreed: bool
    is_shown: bool
    is_opening: bool

    def whole(self, max_tokens: int) -> str:
        """Return the line that quotes all of it; empty where that is too long."""
        tail = f" ({self.context})" if self.context else ""
        for text in (f'{self.head}"{self.content}"{tail}', f'{self.head}"{self.content}"'):
            if count_tokens(text) <= max_tokens:
                return text
        return ""

    def line(self, max_tokens: int = QUOTED_TOKENS) -> str:
        """Return the line that quotes it, with its first clauses where it is too long.

        A question is not parted from its answer.
        """
        if text := self.whole(max_tokens):
            return text
        ends = [match.start() for match in _CLAUSE.finditer(self.content)]
        answer = self.content.rfind("? ") + 1
        for end in reversed([end for end in ends if end >= _SHORT_QUOTE and end > answer]):
            text = f'{self.head}"{self.content[:end]} …"'
            if count_tokens(text) <= max_tokens:
                return text
        return ""


_ATTRIBUTED = {
    LessonKind.DECISION: "decided",
    LessonKind.RULE: "required",
    LessonKind.FACT: "known",
    LessonKind.CHECKLIST: "goes together",
    LessonKind.REFERENCE: "reference",
}


def quote_of(note: Note, *, sessions: int = 1) -> Quote:
    """Return the lesson *note* as it is quoted; never what gives instructions or is secret.

    What people had to say, or what was counted, in several *sessions* says so.
    """
    facts = note.lesson
    assert facts is not None
    content, context = (" ".join(text.split()) for text in (note.content, note.summary))
    is_agreed = note.speaker != "user"
    # What an agent said and a person confirmed needs no context: that is "yes".
    source = "the team" if note.is_of_team else note.contributor
    by = f" by {source}" if source else ""
    of = "that is" if is_agreed else "asked" if context.endswith("?") else "on"
    is_said = facts.origin is Origin.SAID
    is_short = len(content) < _UNCLEAR and note.speaker == "user" and is_said
    is_counted = facts.origin is Origin.COUNTED and facts.kind is not LessonKind.RULE
    said = f"{'seen' if is_counted else 'said'} in {sessions} sessions"
    if instead := ran_instead(facts):
        sessions = max(sessions, facts.sessions)
        said = f"{instead}; seen in {sessions} sessions"
    elif facts.origin is Origin.COUNTED and facts.kind is LessonKind.RULE:
        quotes = (" ".join(one.quote.split()) for one in reversed(facts.evidence))
        words = next((quote for quote in quotes if len(quote) <= _SHORT_QUOTE), "")
        said = f'they said "{words}"' if words else said
        sessions = max(sessions, facts.sessions)
    return Quote(
        id=note.id,
        place=f"{note.created_at.astimezone(UTC).isoformat()} {note.locator}",
        head=f"{_ATTRIBUTED[facts.kind]} {note.created_at:%Y-%m-%d}{by}: ",
        content=content,
        context=said if sessions > 1 else f"{of}: {context}" if context and is_short else "",
        words=tuple(dict.fromkeys(stems(" ".join((note.summary, note.content, *note.tags))))),
        weight=note.importance,
        is_agreed=is_agreed,
        is_shown=not (gives_instructions(f"{content} {said}") or note.security.is_secret),
        is_opening=facts.evidence[0].step < 0,
    )


def ran_instead(lesson: LessonFacts | Lesson) -> str:
    """Say what ran in place of a program that fails, as a counted fact knows; empty for others."""
    is_fact = lesson.origin is Origin.COUNTED and lesson.kind is LessonKind.FACT
    programs = (one.context for one in reversed(lesson.evidence) if is_fact and one.context)
    return next((f"`{program}` ran instead" for program in programs), "")


class Worded(NamedTuple):
    """The stems of a lesson: its *own*, and those that say less of it.

    Those *beside* it are its subject, its names and what a short answer answers; *opening* are
    those of the request with which the session began in which a person said it. *names* are what
    it names, as `names_in` has them.
    """

    own: frozenset[str]
    beside: frozenset[str]
    opening: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, note: Note) -> "Worded":
        """Return the stems of the lesson *note*."""
        own = frozenset(stems(note.content))
        is_said = note.lesson is not None and note.lesson.origin is Origin.SAID
        context, title = (note.summary, note.title) if is_said else ("", "")
        beside = frozenset(stems(" ".join((context, *note.tags)))) - own
        first = " ".join(title.partition("\n")[0].split()[:_OPENING_WORDS])
        names = names_in(note.content) | names_in(" ".join(f"`{name}`" for name in note.tags))
        return cls(own, beside, frozenset(stems(first)) - own - beside, names)


class Close(NamedTuple):
    """A lesson by how near it is to a request of *asked* words: its *score*, from what they share.

    *words* is the sum of the rarities of shared words, *share* that of the lesson's words that is
    in the request, *covered* that of the request's words that the lesson has; *own* is how many
    words of the lesson itself are shared. *names* is the share of what the lesson names that the
    whole request names, too, however long it is.
    """

    id: str
    score: float
    words: float
    share: float
    covered: float
    own: int
    asked: int
    names: float


def closeness(close: Close, wanted: float, *, is_reply: bool) -> dict[str, float]:
    """Return the features of the probability that a lesson which is *close* to a request helps.

    *wanted* is how likely its sentence is a lesson. A long request shares words with many, and who
    replies to an agent (*is_reply*) seldom needs what was said in another conversation.
    """
    return {
        "score": log(close.score),
        "request": log(1 + close.asked),
        "covered": close.covered,
        "own": log(1 + close.own),
        "names": close.names,
        "wanted": log(wanted),
        "reply": float(is_reply),
    }


def closest(
    words: Collection[str],
    lessons: Mapping[str, Worded],
    waiting: Collection[str] = (),
    request: str = "",
) -> list[Close]:
    """Rank *lessons* (by id) by how much of each a request of *words* says again, closest first.

    What shares no word is left out. How rare a word is does not depend on those *waiting* for a
    review: a colleague, who has the others alone, finds the same. *request* is the whole of it.
    """
    parts_of = {id_: one.own | one.beside | one.names for id_, one in lessons.items()}
    held = [known for id_, known in parts_of.items() if id_ not in waiting]
    met = Counter({*chain(*parts_of.values())}) | Counter(chain(*held))
    number = max(_FEWEST_TEXTS, len(held))

    def weight(found: Collection[str]) -> float:
        # In a fixed order: floating-point sums depend on it.
        return sum([rarity(met[word], number) for word in sorted(found)])

    asked, ranked = frozenset(words), list[Close]()
    named = names_in(request)
    most = len(asked) * rarity(1, number)
    for id_, one in lessons.items():
        parts = ((one.own, 1.0), (one.beside, _BESIDE), (one.opening, _OPENING))
        shared = sum([part * weight(own & asked) for own, part in parts])
        if shared:
            share = shared / sum([part * weight(own) for own, part in parts])
            score, covered = shared * share**_WHOLE, min(1.0, shared / most)
            own = len(one.own & asked)
            names = weight(one.names & named) / (1 + weight(one.names))
            ranked.append(Close(id_, score, shared, share, covered, own, len(asked), names))
    return sorted(ranked, key=lambda one: (-one.score, one.id))


def in_turns(lessons: Iterable[Key], source_of: Callable[[Key], str]) -> list[Key]:
    """Return *lessons*, best first, so that no source displaces another one: the owner first."""
    by_source: dict[str, list[Key]] = {}
    for one in lessons:
        by_source.setdefault(source_of(one), []).append(one)
    turns = zip_longest(*(by_source[name] for name in sorted(by_source)))
    return [one for turn in turns for one in turn if one is not None]


def fitting(quotes: Iterable[Quote]) -> list[tuple[Quote, str]]:
    """Select the *quotes*, best first, that fit and say something new, with the line of each.

    They are in the order of time. A part of one is quoted only where all of it is too long for
    the room that is kept for what is whole.
    """
    lines: list[tuple[Quote, str]] = []
    quoted: set[str] = set()
    left, of_whole = QUOTED_TOKENS, WHOLE_TOKENS - QUOTED_TOKENS
    for quote in quotes:
        own = {*stems(quote.content)}
        if not quote.is_shown or (own and len(own & quoted) > _REPEATED * len(own)):
            continue
        room = left + of_whole * quote.is_agreed
        if part := quote.line(room):
            line = quote.whole(room) or quote.whole(left + of_whole) or part
            lines.append((quote, line))
            quoted |= own
            used = count_tokens(line) + 1
            more = min(used, of_whole) if quote.is_agreed else max(0, used - left)
            of_whole -= more
            left -= used - more
    return sorted(lines, key=lambda pair: pair[0].place)


def rated(words: Sequence[str], quotes: Sequence[Quote]) -> list[Quote]:
    """Return the *quotes* of a conversation, those that say most of a request of *words* first."""
    met = Counter(word for quote in quotes for word in {*quote.words} & {*words})
    weights = {word: rarity(met[word], len(quotes)) for word in words}
    total = sum(weights.values()) or 1.0

    def score(quote: Quote) -> float:
        # That the request is worded as the first one was shows the conversation, not the answer.
        heard = () if quote.is_opening else quote.words
        shared = sum([weights[word] for word in words if word in heard]) / total
        return quote.weight + quote.is_agreed + 3 * shared

    return sorted(quotes, key=lambda quote: (-score(quote), quote.id))


def similarities(
    counts: Mapping[str, int], others: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    """Return the similarity of each of *others* to *counts*, 0 to 1: rare words count most."""
    met = Counter(word for known in (counts, *others.values()) for word in known)
    texts = max(_FEWEST_TEXTS, len(others) + 1)
    weights = {word: rarity(having, texts) ** 2 for word, having in met.items()}

    def norm(known: Mapping[str, int]) -> float:
        return sum([weights[word] * count for word, count in known.items()])

    own = norm(counts)

    def cosine(known: Mapping[str, int]) -> float:
        shared = sorted(counts.keys() & known.keys())
        common = sum([weights[word] * sqrt(counts[word] * known[word]) for word in shared])
        return common / sqrt(own * norm(known)) if common else 0.0

    return {id_: cosine(known) for id_, known in others.items()}
