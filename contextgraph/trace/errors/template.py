"""The shape that all occurrences of one mistake share."""

import re

TEMPLATE_LENGTH = 200
_READ = 1000
# One mistake in the words of several versions of Python, and what only some of them add.
_SAME = (
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
    r"""(?P<mask><(?:url|time|name|path|hex|number)>)
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
    |(?P<plural>(?<=argument)s\b)
    |(?P<blank>\s+)""",
    re.VERBOSE,
)
_NAMES = re.compile(r"<name>(?:(?:,|,? and|,? or) <name>)+")


def template_of(message: str) -> str:
    """*message* with paths, numbers, ids, quoted names, addresses and times masked.

    At most 200 characters; the template of a template is itself.
    """
    text = message[:_READ]
    for pattern, told in _SAME:
        text = pattern.sub(told, text)
    text = _masked(text)
    # Masking may bring two halves of a name together; a few rounds reach the form that stays.
    for _ in range(6):
        if (again := _masked(text)) == text:
            break
        text = again
    return text


def _masked(text: str) -> str:
    masked = _NAMES.sub("<name>", _MASKED.sub(_mask, text))
    return masked.strip()[:TEMPLATE_LENGTH].rstrip()


def _mask(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "blank":
        return " "
    if kind == "plural":
        return ""
    if kind == "mask" or not match.group():
        return match.group()
    return f"<{kind}>"
