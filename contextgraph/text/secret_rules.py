"""The kinds of secrets and what they look like, read at the places that the hints found.

Quantifiers without a limit are possessive and have a border on their left, so that one rule reads
no character twice: adversarial input stays linear.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from contextgraph.text.secret_values import (
    is_bare_literal,
    is_credential,
    is_key,
    is_password,
    is_random,
    is_url_password,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret: *pattern* applies at *start* of a hint; its last group is the secret."""

    kind: str
    pattern: re.Pattern[str]
    start: Callable[[re.Match[str]], int]
    accepts: Callable[[re.Match[str]], bool]


_LETTERS = "A-Za-z0-9"
_URL_SAFE = "A-Za-z0-9_-"


def _prefixed(kind: str, lead: int, prefix: str, length: str, alphabet: str = _LETTERS) -> Rule:
    """A provider's token that starts *lead* characters before the letter of its hint."""
    pattern = re.compile(
        rf"(?<![{alphabet}])(?P<secret>{prefix}[{alphabet}]{{{length}}}+)(?![{alphabet}])"
    )
    return Rule(kind, pattern, lambda hit: hit.start() - lead, lambda m: is_random(m["secret"]))


# The name may go on (`secret_access_key`, `token2`), be quoted, be a subscript, have a type.
_NAME_END = (
    r"(?i:(?:[_-]?(?:access|secret|key|token|value|hash)){0,3}+s?+(?:_?[0-9]{1,2}+)?+)"
    r"\\?[\"'`]?\]?"
)
_ANNOTATION = r"(?:\s{0,3}:\s{0,3}[A-Za-z][\w.]{0,30}(?:\[\w{1,20}\])?(?=\s{0,3}=))?"
_SIGN = r"(?P<sign>[ \t]{0,20}+(?:=>|:=|=(?!=)|:(?![:/]))[ \t]{0,20}+)"
_QUOTED = r"[bBrRuU]{0,2}\\?[\"'`](?P<quoted>[^\"'`\s\\<>]{8,256}+)(?=\\?[\"'`]|\Z)"
_BARE = r"(?P<bare>[^\"'`\s\\<>(){}\[\],;&|]{8,256}+)(?=[\s\"'&]|\\[nrt\"']|\Z)"
_ASSIGNMENT = re.compile(f"{_NAME_END}{_ANNOTATION}{_SIGN}(?:{_QUOTED}|{_BARE})")


def _assigned(kind: str, looks_literal: Callable[[str], bool]) -> Rule:
    """The value of `name = value`, read from the end of the keyword in the name."""

    def accepts(match: re.Match[str]) -> bool:
        if match["quoted"] is not None:
            return looks_literal(match["quoted"])
        shell = match["sign"] == "=" and match.string[match.start() - 1].isupper()
        return looks_literal(match["bare"]) and (shell or is_bare_literal(match["bare"]))

    return Rule(kind, _ASSIGNMENT, _after, accepts)


def _after(hit: re.Match[str]) -> int:
    return hit.end()


def _scheme_end(hit: re.Match[str]) -> int:
    """Where the `://` is that belongs to the `@` of *hit*."""
    return hit.string.rfind("://", max(0, hit.start() - 200), hit.start())


_JWT_PART = f"[{_URL_SAFE}]{{8,}}+"
_AUTHORIZATION = re.compile(
    r"(?i)\\?[\"'`]?\]?\s{0,4}(?:=>|[:=,])\s{0,4}[bfru]?\\?[\"'`]?"
    r"(?:bearer|basic|token)\s{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{8,}+)(?![(\[{<$%*])"
)
_URL = re.compile(r"://[^\s/:@\"'<>\\]{0,64}+:(?P<secret>[^\s/@\"'<>\\]{1,128}+)@")
# Lines of base64, each after a line end that may be escaped, quoted, numbered or a diff's.
_LINE_END = r"(?:\\+[nr]|[\s\"'+,|>:0-9-])"
_PRIVATE_KEY = re.compile(
    r"(?P<secret>(?:(?:\\+[nr]|\s){1,8}(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\]{1,80})*+"
    rf"(?:{_LINE_END}{{1,40}}?[A-Za-z0-9+/]{{16,}}+={{0,2}})++"
    rf"(?:{_LINE_END}{{1,40}}?[A-Za-z0-9+/=]{{1,64}}+(?={_LINE_END}{{0,40}}?-----END|\s*\Z))?)"
)

_RULES = {
    "aws_access_key": _prefixed("aws-access-key", 0, "A[KS]IA", "16"),
    "google": _prefixed("google-api-key", 0, "AIza", "35", _URL_SAFE),
    "pypi": _prefixed("pypi-token", 5, "pypi-AgEI", "20,", _URL_SAFE),
    "github": _prefixed("github-token", 3, "gh[posur]_", "30,"),
    "github_pat": _prefixed("github-token", 10, "github_pat_", "30,", "A-Za-z0-9_"),
    "gitlab": _prefixed("gitlab-token", 5, "glpat-", "20,", _URL_SAFE),
    "anthropic": _prefixed("anthropic-key", 2, "sk-ant-", "20,", _URL_SAFE),
    "openai_project": _prefixed(
        "openai-key", 2, "sk-(?:proj|svcacct|admin|or-v1)-", "20,", _URL_SAFE
    ),
    "openai": _prefixed("openai-key", 2, "sk-", "20,"),
    "stripe": _prefixed("stripe-key", 2, "[sr]k_live_", "16,"),
    "slack": _prefixed("slack-token", 4, "xox[a-z]-", "10,", "A-Za-z0-9-"),
    "npm": _prefixed("npm-token", 3, "npm_", "36"),
    "huggingface": _prefixed("huggingface-token", 2, "hf_", "30,"),
    "jwt": _prefixed("jwt", 2, rf"eyJ{_JWT_PART}\.{_JWT_PART}\.", "8,", _URL_SAFE),
    "private_key": Rule("private-key", _PRIVATE_KEY, _after, lambda match: True),
    "authorization": Rule(
        "authorization", _AUTHORIZATION, _after, lambda match: is_credential(match["secret"])
    ),
    "url": Rule("url-password", _URL, _scheme_end, lambda match: is_url_password(match["secret"])),
    "aws_secret_key": _assigned("aws-secret-key", is_key),
    "password": _assigned("password", is_password),
    "secret": _assigned("secret", is_password),
    "token": _assigned("token", is_key),
    "key": _assigned("api-key", is_key),
}

# By the name of the group of the hint, the more specific kinds first.
RULES: Mapping[str, Rule] = MappingProxyType(_RULES)
