"""Replacing secrets by markers that name their kind."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from contextgraph.text.secret_hints import hits
from contextgraph.text.secret_rules import RULES

_PRECEDENCE = {rule.kind: rank for rank, rule in enumerate(RULES.values())}


def mask_secrets(text: str) -> str:
    """Return *text* with each secret replaced by a marker such as `<secret:github-token>`.

    The same text gives the same result, and masking twice changes nothing more.
    """
    masked = _masked_once(text)
    # A mask can uncover a neighbour: what touches a token is read as its continuation until then.
    while masked != text:
        text, masked = masked, _masked_once(masked)
    return masked


def may_hold_secrets(texts: Sequence[str]) -> Iterator[str]:
    """Yield those of *texts* that a secret may be in, found in one look at all of them."""
    # No hint spans a line end, so that each of a text is one of the whole as well.
    ends = list(accumulate(len(text) + 1 for text in texts))
    for hit in hits("\n".join(texts)):
        yield texts[bisect_left(ends, hit.end())]


def _masked_once(text: str) -> str:
    secrets = [secret for hit in hits(text) if (secret := _secret_at(text, hit))]
    if not secrets:
        return text
    kept: list[str] = []
    end = 0
    for start, stop, kind in sorted(secrets, key=_reading_order):
        if start >= end:
            kept += text[end:start], f"<secret:{kind}>"
            end = stop
    return "".join((*kept, text[end:]))


def _secret_at(text: str, hit: re.Match[str]) -> tuple[int, int, str] | None:
    """The span and kind of the secret at *hit*; secrets of different kinds may overlap."""
    rule = RULES[str(hit.lastgroup)]
    match = rule.pattern.match(text, rule.start(hit))
    if not match or not rule.accepts(match):
        return None
    return *match.span(str(match.lastgroup)), rule.kind


def _reading_order(secret: tuple[int, int, str]) -> tuple[int, int, int]:
    """First come first, the longest of those, the most specific of those."""
    start, stop, kind = secret
    return start, -stop, _PRECEDENCE[kind]
