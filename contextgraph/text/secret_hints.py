"""Where to look for secrets, cheaply.

A hint starts with one literal letter, because `re` then walks the text with memchr: looking for
each prefix with `in` costs 75 microseconds per 65 kB, a hint 20 to 60 for several prefixes at
once. The name of the group that matched is the rule of `secret_rules` to try there, and only there.
"""

import re
from collections.abc import Callable, Iterator

_KEY_NAMES = "|".join(
    f"(?<={name}{separator}key)"
    for name in "api access private account signing encryption auth shared master".split()
    for separator in ("_", "-", "")
)

# Names in prose and in expressions are many; a match object for each would cost the most.
_ASSIGNED = r"""(?=[\w"'`\]\\-]{0,30}+[ \t]{0,20}+[=:])"""

# Of the text as it is.
_EXACT = (
    r"A(?:(?P<aws_access_key>[KS]IA)|(?P<google>Iza)|(?P<pypi>gEI(?<=pypi-AgEI)))",
    r"J(?P<jwt>(?<=eyJ))",
)
# Of the text in lower case.
_FOLDED = (
    r"""_(?<=[hpasr][mfposurtk]_)(?:
        (?P<github>(?<=gh[posur]_))
        | (?P<github_pat>(?<=github_pat_))
        | (?P<npm>(?<=npm_))
        | (?P<huggingface>(?<=hf_))
        | (?P<stripe>(?<=[sr]k_)live_)
    )""",
    # Most hyphens stand in rulers and before spaces.
    r"""-[a-z0-9](?<=[sax][a-z]-.)(?:
        (?P<anthropic>(?<=sk-a)nt-)
        | (?P<openai_project>(?<=sk-[psao])(?:roj|vcacct|dmin|r-v1)-)
        | (?P<openai>(?<=sk-.))
        | (?P<gitlab>(?<=glpat-.))
        | (?P<slack>(?<=xox[a-z]-.))
    )""",
    rf"""ke[ny](?:
        (?P<token>(?<=token){_ASSIGNED})
        | (?P<private_key>(?<=private\ key)(?:\ block)?-----)
        | (?P<key>(?:{_KEY_NAMES}){_ASSIGNED})
    )""",
    rf"w(?P<password>(?:ord(?<=assword)|d(?:(?<=asswd)|(?<=[_\W]pwd))){_ASSIGNED})",
    rf"cret(?<=secret)(?:(?P<aws_secret_key>_?access_?key)|(?P<secret>{_ASSIGNED}))",
    r"zation(?P<authorization>(?<=uthorization))",
    r"@(?P<url>(?<=[^\s/]@)(?=[a-z0-9\[]))",
)


_Hints = tuple[tuple[str, Callable[[str, int], re.Match[str] | None]], ...]


def _hints(patterns: tuple[str, ...]) -> _Hints:
    """Letter and search of each; most texts hold no J, and `in` for one character is cheapest."""
    return tuple((pattern[0], re.compile(pattern, re.VERBOSE).search) for pattern in patterns)


_EXACT_HINTS, _FOLDED_HINTS = _hints(_EXACT), _hints(_FOLDED)


def hits(text: str) -> Iterator[re.Match[str]]:
    """Yield the places of *text* where a secret may be; their positions are those of *text*."""
    yield from _found(_EXACT_HINTS, text)
    yield from _found(_FOLDED_HINTS, _folded(text))


def _found(hints: _Hints, text: str) -> Iterator[re.Match[str]]:
    for letter, search in hints:
        if letter in text:
            end = 0
            while hit := search(text, end):
                yield hit
                end = hit.end()


def _folded(text: str) -> str:
    folded = text.lower()
    # The dotted capital I is the one character that lower case makes longer.
    return folded if len(folded) == len(text) else text.replace("\u0130", "i").lower()
