"""The reason that a complaint gives, without the names in it."""

import re

_QUOTED = re.compile(r"['‘`\"“][^'’`\"”\n]*['’`\"”]|\d+|\([^()\n]*\)")
# `incompatible types: String cannot be …`, `undefined: knead`: the kind stands before the colon.
_KIND = re.compile(r"([A-Za-z][A-Za-z ,-]{2,80}): ")
_FILE = re.compile(r"\S+\.\w+: ")
_WORDS = 6


def reason_of(message: str) -> str:
    """The complaint without names, numbers and details, at most six words."""
    bare = _QUOTED.sub("", _FILE.sub("", message[:500], count=1)).split(";", 1)[0].strip()
    kind = _KIND.match(bare)
    words = (kind[1] if kind else bare).split()
    return " ".join(words[:_WORDS]).rstrip(":, ") or "error"
