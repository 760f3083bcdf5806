"""Where to look for secrets, cheaply.

A hint starts with one literal letter, because `re` then walks the text with memchr: looking for
each prefix with `in` costs 75 microseconds per 65 kB, a hint 20 to 60 for several prefixes at
once. The name of the group that matched is the rule of `secret_rules` to try there, and only there.
"""

import re

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
        | (?P<pypi>(?<=pypi-A)gEI)
        | (?P<password>(?<=PA)SSW(?:OR)?D)
        | (?P<authorization>UTHORIZATION)
    )""",
    r"""_(?<=hf_|pm_|h[posur]_|at_|[sr]k_)(?:
        (?P<github>(?<=gh[posur]_))
        | (?P<github_pat>(?<=github_pat_))
        | (?P<npm>(?<=npm_))
        | (?P<huggingface>(?<=hf_))
        | (?P<stripe>(?<=[sr]k_)live_)
    )""",
    r"""-(?<=sk-|at-|x[a-z]-)(?:
        (?<=sk-)(?:(?P<anthropic>ant-)|(?P<openai>))
        | (?P<gitlab>(?<=glpat-))
        | (?P<slack>(?<=xox[a-z]-))
    )""",
    rf"""k(?:
        (?P<token>(?<=[Tt]ok)en)
        | (?P<key>ey(?<=[_i-]key)(?:{_KEY_NAMES}))
    )""",
    rf"""K(?:
        (?P<token>(?<=TOK)EN)
        | (?P<private_key>(?<=PRIVATE\ K)EY)
        | (?P<key>EY(?<=[_I-]KEY)(?:{_KEY_NAMES.upper()})|ey(?:{_CAMEL_KEY_NAMES}))
    )""",
    r"w(?P<password>(?<=assw)(?:or)?d|(?<=[_\W]pw)d)",
    r"W(?P<password>(?<=_PW)D)",
    r"c(?<=[Ss]ec)(?:(?P<aws_secret_key>ret_?[Aa]ccess_?[Kk]ey)|(?P<secret>ret))",
    r"C(?<=SEC)(?:(?P<aws_secret_key>RET_ACCESS_KEY)|(?P<secret>RET))",
    r"z(?P<authorization>(?<=uthoriz)ation)",
    r"J(?P<jwt>(?<=eyJ))",
    r"@(?P<url>(?<=[^\s/]@)(?=[A-Za-z0-9\[]))",
)

# The letter first: most texts hold no J, K or z, and `in` for one character costs next to nothing.
HINTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (pattern[0], re.compile(pattern, re.VERBOSE)) for pattern in _PATTERNS
)
