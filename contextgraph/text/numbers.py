"""Numbers beside their nouns."""


def number_of(count: int, noun: str) -> str:
    """*count* of an English *noun*: ``1 run``, ``0 recoveries``, ``2,000 runs``."""
    if count == 1:
        return f"1 {noun}"
    ends_in_y = noun.endswith("y") and noun[-2] not in "aeiou"
    return f"{count:,} {noun[:-1]}ies" if ends_in_y else f"{count:,} {noun}s"
