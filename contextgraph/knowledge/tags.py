"""Tags in one form, so that the same thing has the same tag."""

import re
from collections.abc import Iterable
from itertools import chain

from contextgraph.text import masked_name

MAX_TAGS = 8
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_PLURAL = re.compile(r"(?<=[a-z]{3})(?<![suix])s\Z")


def tags_of(name: str) -> tuple[str, ...]:
    """The tags that *name* gives: its parts and, of several, all with hyphens.

    `StateGraphs` gives `state`, `graph`, `state-graph`.
    """
    parts = [_PLURAL.sub("", part.lower()) for part in _PART.findall(masked_name(name))]
    whole = ["-".join(parts)] if len(parts) > 1 else []
    return tuple(dict.fromkeys((*parts, *whole)))


def normalized_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """*tags* in lower case, singular, with hyphens, each once: the first eight of them."""
    given = (tags_of(tag) for tag in tags)
    last = chain.from_iterable(some[-1:] for some in given)
    return tuple(dict.fromkeys(last))[:MAX_TAGS]
