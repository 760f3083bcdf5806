"""Secrets of a text: found by rules, and masked."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from contextgraph.text.strings import clean, clip, regex, visible

if TYPE_CHECKING:
    from contextgraph.text.secret_rules import Hint

_CONTINUED = regex(r"\\\n[ \t]*")


def mask_secrets(text: str) -> str:
    """Return *text* with each secret replaced by a marker such as `<secret:github-token>`.

    The same text gives the same result, and masking twice changes nothing more.
    """
    # A token may be broken: by what cannot be seen, or where a shell line goes on.
    whole = _unbroken(text)
    if whole != text and (count := _count(whole)) and count > _count(text):
        text = whole
    masked = _masked_once(text)
    # A mask can uncover a neighbour: what touches a token is read as its continuation until then.
    while masked != text:
        text, masked = masked, _masked_once(masked)
    return masked


def kept_text(text: str) -> str:
    """Return *text* as it is stored: cleaned, without secrets and blanks around it."""
    return mask_secrets(clean(text)).strip()


_ESCAPED = regex(r"\\([nrt])")
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def quoted(value: object, max_chars: int) -> str:
    """Return *value* as an error quotes it, in at most *max_chars* characters of one line.

    Secrets are masked before it is cut and its lines are joined: after that they are not found.
    """
    masked = mask_secrets(_ESCAPED.sub(lambda one: _UNESCAPED[one[1]], repr(value)))
    for letter, character in _UNESCAPED.items():
        masked = masked.replace(character, f"\\{letter}")
    return clip(masked, max_chars)


def _unbroken(text: str) -> str:
    return _CONTINUED.sub("", visible(text)) if "\\\n" in text else visible(text)


def _count(text: str) -> int:
    return sum(1 for _ in _secrets(text))


def mask_after(lead: str, value: str) -> str:
    """Return *value* masked as what follows *lead*, such as ``"password": "``, and a quote ends."""
    whole = mask_secrets(f'{lead}{value}"')
    if whole.startswith(lead):
        return whole.removeprefix(lead).removesuffix('"')
    return mask_secrets(value)


# A UUID, a short name, or two of letters and digits alone: tokens may have a slash.
_PLAIN_NAME = regex(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\w{0,15}|[A-Za-z0-9]{1,15}/[A-Za-z0-9]{1,15}",
    re.ASCII,
)


def masked_name(name: str) -> str:
    """Return *name*, such as an instance id, as it is stored: to look up what was learned under it.

    Loading the rules of secrets takes as long as much of a command: a plain name needs none.
    """
    return name if _PLAIN_NAME.fullmatch(name) else mask_secrets(clean(name))


def may_hold_secrets(texts: Sequence[str], whole: str) -> Iterator[int]:
    r"""Yield the indices of those of *texts* that a secret may be in, looking at all at once.

    *whole* is all of them, joined by `\n`.
    """
    # No hint spans a line end, and every rule takes one for the end of its text.
    if not whole.isascii() or "\\\n" in whole:
        unbroken = ((at, text, _unbroken(text)) for at, text in enumerate(texts))
        yield from (at for at, text, joined in unbroken if joined != text and _count(joined))
    ends: list[int] = []
    for hit, secret in _secrets(whole):
        ends = ends or list(accumulate(len(text) + 1 for text in texts))
        last = bisect_left(ends, secret.end)
        yield from range(bisect_left(ends, hit.end()), last + 1)


def hits(text: str) -> Iterator[re.Match[str]]:
    """Yield the places of *text* where a secret may be; their positions are those of *text*."""
    from contextgraph.text.secret_rules import hints

    exact, folded, foreign = hints()
    yield from _found(exact, text)
    lowered = _folded(text)
    yield from _found(folded, lowered)
    if not text.isascii():
        yield from _found(foreign, lowered)


def _found(hints: "Sequence[Hint]", text: str) -> Iterator[re.Match[str]]:
    for hint in hints:
        if hint.first in text:
            end, search = 0, hint.search
            while hit := search(text, end):
                yield hit
                end = hit.end()


def _folded(text: str) -> str:
    folded = text.lower()
    # The dotted capital I is the one character that lower case makes longer.
    return folded if len(folded) == len(text) else text.replace("\u0130", "i").lower()


def _masked_once(text: str) -> str:
    secrets = sorted((secret for _, secret in _secrets(text)), key=_Secret.order)
    if not secrets:
        return text
    parts: list[str] = []
    end = 0
    for secret in secrets:
        if secret.start >= end:
            parts += text[end : secret.start], f"<secret:{secret.kind}>"
        end = max(end, secret.end)  # of two that overlap nothing is shown
    return "".join((*parts, text[end:]))


# From the first backslash of several: from each of them it would take their square.
_LINE_END, _NEAR = regex(r"(?<!\\)\\++[nrt]"), 40


class _Secret(Struct, frozen=True):
    start: int
    end: int
    kind: str
    rank: int

    def order(self) -> tuple[int, int, int]:
        """First come first, the longest of those, the most specific of those."""
        return self.start, -self.end, self.rank


def _secrets(text: str) -> Iterator[tuple[re.Match[str], _Secret]]:
    """Each secret of *text*, and the hint that led to it; they may overlap."""
    from contextgraph.text.secret_rules import RANKS, rules_of

    last: re.Match[str] | None = None
    end, lines = 0, ""
    for hit in hits(text):
        # Hits of a pattern come in order; what is in a secret is masked with it. What another
        # pattern finds there may be the name of a secret that comes after.
        if last and hit.re is last.re and hit.start() < end:
            continue
        last, end = hit, 0
        for rule in rules_of(hit):
            span = rule.span(text, hit)
            if span is None and _LINE_END.search(text, max(0, hit.start() - _NEAR), hit.start()):
                # What begins a line is found there, though the line is quoted as in JSON.
                lines = lines or _LINE_END.sub(lambda one: "\n".ljust(len(one[0])), text)
                span = rule.span(lines, hit)
            if span:
                end = span[1]
                yield hit, _Secret(*span, rule.kind, RANKS.get(rule.kind, 0))
