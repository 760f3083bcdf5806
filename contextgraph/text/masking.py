"""Replacing secrets by markers that name their kind."""

from collections.abc import Iterator

from contextgraph.text.secret_hints import HINTS
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


def _masked_once(text: str) -> str:
    kept: list[str] = []
    end = 0
    for start, stop, kind in sorted(_secrets(text), key=_reading_order):
        if start >= end:
            kept += text[end:start], f"<secret:{kind}>"
            end = stop
    return "".join((*kept, text[end:])) if kept else text


def _secrets(text: str) -> Iterator[tuple[int, int, str]]:
    """The span and kind of each secret; spans of different kinds may overlap."""
    for letter, hint in HINTS:
        if letter in text and hint.search(text):
            for hit in hint.finditer(text):
                rule = RULES[str(hit.lastgroup)]
                match = rule.pattern.match(text, rule.start(hit))
                if match and rule.accepts(match):
                    yield *match.span(str(match.lastgroup)), rule.kind


def _reading_order(secret: tuple[int, int, str]) -> tuple[int, int, int]:
    """First come first, the longest of those, the most specific of those."""
    start, stop, kind = secret
    return start, -stop, _PRECEDENCE[kind]
