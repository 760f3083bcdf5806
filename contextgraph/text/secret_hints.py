"""Where to look for secrets, cheaply.

A hint starts with one literal letter, because `re` then walks the text with memchr: looking for
each prefix with `in` costs 75 microseconds per 65 kB, a hint 20 to 60 for several prefixes at
once. The name of the group that matched is the rule of `secret_rules` to try there, and only there.
"""

import re
from collections.abc import Callable

_KEY_NAMES = "|".join(
    f"(?<={name}key)"
    for name in (
        "api_ api- api access_ private_ account_ signing_ encryption_ auth_ shared_ master_"
    ).split()
)
_CAMEL_KEY_NAMES = "(?<=piKey)|(?<=ccessKey)|(?<=rivateKey)|(?<=ccountKey)|(?<=ncryptionKey)"

_PATTERNS = (
    r"""A(?:
        (?P<aws_access_key>[KS]IA)
        | (?P<google>Iza)
        | (?P<pypi>gEI(?<=pypi-AgEI))
        | (?P<password>SSW(?:OR)?D)
        | (?P<authorization>UTHORIZATION)
    )""",
    r"""_(?<=[hpasr][mfposurtk]_)(?:
        (?P<github>(?<=gh[posur]_))
        | (?P<github_pat>(?<=github_pat_))
        | (?P<npm>(?<=npm_))
        | (?P<huggingface>(?<=hf_))
        | (?P<stripe>(?<=[sr]k_)live_)
    )""",
    r"""-(?<=[sax][a-z]-)(?:
        (?<=sk-)(?:
            (?P<anthropic>ant-)
            | (?P<openai_project>proj-|svcacct-|admin-|or-v1-)
            | (?P<openai>)
        )
        | (?P<gitlab>(?<=glpat-))
        | (?P<slack>(?<=xox[a-z]-))
    )""",
    rf"""k(?:
        (?P<token>en(?<=[Tt]oken))
        | (?P<key>ey(?<=[_i-]key)(?:{_KEY_NAMES}))
    )""",
    rf"""K(?:
        (?P<token>EN(?<=TOKEN))
        | (?P<private_key>EY(?<=PRIVATE\ KEY))
        | (?P<key>EY(?<=[_I-]KEY)(?:{_KEY_NAMES.upper()})|ey(?:{_CAMEL_KEY_NAMES}))
    )""",
    r"w(?P<password>ord(?<=assword)|d(?:(?<=asswd)|(?<=[_\W]pwd)))",
    r"W(?P<password>D(?<=_PWD))",
    r"cret(?<=[Ss]ecret)(?:(?P<aws_secret_key>_?[Aa]ccess_?[Kk]ey)|(?P<secret>))",
    r"CRET(?<=SECRET)(?:(?P<aws_secret_key>_ACCESS_KEY)|(?P<secret>))",
    r"zation(?P<authorization>(?<=uthorization))",
    r"J(?P<jwt>(?<=eyJ))",
    r"@(?P<url>(?<=[^\s/]@)(?=[A-Za-z0-9\[]))",
)

# The letter comes with it: most texts hold no J, K or z, and `in` for one character is cheapest.
HINTS: tuple[tuple[str, Callable[[str, int], re.Match[str] | None]], ...] = tuple(
    (pattern[0], re.compile(pattern, re.VERBOSE).search) for pattern in _PATTERNS
)
