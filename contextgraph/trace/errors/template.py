"""The template of an error message, which its occurrences share, and its keywords."""

import re

TEMPLATE_LENGTH = 200
KEYWORDS = 3
_READ = 1000
# One mistake in the words of several versions of Python, and what only some of them add.
_VARIANTS = (
    (re.compile(r"(expected an indented block) after [^\n]* on line \d+"), r"\1"),
    (re.compile(r"(invalid syntax)\. (?:Perhaps|Maybe) [^\n]*"), r"\1"),
    (re.compile(r"EOL while scanning string literal"), "unterminated string literal"),
    (
        re.compile(r"EOF while scanning triple-quoted string literal"),
        "unterminated triple-quoted string literal",
    ),
    (re.compile(r" \(detected at line \d+\)"), ""),
    (re.compile(r"(cannot import name '[^']*') from '[^']*' \([^()\n]*\)"), r"\1"),
    (re.compile(r"\.? Did you mean:? [^\n]*\?"), ""),
    (re.compile(r"(unrecognized argument)s?: [^\n]*"), r"\1"),
)
_MASKED = re.compile(
    # Plain words, which nothing below matches, are skipped whole: that halves the time.
    r"""(?P<word>(?<!named\ )(?<!Directory\ )(?<!name\ )(?<!File\ )(?<!for\ )
        \b(?!arguments\b)[A-Za-z]++(?=\ (?!object\ has)|$))
    |(?P<mask><(?:url|time|name|path|hex|number)>)
    |(?P<url>\b[a-z][a-z0-9+.-]{1,10}://[^\s'"<>]++)
    |(?P<time>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?
        |\b\d\d:\d\d:\d\d\b)
    |(?P<name>(?<!\w)(?:b|u|r|f)?'(?:[^'\\\n]|\\.){0,300}'(?!\w)|"(?:[^"\\\n]|\\.){0,300}"
        |`[^`'\n]{1,300}[`']
        |‘[^’\n]{1,300}’|“[^”\n]{1,300}”|(?:\b[A-Za-z_][\w.]*+)?(?=\(\))
        |(?<=\bmodule\ named\ )[\w.]++|\b\w++(?=\ object\ has\ no\ attribute\b)
        |(?<=valid\ object\ name\ )\S+)
    |(?P<path>(?<=Directory\ )\S+(?=\ not\ found)|(?<=File\ name\ )\S+(?=\ not\ found)
        |(?<=\bFile\ )\S+(?=\ not\ found)|(?<=distribution\ found\ for\ )\S+
        |[^\s<>'"]+(?=:\ (?:No\ such\ file|Permission\ denied|Is\ a\ dir|Not\ a\ dir))
        |(?<![\w>])(?:[A-Za-z]:\\|~?/|\.{1,2}/)[\w.@+-][^\s'"<>:,;()\[\]]*+
        |\b[\w.-]++(?:/[\w.@+-]++)+
        |\b[\w-]++\.(?:py|[jt]sx?|c|cc|cpp|h|go|rs|java|toml|ya?ml|json|cfg|ini|txt|md|whl|zip|gz)\b
        (?::\d++)*)
    |(?P<hex>\b0[xX][0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b)
    |(?P<number>(?<![\w.>])[vV+-]?\d++(?:[.,_]\d++)*(?:[eE][+-]?\d++)?
        (?:\.?(?:dev|post|rc|a|b)\d++)?(?!\w))
    |(?P<plural>(?<=argument)s\b)""",
    re.VERBOSE,
)
_NAMES = re.compile(r"<name>(?:(?:,|,? and|,? or) <name>)+")
_QUOTED = re.compile(
    r"""(?<!\w)'([^'\n]{1,120})'|"([^"\n]{1,120})"|`([^`'\n]{1,120})[`']|‘([^’\n]{1,120})’"""
)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*(?:[./][\w-]+)*")
_CODE_LIKE = re.compile(r"\w_\w|[a-z][A-Z]|\w[./]\w|^[A-Z]{2,}$|__")
_WORD = re.compile(r"[A-Za-z][A-Za-z-]{2,}")
_BOILERPLATE = frozenset(
    "the and not for are was has had have can cannot could with from this that but you your its "
    "it's than then there their into only been does did don doesn name object type instance "
    "error errors exception traceback most recent call last file line module named attribute "
    "got given takes missing required positional keyword argument arguments failed failure "
    "unexpected invalid none true false expected value raise raised assert self code python "
    "found such directory must should while when during after before because using use please "
    "try".split()
)


def template_of(message: str) -> str:
    """*message* with paths, numbers, ids, quoted names, addresses and times masked.

    At most 200 characters; the template of a template is itself.
    """
    text = message[:_READ]
    for pattern, replacement in _VARIANTS:
        text = pattern.sub(replacement, text)
    text = _masked(" ".join(text.split()))
    # Masking may bring two halves of a name together; a few rounds reach the form that stays.
    for _ in range(6):
        if (once_more := _masked(text)) == text:
            break
        text = once_more
    return text


def _masked(text: str) -> str:
    masked = _NAMES.sub("<name>", _MASKED.sub(_mask, text))
    return masked.strip()[:TEMPLATE_LENGTH].rstrip()


def _mask(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "plural":
        return ""
    if kind in ("word", "mask") or not match.group():
        return match.group()
    return f"<{kind}>"


def keywords_of(message: str, error_type: str) -> tuple[str, ...]:
    """At most three words that set *message* apart: names first, then other informative words.

    Where a message has only common words, these are better than none.
    """
    text = message[:_READ]
    candidates = [*_quoted_names(text), *_code_words(text), *_informative_words(text)]
    known = {error_type, error_type.rsplit(".", 1)[-1]}
    chosen = _distinct([word for word in candidates if word not in known])
    return tuple(chosen or _distinct(_WORD.findall(text)))


def _distinct(words: list[str]) -> list[str]:
    """The first few *words*, none of them part of another."""
    chosen: list[str] = []
    joined = ""
    for word in words:
        if word.lower() not in joined:
            chosen.append(word)
            joined = f"{joined} {word.lower()}"
        if len(chosen) == KEYWORDS:
            break
    return chosen


def _quoted_names(text: str) -> list[str]:
    quoted = (next(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    return [_short(word) for part in quoted for word in _IDENTIFIER.findall(part)[:2]]


def _code_words(text: str) -> list[str]:
    words = (match.group() for match in _IDENTIFIER.finditer(text))
    return [_short(word) for word in words if _CODE_LIKE.search(word)]


def _informative_words(text: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return [word for word in words if word not in _BOILERPLATE]


def _short(word: str) -> str:
    """The last part of a path; a dotted name stays whole."""
    return word.rsplit("/", 1)[-1][:60]
