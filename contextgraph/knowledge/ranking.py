"""Fusion of rankings, and quotes of the conversation that a request is about."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from datetime import UTC
from itertools import zip_longest
from math import log, sqrt
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from contextgraph.knowledge.fitted import fitted
from contextgraph.model import LessonKind, Note
from contextgraph.text import count_tokens, gives_instructions, regex, stems
from contextgraph.text.strings import overlap, rarity

# Of reciprocal rank fusion (Cormack, Clarke & Büttcher 2009).
RRF_K = 60

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


class Ranked(NamedTuple):
    """A text that was ranked: its *score*, and what it is made of.

    *words* is BM25 over its maximum and *share* the part of the question's weight that is in the
    text, both 0 to 1; *meaning* is the cosine of their vectors, 0 where there is none.
    """

    id: str
    score: float
    words: float
    share: float
    meaning: float


def fused(
    weights: Mapping[str, float],
    texts: Mapping[str, str],
    cosines: Mapping[str, float] = MappingProxyType({}),
) -> list[Ranked]:
    """Rank *texts* (by id) by words and meaning, each over its maximum, best first.

    *weights* are those of the stems of a question, *cosines* those of its vector by id. What shares
    no word and has no cosine above 0 is left out; of what has no vector yet words decide alone. The
    first by both has the score 1.
    """
    total = sum(weights.values()) or 1.0
    counted = {id_: Counter(stems(text)) for id_, text in texts.items()}
    words = {id_: overlap(weights, counts) for id_, counts in counted.items()}
    meaning = {id_: max(0.0, cosine) for id_, cosine in cosines.items() if id_ in texts}
    most_words = max(words.values(), default=0.0) or 1.0
    most_meaning = max(meaning.values(), default=0.0) or 1.0
    ranked = []
    for id_, counts in counted.items():
        by_words = words[id_] / most_words
        by_meaning = meaning[id_] / most_meaning if id_ in meaning else by_words
        if score := (by_words + by_meaning) / 2:
            share = sum(weights[word] for word in sorted(weights.keys() & counts.keys())) / total
            ranked.append(Ranked(id_, score, words[id_], share, meaning.get(id_, 0.0)))
    return sorted(ranked, key=lambda one: (-one.score, one.id))


# Words of a request that are looked up, and statements that are proposed for it, of at most so
# many conversations; of those that share less of it than the best, how many are compared.
REQUEST_WORDS, PROPOSED, CONVERSATIONS, _RIVALS = 48, 120, 24, 3
# From here on a conversation is taken to be what a request is about.
PROBABLE, _FEWEST_MATCHED = 0.5, 2
# Rarities of words that a request shares with a quote, and with how a conversation began; the
# probability from which on the second is enough. Chosen on the prompts of a team.
_SAID, _SAME_OPENING, _SURE = 8.0, 18.0, 0.93
# A sentence of it is shown only if it shares so much itself: else the session is meant, not it.
_OWN = 5.0
# A short request shares less: the least for each word, and the fewest words of such a request.
_DENSE, _FEWEST_DENSE = 0.95, 8
# From here on two conversations are about the same subject.
SAME_SUBJECT = 0.2
# A request that says again much of one quote is about it, whatever else was said there: from so
# many words on, and from such a product of their rarities and their share of the quote.
_FEWEST_SAID, _CLOSE = 3, 4.0
# A statement that names a file in passing matters to an edit that puts in so many of its words.
FEWEST_WRITTEN = 2
# Folders say where somebody works, not what a request is about.
_FOLDERS = regex(r"(?<![\w.])~?/(?:[\w.@+-]+/)+")
# Of all quotes together; one that shares so many words with others that are shown says nothing new,
# and a short one may be unclear without what it answers.
# With a recap of what was agreed, which is worth little in part, they may be longer.
QUOTED_TOKENS, WHOLE_TOKENS, _REPEATED, _SHORT_QUOTE, _UNCLEAR = 125, 275, 0.7, 60, 100
# A clause is the least that is quoted of a long statement.
_CLAUSE = regex(r"(?<=[;.!?])\s+|(?<=,)\s+(?=and |but |except |then )|\s+[-–—]\s+")
# A word of a small collection is not rarer than in one of so many texts.
_FEWEST_TEXTS = 50


def shares(words: Collection[str], texts: Mapping[Key, Counter[str]]) -> list[tuple[float, Key]]:
    """Return the share of *words* in each of *texts*, 0 to 1, weighted by rarity, best first."""
    met = Counter(word for counts in texts.values() for word in counts.keys() & {*words})
    number = max(_FEWEST_TEXTS, len(texts))
    weights = {word: rarity(met[word], number) for word in words}
    scores = [(overlap(weights, counts), key) for key, counts in texts.items()]
    shared = [pair for pair in scores if pair[0] > 0]
    return sorted(shared, key=lambda pair: (-pair[0], str(pair[1])))


def share_probability(share: float, rival: float, matched: int) -> float:
    """Return the probability that a request is about a conversation.

    *share* of the request's rare words stand in it, *rival* in the next one; *matched* words do.
    Most of "run the tests" stands in many: one word says nothing, and few say little. Fitted on
    requests of a development part and their paraphrases, on requests of other projects, and on
    questions about nothing that was said.
    """
    if matched < _FEWEST_MATCHED:
        return 0.0
    margin = max(0.0, 1 - rival / share)
    return fitted("conversations").probability(
        {"share": min(share, 0.6), "margin": min(margin, 0.6), "matched": log(matched / 4)}
    )


def _concerns(
    words: Collection[str],
    chosen: "QuotedSession",
    rarities: Callable[[str], float],
    *,
    sure: bool,
) -> bool:
    """Return True where one of the quotes says what a request of *words* asks about.

    Sessions of one team share the words of their project: that they are about the same does not
    make what was decided there matter. Where that is *sure*, a like first request is enough, and
    where a short request says little else, both together.
    """

    def shared(known: Collection[str]) -> float:
        return sum([rarities(word) for word in words if word in known])

    opening = shared({*chosen.title[: chosen.opening]})
    said = [shared({*stems(quote.content)}) for quote in chosen.quotes if quote.is_shown]
    most = max(said, default=0.0)
    is_dense = len(words) >= _FEWEST_DENSE and opening + most >= _DENSE * len(words)
    return (sure and opening >= _SAME_OPENING) or most >= _SAID or is_dense


def request_words(request: str) -> list[str]:
    """Return the words of *request* that are looked up, without the folders in it."""
    return [*dict.fromkeys(stems(_FOLDERS.sub(" ", request)))][:REQUEST_WORDS]


class Quote(NamedTuple):
    """A lesson as it is ranked and quoted, made at *place*: a time and where in the session.

    *head* attributes it, *context* is what a short one answers, *words* are the stems of all that.
    *is_agreed*: a person confirmed it. *is_opening*: it stands in the first request. *is_proposed*:
    it is not sure to be a lesson. One that was superseded or may not be shown counts for its
    conversation only.
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
    is_proposed: bool

    def line(self, max_tokens: int = QUOTED_TOKENS) -> str:
        """Return the line that quotes it, with its first clauses where it is too long."""
        tail = f" ({self.context})" if self.context else ""
        for text in (f'{self.head}"{self.content}"{tail}', f'{self.head}"{self.content}"'):
            if count_tokens(text) <= max_tokens:
                return text
        ends = [match.start() for match in _CLAUSE.finditer(self.content)]
        for end in reversed([end for end in ends if end >= _SHORT_QUOTE]):
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


def quote_of(
    note: Note, *, is_shown: bool = True, is_proposed: bool = False, sessions: int = 1
) -> Quote:
    """Return the lesson *note* as it is quoted; never what gives instructions or is secret.

    What people had to say in several *sessions* says so.
    """
    facts = note.lesson
    assert facts is not None
    content, context = (" ".join(text.split()) for text in (note.content, note.summary))
    is_agreed = note.speaker != "user"
    # What an agent said and a person confirmed needs no context: that is "yes".
    by = f" by {note.contributor}" if note.contributor else ""
    of = "that is" if is_agreed else "asked" if context.endswith("?") else "on"
    is_short = len(content) < _UNCLEAR and note.speaker == "user"
    said = f"said in {sessions} sessions"
    return Quote(
        id=note.id,
        place=f"{note.created_at.astimezone(UTC).isoformat()} {note.locator}",
        head=f"{_ATTRIBUTED[facts.kind]} {note.created_at:%Y-%m-%d}{by}: ",
        content=content,
        context=said if sessions > 1 else f"{of}: {context}" if context and is_short else "",
        words=tuple(dict.fromkeys(stems(" ".join((note.summary, note.content, *note.tags))))),
        weight=note.importance,
        is_agreed=is_agreed,
        is_shown=is_shown and not (gives_instructions(content) or note.security.is_secret),
        is_opening=facts.evidence[0].step < 0,
        is_proposed=is_proposed,
    )


class QuotedSession(NamedTuple):
    """A conversation: the one that amended it, how often it has each word, and its *quotes*.

    *title* are the words of its title, which are counted with those of each quote; the first
    *opening* of them are of the first request. *contributor* supplied it.
    """

    id: str
    replaced_by: str
    title: Sequence[str]
    counts: Mapping[str, int]
    quotes: Sequence[Quote]
    contributor: str = ""
    opening: int = 0


def quotes_about(
    words: Sequence[str],
    found: Mapping[str, QuotedSession],
    load: Callable[[str], QuotedSession | None],
) -> tuple[list[tuple[float, Quote]], float]:
    """Return the quotes of the conversation of *found* that a request of *words* is about.

    With a score, those that say most first, and with the probability that it is about them. What
    amended the conversation takes its place; *load* gives one that was not found. No source
    displaces another one: each has a conversation, and they take turns, the owner first.
    """
    ranked = shares(words, {id_: Counter(known.counts) for id_, known in found.items()})
    by_source: dict[str, list[tuple[float, str]]] = {}
    for share, id_ in ranked:
        by_source.setdefault(found[id_].contributor, []).append((share, id_))
    about = {name: _about(words, of, found, load) for name, of in by_source.items()}
    probable = {name: one for name, one in about.items() if one[1] >= PROBABLE}
    if not probable and (close := _close(words, found)):
        return close, PROBABLE
    if not probable or any(probable):  # what one named source says is seen beside what others do
        probable = about
    turns = zip_longest(*(probable[name][0] for name in sorted(probable)))
    quotes = [rated for turn in turns for rated in turn if rated is not None]
    return quotes, max((probability for _, probability in probable.values()), default=0.0)


def _about(
    words: Sequence[str],
    ranked: Sequence[tuple[float, str]],
    found: Mapping[str, QuotedSession],
    load: Callable[[str], QuotedSession | None],
) -> tuple[list[tuple[float, Quote]], float]:
    """Return `quotes_about` the conversations *ranked*, all of one source."""
    (share, best), *others = ranked
    chosen, seen = found[best], {best}
    while chosen.replaced_by and chosen.replaced_by not in seen:
        seen.add(chosen.replaced_by)
        later = found.get(chosen.replaced_by) or load(chosen.replaced_by)
        if later is None:
            break
        chosen = later
    rivals = {id_: found[id_].counts for _, id_ in others[:_RIVALS]}
    similar = similarities(chosen.counts, rivals)
    rival = next((other for other, id_ in others if similar.get(id_, 0) < SAME_SUBJECT), 0.0)
    matched = len(found[best].counts.keys() & {*words})
    probability = share_probability(share, rival, matched)
    rarities = _rarities(found.values())
    is_sure = probability >= _SURE
    if probability >= PROBABLE and not _concerns(words, chosen, rarities, sure=is_sure):
        probability /= 2
    about = [
        pair for pair in _rated(words, chosen) if is_sure or _is_about(words, pair[1], rarities)
    ]
    return about, probability


def _is_about(words: Collection[str], quote: "Quote", rarities: Callable[[str], float]) -> bool:
    """Return True where *quote* may stand where the conversation alone does not say enough."""
    return quote.is_agreed or (not quote.is_proposed and _shared(words, quote, rarities) >= _OWN)


def _shared(words: Collection[str], quote: "Quote", rarities: Callable[[str], float]) -> float:
    """How much the *words* of a request say that *quote* has itself."""
    own = {*stems(_FOLDERS.sub(" ", quote.content))}
    return sum([rarities(word) for word in words if word in own])


def _close(words: Collection[str], found: Mapping[str, QuotedSession]) -> list[tuple[float, Quote]]:
    """The quotes in *found* much of which a request of *words* says again, the closest first."""
    rarities = _rarities(found.values())
    close: list[tuple[float, Quote]] = []
    shown = (one for known in found.values() for one in known.quotes if one.is_shown)
    for quote in (one for one in shown if not one.is_proposed):
        own = {*stems(_FOLDERS.sub(" ", quote.content))}
        if len(shared := own & {*words}) >= _FEWEST_SAID:
            said = sum(map(rarities, sorted(shared)))
            close.append((said**2 / sum(map(rarities, sorted(own))), quote))
    return sorted(
        (pair for pair in close if pair[0] >= _CLOSE), key=lambda pair: (-pair[0], pair[1].id)
    )


def _rarities(known: Collection[QuotedSession]) -> Callable[[str], float]:
    """Return a function: how much a word says that the conversations *known* have."""
    met = Counter(word for one in known for word in one.counts)
    texts = max(_FEWEST_TEXTS, len(known))
    return lambda word: rarity(met[word], texts)


def fitting(quotes: Iterable[Quote]) -> list[tuple[Quote, str]]:
    """Select the *quotes*, best first, that fit and say something new, with the line of each.

    They are in the order of time.
    """
    lines: list[tuple[Quote, str]] = []
    quoted: set[str] = set()
    used = 0
    for quote in quotes:
        own = {*stems(quote.content)}
        if not quote.is_shown or (own and len(own & quoted) > _REPEATED * len(own)):
            continue
        if line := quote.line((WHOLE_TOKENS if quote.is_agreed else QUOTED_TOKENS) - used):
            lines.append((quote, line))
            quoted |= own
            used += count_tokens(line) + 1
    return sorted(lines, key=lambda pair: pair[0].place)


def _rated(words: Sequence[str], conversation: QuotedSession) -> list[tuple[float, Quote]]:
    """The quotes that are shown, those that say most of a request of *words* first."""
    quotes = [quote for quote in conversation.quotes if quote.is_shown]
    title = {*conversation.title}
    met = Counter(word for quote in quotes for word in (title | {*quote.words}) & {*words})
    weights = {word: rarity(met[word], len(quotes)) for word in words}
    total = sum(weights.values()) or 1.0

    def score(quote: Quote) -> float:
        # That the request is worded as the first one was shows the conversation, not the answer.
        heard = () if quote.is_opening else quote.words
        shared = sum([weights[word] for word in words if word in heard]) / total
        return quote.weight + quote.is_agreed + 3 * shared

    rated = [(score(quote), quote) for quote in quotes]
    return sorted(rated, key=lambda pair: (-pair[0], pair[1].id))


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
