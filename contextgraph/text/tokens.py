"""How long a text is for a language model, and cutting it to a length."""

from typing import Literal

# Measured on code: 2.7 characters a token; prose has more, so the estimate errs on the high side.
_CHARACTERS, _TOKENS = 27, 10


def count_tokens(text: str) -> int:
    """Return about how many tokens *text* has, rather too many than too few.

    An estimate from lengths alone: 2.7 ASCII characters a token, as in code (English prose has
    more), and half a token for each byte of any other character.
    """
    if text.isascii():
        return -(-len(text) * _TOKENS // _CHARACTERS)
    narrow = len(text.encode("ascii", "ignore"))
    wide_bytes = len(text.encode("utf-8", "surrogatepass")) - narrow
    return -(-(narrow * _TOKENS * 2 + wide_bytes * _CHARACTERS) // (_CHARACTERS * 2))


def clip_tokens(text: str, max_tokens: int, *, at: Literal["middle", "end"] = "middle") -> str:
    """Return *text*, cut so that `count_tokens` of it is at most *max_tokens*."""
    if count_tokens(text) <= max_tokens:
        return text
    low, high = 0, min(len(text), max(0, max_tokens) * _CHARACTERS // _TOKENS)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(clip(text, middle, at=at)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return clip(text, low, at=at)


def clip(text: str, max_chars: int, *, at: Literal["middle", "end"] = "middle") -> str:
    """Return *text*, cut at the middle or at the end to at most *max_chars* characters.

    The cut shows as `… [N characters cut] …`; where that does not fit, only the head is left.
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - len(_mark(len(text)))
    if room < 0:
        return text[: max(0, max_chars)]
    tail = room // 2 if at == "middle" else 0
    head = room - tail
    return text[:head] + _mark(len(text) - room) + text[len(text) - tail :]


def _mark(cut: int) -> str:
    return f"… [{cut} characters cut] …"
