"""WordPiece: a text as the tokens of a model of the BERT family, uncased.

The algorithm and the vocabulary ``bert_uncased.txt`` are those of google-research/bert
(Apache-2.0); sentence models such as MiniLM were trained with them.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"
_CONTINUES = "##"
_LONGEST_WORD = 100
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


@dataclass(frozen=True, slots=True)
class WordPiece:
    """A *vocabulary*: token -> its number."""

    vocabulary: Mapping[str, int]

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "WordPiece":
        """The vocabulary with *tokens* in the order of their numbers."""
        return cls({token: number for number, token in enumerate(tokens)})

    def numbers(self, text: str, limit: int) -> tuple[list[int], bool]:
        """The tokens of *text* between start and end, *limit* at most, and whether it was cut."""
        found = [self.vocabulary[_START]]
        for word in bare_words(text):
            found += self._pieces(word)
            if len(found) >= limit:
                # One more than fits tells a text that was cut from one that just fits.
                break
        is_cut = len(found) > limit - 1
        return [*found[: limit - 1], self.vocabulary[_END]], is_cut

    def _pieces(self, word: str) -> list[int]:
        """*word* as the longest known pieces from the left; unknown as a whole where one is."""
        found = list(self._greedy(word)) if len(word) <= _LONGEST_WORD else [None]
        known = [number for number in found if number is not None]
        return known if len(known) == len(found) else [self.vocabulary[_UNKNOWN]]

    def _greedy(self, word: str) -> Iterator[int | None]:
        start = 0
        while start < len(word):
            mark = _CONTINUES if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if mark + word[start:end] in self.vocabulary), None)
            if end is None:
                yield None
                return
            yield self.vocabulary[mark + word[start:end]]
            start = end


def bare_words(text: str) -> list[str]:
    """The words of *text*: lower case, without accents; each punctuation mark is one."""
    plain = "".join(map(_spaced, text))
    decomposed = unicodedata.normalize("NFD", plain)
    if not decomposed.isascii():
        decomposed = "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
    return "".join(map(_apart, decomposed.lower())).split()


@lru_cache(1 << 12)
def _spaced(char: str) -> str:
    """*char* without control characters, ideographs standing alone."""
    if char in "\t\n\r":
        return " "
    if char == "\ufffd" or unicodedata.category(char).startswith("C"):
        return ""
    return f" {char} " if _is_ideograph(ord(char)) else char


@lru_cache(1 << 12)
def _apart(char: str) -> str:
    if char.isascii():
        is_mark = char.isprintable() and not (char.isalnum() or char == " ")
    else:
        is_mark = unicodedata.category(char).startswith("P")
    return f" {char} " if is_mark else char


def _is_ideograph(code: int) -> bool:
    return any(first <= code <= last for first, last in _IDEOGRAPHS)
