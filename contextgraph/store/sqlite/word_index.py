"""The word index of runs and recoveries, by tenant and repository."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import orjson

from contextgraph.lazy import regex
from contextgraph.model import WordCounts
from contextgraph.store import rules
from contextgraph.store.sqlite.transaction import SqlScope, Transaction
from contextgraph.text import words as words_of

# Counting one word takes 0.01 ms at 30,000 texts.
_MOST_COUNTS = 100_000
# A text that was found is read in whole for less than going through the texts of a common word.
_READ_WHOLE = 64
# So many pages of an index are merged at once: 0.1 s. Words are found in a third of the time.
_MERGED_AT_ONCE = 500
_PLAIN = regex(r"[a-z0-9_]+")


def add_texts(
    transaction: Transaction,
    table: str,
    place: int,
    texts: Iterable[tuple[int, str]],
    split: Callable[[str], Sequence[str]] = words_of,
) -> None:
    """Index each text of *table* under its key: its distinct words, and its repository."""
    transaction.write_all(
        f"INSERT INTO {table}_text (rowid, words) VALUES (?, ?)",
        [(key, f"{_document(transaction.tenant, split(text))} @{place}") for key, text in texts],
    )


def remove_texts(transaction: Transaction, table: str, first: int, last: int) -> None:
    """Remove the texts with keys from *first* to *last* from the index."""
    keys = transaction.rows(
        f"SELECT rowid FROM {table}_text WHERE rowid BETWEEN ? AND ?", (first, last)
    )
    transaction.write_all(f"DELETE FROM {table}_text WHERE rowid = ?", keys)


def compact(transaction: Transaction) -> None:
    """Rewrite all indexes without the words of removed texts."""
    for table in ("trajectory", "recovered", "note"):
        transaction.write(f"INSERT INTO {table}_text ({table}_text) VALUES ('optimize')")


def merge(transaction: Transaction) -> None:
    """Merge segments of the indexes, which grow in number with each run that is added."""
    for table in ("trajectory", "recovered"):
        for option, value in (("usermerge", 2), ("merge", _MERGED_AT_ONCE)):
            transaction.write(
                f"INSERT INTO {table}_text ({table}_text, rank) VALUES (?, ?)", (option, value)
            )


def texts_with(
    transaction: Transaction, table: str, places: Sequence[int] | None, word: str
) -> list[int]:
    """The keys of the texts with *word*; *places* are keys of repositories, None for all."""
    named = " OR ".join(f'"@{place}"' for place in places or ())
    scope = "" if places is None else f"({named}) AND "
    # A row for each key would take three times as long to fetch.
    ((keys,),) = transaction.rows(
        f"SELECT group_concat(rowid) FROM {table}_text WHERE {table}_text MATCH ?",
        (f'{scope}"{_token(transaction.tenant, word)}"',),
    )
    rowids: list[int] = orjson.loads(f"[{keys or ''}]")
    return rowids


class Indexed(NamedTuple):
    """A table with an index of words, and its column with the key of the run."""

    table: str
    run: str


def most_relevant(
    transaction: Transaction,
    indexed: Indexed,
    scope: SqlScope,
    weights: Mapping[str, int],
    limit: int,
    first: Callable[[Sequence[int], int], list[int]],
) -> list[int]:
    """The keys of the *limit* texts in *scope* with the most weight.

    *first* gives so many of some keys, in the order of their ids, by which ties are broken.
    """
    counts = _heaviest(transaction, indexed, scope, weights, limit)
    least = min(counts.values(), default=0)
    above = first([key for key, weight in counts.items() if weight > least], limit)
    ties = [key for key, weight in counts.items() if weight == least]
    return [
        *sorted(above, key=counts.__getitem__, reverse=True),
        *first(ties, limit - len(above)),
    ]


def _heaviest(
    transaction: Transaction,
    indexed: Indexed,
    scope: SqlScope,
    weights: Mapping[str, int],
    limit: int,
) -> dict[int, int]:
    """The texts in *scope* with the most weight, and all that tie with the last: key -> weight."""
    if limit < 1:
        return {}
    places = None if scope.repository is None else [scope.repository]
    # Which of them are in another scope than a repository is known only in the end.
    is_filtered = scope.has_as_of or scope.has_excluded
    counts: dict[int, int] = {}
    rest = dict(weights)
    for word, weight in weights.items():
        left = sum(rest.values())
        if not is_filtered and (least := _least(counts, limit)):
            counts = {key: known for key, known in counts.items() if known + left >= least}
            if least > left and len(counts) <= _READ_WHOLE:
                _add_rest(transaction, indexed.table, counts, rest)  # no other text comes near
                break
        for key in texts_with(transaction, indexed.table, places, word):
            counts[key] = counts.get(key, 0) + weight
        del rest[word]
    if is_filtered:
        counts = {key: counts[key] for key in _visible(transaction, indexed, scope, counts)}
    least = _least(counts, limit)
    return {key: known for key, known in counts.items() if known >= least}


def _least(counts: Mapping[int, int], limit: int) -> int:
    """The weight of the text at place *limit*, 0 where there are no so many."""
    return sorted(counts.values())[-limit] if len(counts) >= limit else 0


def _add_rest(
    transaction: Transaction, table: str, counts: dict[int, int], weights: Mapping[str, int]
) -> None:
    """Add to the weight of each text in *counts* that of those of *weights* which it has."""
    tokens = {_token(transaction.tenant, word): weight for word, weight in weights.items()}
    texts = transaction.rows(
        f"SELECT rowid, words FROM {table}_text WHERE rowid IN (SELECT value FROM json_each(?))",
        (str([*counts]),),
    )
    for key, text in texts:
        counts[key] += sum(tokens[token] for token in tokens.keys() & text.split())


def _visible(
    transaction: Transaction, indexed: Indexed, scope: SqlScope, keys: Iterable[int]
) -> list[int]:
    """Return the *keys* in *scope*."""
    sql = (
        f"SELECT r.key FROM json_each(:keys) AS named CROSS JOIN {indexed.table} r "
        f"ON r.key = named.value WHERE {scope.where('r', indexed.run)}"
    )
    return transaction.column(sql, {**scope.parameters, "keys": str([*keys])})


class WordIndex:
    """In how many texts of one tenant a word occurs: counted on demand, then kept up to date."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._total = 0
        self._revision = self._removals = self._newest = -1

    def counts(self, transaction: Transaction, words: Sequence[str]) -> WordCounts:
        """The number of texts, and for each distinct word in how many of them it occurs."""
        tenant = transaction.tenant
        tokens = {word: _token(tenant, word) for word in dict.fromkeys(words)}
        with self._lock:
            if self._caught_up(transaction):
                if len(self._counts) > _MOST_COUNTS:
                    self._counts = {}
                unknown = [token for token in tokens.values() if token not in self._counts]
                self._counts.update(self._read(transaction, unknown))
                return WordCounts(
                    self._total, {word: self._counts[token] for word, token in tokens.items()}
                )
        total, _ = self._added_since(transaction, -1)
        counts = self._read(transaction, [*tokens.values()])
        return WordCounts(total, {word: counts[token] for word, token in tokens.items()})

    def weights(self, transaction: Transaction, words: Sequence[str]) -> dict[str, int]:
        """The rarest known words with their weights, see `rules.word_weights`."""
        counts = self.counts(transaction, words)
        return rules.word_weights(counts.total, counts.by_word)

    def _caught_up(self, transaction: Transaction) -> bool:
        """Count what was added since; False for a reader of an older state than was counted."""
        revision, removals = transaction.revision()
        if revision < self._revision:
            return False
        if revision > self._revision:
            if removals != self._removals:
                self._counts, self._total, self._newest = {}, 0, -1
            self._add_newer(transaction)
            self._revision, self._removals = revision, removals
        return True

    def _add_newer(self, transaction: Transaction) -> None:
        added, newest = self._added_since(transaction, self._newest)
        if added and self._counts:
            for text in transaction.column(
                f"SELECT words FROM {self._table}_text WHERE rowid > ?", (self._newest,)
            ):
                for token in self._counts.keys() & text.split():
                    self._counts[token] += 1
        self._total, self._newest = self._total + added, newest

    def _added_since(self, transaction: Transaction, key: int) -> tuple[int, int]:
        """How many texts have a greater *key*, and the greatest key."""
        row = transaction.row(
            f"SELECT count(*), max(key) FROM {self._table} WHERE tenant = ? AND key > ?",
            (transaction.tenant, key),
        )
        added, newest = row or (0, None)
        return added, key if newest is None else newest

    def _read(self, transaction: Transaction, tokens: Sequence[str]) -> dict[str, int]:
        if not tokens:  # most often: the words of a run recur at its next steps
            return {}
        # One statement: one for each token would take twice as long.
        known = transaction.rows(
            f"SELECT value, doc FROM json_each(?) CROSS JOIN {self._table}_word ON term = value",
            (orjson.dumps(tokens).decode(),),
        )
        return {**dict.fromkeys(tokens, 0), **dict(known)}


def _document(tenant: int, words: Sequence[str]) -> str:
    # What `words_of` gives is in lower case: where it is ASCII it is plain.
    return " ".join(
        f"{tenant}_{word}" if word.isascii() else _token(tenant, word)
        for word in dict.fromkeys(words)
    )


def _token(tenant: int, word: str) -> str:
    """*word* as one term of *tenant* that no tokenizer takes apart or changes."""
    if _PLAIN.fullmatch(word):
        return f"{tenant}_{word}"
    return f"{tenant}@{word.encode('utf-8', 'surrogatepass').hex()}"
