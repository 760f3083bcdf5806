"""Remedies that are never advised: they destroy work, run downloads, or disable a check."""

import re
from collections.abc import Sequence
from functools import lru_cache

from contextgraph.model import RemedyAction, RemedyKind
from contextgraph.text import compiled

# Of a command or an edit this much is looked at.
_READ = 10_000
_SHELL = r"(?:sudo\s+)?(?:/\S{1,40}/)?(?:ba|z|da|k|a)?sh\b"
_LOADER = r"\b(?:curl|wget)\b[^\n|]{0,500}"
_OPENING = r"[\"']?(?:<\(|\$\(|`)\s*(?:curl|wget)\b"
# By words in lower case: each text that a pattern matches has one of them, and most texts none.
_DESTROYING = {
    "rm": r"(?<![-\w])rm\s+(?:-{1,2}[\w-]+\s+){0,5}(?:-[a-zA-Z]{0,8}[rR]|--recursive)",
    "reset": r"\bgit\s(?:[^\n;&|]{0,60}\s)?reset\s[^\n;&|]{0,100}--hard",
    "clean": r"\bgit\s(?:[^\n;&|]{0,60}\s)?clean\s[^\n;&|]{0,100}-[a-zA-Z]{0,8}f",
    "push": r"\bgit\s(?:[^\n;&|]{0,60}\s)?push\s[^\n;&|]{0,200}"
    r"(?:-f\b|--force|--mirror|--delete|\s\+\w)",
    "chmod": r"\bchmod\s[^\n;&|]{0,100}(?:\b0?777\b|\b(?:a|ugo)\+rwx\b)",
    "mkfs": r"\bmkfs\b",
    "of=/dev/": r"\bdd\s[^\n;&|]{0,200}\bof=/dev/",
    "table database schema": r"\b(?:DROP\s+(?:TABLE|DATABASE|SCHEMA)|TRUNCATE\s+TABLE)\b",
}
_DOWNLOADED = {
    "curl wget": rf"{_LOADER}(?:&&|;)\s{{0,4}}{_SHELL}\s"
    rf"|{_LOADER}\|\s*(?:{_SHELL}|(?:sudo\s+)?(?:python|perl|ruby|node)[\d.]*\b)"
    rf"|(?:{_SHELL}\s+(?:-c\s+)?|\beval\s+|\bsource\s+){_OPENING}",
}
_UNCHECKED = {
    "--no- --trusted-host": r"--no-verify\b|--no-check-certificate\b|--trusted-host\b",
    "curl": r"\bcurl\s(?:[^\n|;&]{0,200}\s)?(?:-[a-zA-Z]{0,6}k\b|--insecure\b)",
    "ssl": r"\b(?:http\.sslVerify|strict-ssl|ssl_verify)[\s=]+(?:false|0|no)\b"
    r"|\bGIT_SSL_NO_VERIFY\b|\bssl\s{0,4}=\s{0,4}False\b",
    "verify unauthorized": r"\b(?:PYTHONHTTPSVERIFY|NODE_TLS_REJECT_UNAUTHORIZED)"
    r"\s{0,4}=\s{0,4}[\"']?0"
    r"|\bverify(?:_ssl|_certs)?\s{0,4}=\s{0,4}False\b"
    r"|\brejectUnauthorized\s{0,4}:\s{0,4}false\b|\bInsecureSkipVerify\s{0,4}:\s{0,4}true\b",
    "check_hostname": r"\bcheck_hostname\s{0,4}=\s{0,4}False\b",
    "unverified cert_none": r"_create_unverified_context\b|\bCERT_NONE\b",
}
_UNTESTED = {
    "--deselect --ignore not": r"--deselect\b|--ignore(?:-glob)?[=\s]\S{0,200}test"
    r"|\s-k\s{0,4}[\"']?not\s",
    "skip": r"-DskipTests\b|-Dmaven\.test\.skip|\bpytest\.skip\(|\bself\.skipTest\("
    r"|\bt\.Skip\(|\b(?:it|test|describe)\.skip\(",
    "xfail": r"\bpytest\.xfail\(",
    "@": r"@(?:\w+\.){0,3}(?:skip|skipIf|skipUnless|xfail|expectedFailure|Disabled|Ignore)\b",
    "#[ignore": r"#\[ignore\b",
    "xit( xdescribe(": r"\bx(?:it|describe)\(",
}
_HAZARDS = [
    (word, pattern)
    for table in (_DESTROYING, _DOWNLOADED, _UNCHECKED, _UNTESTED)
    for words, pattern in table.items()
    for word in words.split()
]
_TEST_FILE = re.compile(
    r"(?:^|[/\s])(?:tests?/|test_\w|conftest\.py)|_test\.\w|\.(?:test|spec)\.\w"
)
_TEST = re.compile(
    r"^\s*(?:async\s+)?(?:def\s+test|class\s+Test|it\(|test\(|func\s+Test)", re.MULTILINE
)
_DELETING = re.compile(r"\b(?:git\s+rm|rm|unlink|del)\s", re.IGNORECASE)
_EDITS = frozenset({RemedyKind.EDIT, RemedyKind.RESEND, RemedyKind.CONFIGURE})


def is_hazardous(actions: Sequence[RemedyAction]) -> bool:
    """True where one of *actions* is never advice, however often it cleared an error."""
    return any(map(_is_hazardous, actions))


def is_hazardous_command(line: str) -> bool:
    """True where a command *line* is never advice, however often it worked."""
    text = line.lower()
    return any(
        compiled(pattern, re.IGNORECASE).search(line) for word, pattern in _HAZARDS if word in text
    )


@lru_cache(8_192)
def _is_hazardous(action: RemedyAction) -> bool:
    values = (value for _, value in action.parameters)
    texts = (action.target, action.pattern.target, *action.pattern.parameters, *values)
    text = "\n".join(text[:_READ] for text in texts)
    if is_hazardous_command(text):
        return True
    names_test = ("test" in text or "spec" in text) and _TEST_FILE.search(text)
    return bool(names_test) and _deletes_tests(action, text)


def _deletes_tests(action: RemedyAction, text: str) -> bool:
    if action.kind in _EDITS:
        before, after = action.replaced[:_READ], action.target[:_READ]
        return len(_TEST.findall(after)) < len(_TEST.findall(before))
    return action.kind is RemedyKind.DELETE or _DELETING.search(text) is not None
