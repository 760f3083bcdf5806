"""Which runs and recoveries have which words, within one tenant and one place."""

import math
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection

from contextgraph.text import words

# Each further word costs as much as the one before it and says less: the rarest few decide.
MOST_WORDS = 8
# Counting one word takes 0.1 ms at 10,000 texts, counting all 0.5 s: worth it in a long life only.
_COUNTED_SINGLY = 1_000
_PLAIN = re.compile(r"[a-z0-9_]+")


def add_text(
    connection: Connection, table: str, tenant: int, place: int, texts: Iterable[tuple[int, str]]
) -> None:
    """Index each text of *table* under its key: its distinct words, and where it is found."""
    connection.executemany(
        f"INSERT INTO {table}_text (rowid, words) VALUES (?, ?)",
        [(key, f"{_document(tenant, text)} @{place}") for key, text in texts],
    )


def remove_text(connection: Connection, table: str, first: int, last: int) -> None:
    """Take the texts with keys from *first* to *last* out of the index."""
    keys = connection.execute(
        f"SELECT rowid FROM {table}_text WHERE rowid BETWEEN ? AND ?", (first, last)
    ).fetchall()
    connection.executemany(f"DELETE FROM {table}_text WHERE rowid = ?", keys)


def compact(connection: Connection, table: str) -> None:
    """Rewrite the index without the words of what was removed."""
    connection.execute(f"INSERT INTO {table}_text ({table}_text) VALUES ('optimize')")


def match(
    table: str, tenant: int, place: int | None, weights: Mapping[str, int]
) -> tuple[str, dict[str, str]]:
    """A query for the key of each text that has a word and the weight of it; its parameters.

    Within *place*, None for all. A text with two of the words is found twice.
    """
    scope = "" if place is None else f'"@{place}" AND '
    selects, parameters = [], {}
    for number, (word, weight) in enumerate(weights.items()):
        selects.append(
            f"SELECT rowid AS key, {weight:d} AS weight FROM {table}_text "
            f"WHERE {table}_text MATCH :word{number}"
        )
        parameters[f"word{number}"] = f'{scope}"{_token(tenant, word)}"'
    return " UNION ALL ".join(selects), parameters


class WordCounts:
    """In how many texts of one tenant a word occurs: counted when asked, then kept up to date.

    The first thousand words are counted one by one, then all at once.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._complete = False
        self._total = 0
        self._revision = self._removals = self._newest = -1

    def total(self, connection: Connection, tenant: int) -> int:
        """How many texts there are."""
        with self._lock:
            if self._caught_up(connection, tenant):
                return self._total
        return self._added_since(connection, tenant, -1)[0]

    def of(self, connection: Connection, tenant: int, asked: Sequence[str]) -> dict[str, int]:
        """Each distinct word of *asked* and its count, 0 for unknown ones."""
        distinct = list(dict.fromkeys(asked))
        with self._lock:
            if self._caught_up(connection, tenant):
                tokens = {word: _token(tenant, word) for word in distinct}
                self._count_new(connection, tenant, tokens.values())
                return {word: self._counts.get(token, 0) for word, token in tokens.items()}
        return {word: self._count(connection, _token(tenant, word)) for word in distinct}

    def weights(self, connection: Connection, tenant: int, asked: Sequence[str]) -> dict[str, int]:
        """The rarest known words and what each is worth: 1,000 times the logarithm of its rarity.

        Whole numbers, so that a sum does not depend on the order of adding.
        """
        counts, total = self.of(connection, tenant, asked), self.total(connection, tenant)
        known = sorted((count, word) for word, count in counts.items() if count)
        return {
            word: 1 + round(1000 * math.log((1 + total) / count))
            for count, word in known[:MOST_WORDS]
        }

    def _caught_up(self, connection: Connection, tenant: int) -> bool:
        """Count what was added since; False where this reader sees an older state than counted."""
        row = connection.execute("SELECT revision, removals FROM tenant WHERE key = ?", (tenant,))
        revision, removals = row.fetchone() or (0, 0)
        if revision < self._revision:
            return False
        if revision > self._revision:
            if removals != self._removals:
                self._forget()
            self._add_newer(connection, tenant)
            self._revision, self._removals = revision, removals
        return True

    def _add_newer(self, connection: Connection, tenant: int) -> None:
        added, newest = self._added_since(connection, tenant, self._newest)
        if added and (self._counts or self._complete):
            texts = connection.execute(
                f"SELECT words FROM {self._table}_text WHERE rowid > ?", (self._newest,)
            )
            for (text,) in texts:
                self._add(text.split())
        self._total, self._newest = self._total + added, newest

    def _add(self, tokens: Iterable[str]) -> None:
        for token in tokens:
            if self._complete or token in self._counts:
                self._counts[token] = self._counts.get(token, 0) + 1

    def _count_new(self, connection: Connection, tenant: int, tokens: Iterable[str]) -> None:
        if self._complete:
            return
        new = [token for token in tokens if token not in self._counts]
        if len(self._counts) + len(new) > _COUNTED_SINGLY:
            self._counts, self._complete = self._count_all(connection, tenant), True
        else:
            self._counts.update((token, self._count(connection, token)) for token in new)

    def _forget(self) -> None:
        self._counts, self._complete, self._total, self._newest = {}, False, 0, -1

    def _added_since(self, connection: Connection, tenant: int, key: int) -> tuple[int, int]:
        """How many texts have a greater *key*, and the greatest there is."""
        added, newest = connection.execute(
            f"SELECT count(*), max(key) FROM {self._table} WHERE tenant = ? AND key > ?",
            (tenant, key),
        ).fetchone()
        return added, key if newest is None else newest

    def _count(self, connection: Connection, token: str) -> int:
        row = connection.execute(
            f"SELECT doc FROM {self._table}_word WHERE term = ?", (token,)
        ).fetchone()
        return 0 if row is None else int(row[0])

    def _count_all(self, connection: Connection, tenant: int) -> dict[str, int]:
        # After the number of the tenant comes "@" or "_"; the next character is "`".
        query = f"SELECT term, doc FROM {self._table}_word WHERE term >= ? AND term < ?"
        return dict(connection.execute(query, (f"{tenant}@", f"{tenant}`")))


def _document(tenant: int, text: str) -> str:
    # What `words` gives is in lower case: where it is ASCII it is plain.
    return " ".join(
        f"{tenant}_{word}" if word.isascii() else _token(tenant, word)
        for word in dict.fromkeys(words(text))
    )


def _token(tenant: int, word: str) -> str:
    """*word* as one term of *tenant* that no tokenizer takes apart or changes."""
    if _PLAIN.fullmatch(word):
        return f"{tenant}_{word}"
    return f"{tenant}@{word.encode('utf-8', 'surrogatepass').hex()}"
