"""Whether a value is a secret, or a name, a path, an expression or a placeholder."""

import re

from contextgraph.lazy import regex

_MIN_LENGTH = 8
_MIN_DISTINCT = 5
# Letter-only values are almost always words or names; random ones change case all the time.
_MIN_CASE_CHANGES = 6

_PLACEHOLDERS = (
    "example",
    "***",
    "...",
    "your",
    "change",
    "placeholder",
    "redacted",
    "dummy",
    "insert",
    "replace",
    "abcdefgh",
    "1234567890",
    "%3c",
    "%7b",
)
# Three letters are common by chance in a token of a hundred.
_TOKEN_PLACEHOLDER = regex(
    r"x{5}|\*{3}|\.{3}|example|placeholder|redacted|dummy|abcdefgh|1234567890"
    r"|(?:your|change|insert|replace)[_-]?(?:me|my|api|token|key|here|this)"
    r"|(?:token|key|secret)[_-]?here",
    re.IGNORECASE,
)
_TEMPLATE = regex(r"\$[({]|^\$[A-Za-z_]\w*$|\{\w*\}|\{\{|%[(sdr]|<[^<>]*>")
_NO_SECRET = regex(
    r"[~.]{0,2}/(?:[a-z0-9._-]++/?)+\Z"  # a path
    r"|[\w.+-]+@[\w-]+\.[\w.]+\Z"  # an address
    r"|\S*://"
    r"|[\w./-]+\.(?:[jt]sx?|json|py|txt|pem|key|crt|ya?ml|toml|cfg|ini|md|html?)\Z"
)
_DOTTED_NAME = regex(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\Z")
_HEX = regex(r"[0-9a-fA-F-]+")
# Parts joined by separators, as in the key of a cache or a file name.
_VERSIONED = regex(r"^(?:[A-Za-z]+|v?\d+)(?:[_:./-](?:[A-Za-z]+|v?\d+))+$")
_DIGIT_RUN = regex(r"[0-9]+")
_CASE_CHANGE = regex(r"[a-z](?=[A-Z])|[A-Z](?=[a-z])")
_STAND_INS = ("pass", "secret", "token", "basic", "user", "postgres", "first.last")
_TYPES = ("int", "float", "string", "array", "bytes", "buffer", "bool", "list", "dict", "option")
_SYMBOLS = frozenset("!@#$%^&*+=?|~")

# Words of messages and labels about passwords; a passphrase of random words has none of them.
_PROSE = frozenset(
    "a an and are at be but by can cannot could did do does enter error failed field for from has"
    " have help if in invalid is it least long may must my new no not of on or password passphrase"
    " please required reset same set should similar test that the their this to too type use used"
    " user using value was when will with without wrong you your".split()
)
_WORDS = regex(r"[a-z]{3,12}(?:[ -][a-z]{3,12}){3,23}\Z")


def is_random(value: str) -> bool:
    """Whether *value* has the variety of a generated key (for tokens with a known prefix)."""
    value = value[:200]
    if len(set(value)) < 8 or _TOKEN_PLACEHOLDER.search(value) or _TEMPLATE.search(value):
        return False
    return bool(_DIGIT_RUN.search(value)) or len(_CASE_CHANGE.findall(value)) > 4


def is_credential(value: str) -> bool:
    """Whether *value* follows an authorization scheme as a literal, not as a word or variable."""
    if is_placeholder(value) or len(set(value)) < _MIN_DISTINCT:
        return False
    return bool(_DIGIT_RUN.search(value)) or len(_CASE_CHANGE.findall(value)) > 2


def is_url_password(value: str) -> bool:
    """Whether *value*, the password of a URL, is more than a stand-in such as `api_secret`."""
    lowered = value.lower()
    return (
        len(value) >= 6
        and len(set(value)) >= 4
        and (bool(_DIGIT_RUN.search(value)) or not any(word in lowered for word in _STAND_INS))
        and not is_placeholder(value)
    )


def is_option_value(value: str) -> bool:
    """Whether *value*, after an option such as `--password`, is a literal and not a word."""
    varied = bool(_DIGIT_RUN.search(value)) or not _SYMBOLS.isdisjoint(value)
    return (
        (varied or len(_CASE_CHANGE.findall(value)) >= _MIN_CASE_CHANGES)
        and any(c.isalpha() for c in value)
        and is_url_password(value)
        and not _NO_SECRET.match(value)
    )


def is_password(value: str) -> bool:
    """Whether *value* is a literal that a person or a program would use as a password."""
    if " " in value:
        return is_passphrase(value)
    if not _may_be_secret(value):
        return False
    letters = any(c.isalpha() for c in value)
    if _DIGIT_RUN.search(value):
        return letters
    mixed = value != value.lower() and value != value.upper()
    return (mixed and not _SYMBOLS.isdisjoint(value)) or _is_scrambled(value)


def is_passphrase(value: str) -> bool:
    """Whether *value* is a password of several words, and not a sentence about passwords."""
    words = value.lower().replace("-", " ").split()
    if is_placeholder(value) or not _PROSE.isdisjoint(words):
        return False
    if _WORDS.match(value):
        return True
    return 1 < len(words) < 8 and bool(_DIGIT_RUN.search(value)) and not _SYMBOLS.isdisjoint(value)


def is_key(value: str) -> bool:
    """Whether *value* is a generated token or key: numbered names (`int32_type`) are not."""
    if not _may_be_secret(value):
        return False
    runs = _DIGIT_RUN.findall(value)
    if not runs:
        return _is_scrambled(value)
    if not any(c.isalpha() for c in value):
        return False
    mixed = value != value.lower() and value != value.upper()
    return mixed or len(runs) > 1 or len(runs[0]) > 2


def is_scrambled(value: str) -> bool:
    """Whether *value* is random beyond doubt: its name is one that much else has, too."""
    if not (_may_be_secret(value) and is_key(value)) or _VERSIONED.search(value):
        return False
    if _HEX.fullmatch(value):
        return False  # of a cache key, a fingerprint, a commit
    digits = len(_DIGIT_RUN.findall(value))
    changes = len(_CASE_CHANGE.findall(value))
    if len(value) < 16:
        return digits > 0 and changes > 0 and not _SYMBOLS.isdisjoint(value)
    return digits + changes >= 5 and bool(digits) and (changes > 1 or digits > 4)


def is_aws_secret_key(value: str) -> bool:
    """Whether *value* is a secret key of AWS; some of their 40 characters have no digit."""
    if len(value) == 40 and len(_CASE_CHANGE.findall(value)) >= _MIN_CASE_CHANGES:
        return not _TOKEN_PLACEHOLDER.search(value)
    return is_key(value)


def is_basic_login(value: str) -> bool:
    """Whether *value* is base64 of ``user:password``, as in the file of Docker's logins."""
    from base64 import b64decode  # not for each hook

    try:
        user, colon, password = b64decode(value, validate=True).decode("ascii").partition(":")
    except ValueError:  # not base64, or not ASCII
        return False
    return bool(user and colon and password) and (user + password).isprintable()


def is_bare_literal(value: str) -> bool:
    """Whether *value*, unquoted, cannot be an expression of a programming language."""
    if not _DOTTED_NAME.match(value):
        return True
    return len(_DIGIT_RUN.findall(value)) >= 3 and "_" not in value and "." not in value


def is_name(value: str) -> bool:
    """Return whether *value*, unquoted, is the name of a type or a variable, not a literal."""
    lowered = value.lower()
    return "_" in value or any(word in lowered for word in (*_STAND_INS, *_TYPES))


def is_placeholder(value: str) -> bool:
    """Whether *value* stands for a secret without being one."""
    lowered = value.lower()
    if "xxx" in value or "XXX" in value or _TEMPLATE.search(value):
        return True
    return any(word in lowered for word in _PLACEHOLDERS)


# What an option or a file of logins has before the name that the value follows.
_OPTION_NAME = regex(
    r"(?:(?:\A|[\s\"'\[])--?[a-z][a-z-]{0,30}|\blogin\s{1,4}\S{1,64}\s{1,9}password"
    r"|\b(?:with|encrypted|set|new)\s{1,4}password|\bmysqladmin\b[^\n|;&]{0,100}\spassword)\Z",
    re.IGNORECASE,
)
_ATTACHED = regex(r"\b(?:(?:mysql|mariadb)\w{0,8}|7za?|sshpass)\b[^\n|;&]{0,150}-p\Z")
_DETACHED = regex(
    r"\b(?:(?:sshpass|login|mongo\w{0,8}|rdesktop|mysql\w{0,8}|vncdotool)\b[^\n|;&]{0,150}-p"
    r"|(?:redis-cli|auth)\b[^\n|;&]{0,150}-a"
    r"|ldap\w{1,8}\b[^\n|;&]{0,150}-w"
    r"|(?:un)?zip\b[^\n|;&]{0,150}-P|(?:sqlcmd|bcp|ipmitool|mosquitto_\w{3})\b[^\n|;&]{0,150}-P)\Z"
)
_WITH_LOGIN = regex(r"\bcurl\b|\bhttp", re.IGNORECASE)
_COMMAND_END = regex(r"[|;&]|(?<!\\)\n")


def _text_before(match: re.Match[str], most: int) -> str:
    return match.string[max(0, match.start() - most) : match.start()]


def follows_option(match: re.Match[str]) -> bool:
    """Whether the secret of *match* follows an option, or a login and a password."""
    return is_option_value(match["secret"]) and bool(_OPTION_NAME.search(_text_before(match, 120)))


def follows_command_option(match: re.Match[str]) -> bool:
    """Whether it follows the option of a command that takes a password."""
    before = _text_before(match, 200)
    known = _DETACHED.search(before) or (not match["blank"] and _ATTACHED.search(before))
    return bool(known) and is_option_value(match["secret"])


def is_login_of_command(match: re.Match[str]) -> bool:
    """Whether it is the login that a command such as curl is given."""
    if not is_option_value(match[str(match.lastgroup)]):
        return False
    before = _text_before(match, 300)
    start = max((end.end() for end in _COMMAND_END.finditer(before)), default=0)
    return bool(_WITH_LOGIN.search(before, start))


def is_authorization(match: re.Match[str]) -> bool:
    """Whether it is a credential after a scheme, or without one a long key."""
    value = match["secret"]
    is_long = len(value) >= 20 and sum(map(str.isdigit, value)) > 2
    return is_credential(value) and (bool(match["scheme"]) or is_long)


def is_cookie(match: re.Match[str]) -> bool:
    """Whether any value of a cookie is a key."""
    values = (part.partition("=")[2] for part in match["secret"].split(";"))
    return any(is_key(value.strip()) for value in values)


def is_url_secret(match: re.Match[str]) -> bool:
    """Whether it is the password of a URL, or a key instead of a user."""
    if match.lastgroup == "user":
        return is_random(match["user"].partition(":")[0])
    return is_url_password(match["secret"])


def _may_be_secret(value: str) -> bool:
    return (
        len(value) >= _MIN_LENGTH
        and len(set(value)) >= _MIN_DISTINCT
        and not is_placeholder(value)
        and not _NO_SECRET.match(value)
    )


def _is_scrambled(value: str) -> bool:
    return len(value) >= 20 and len(_CASE_CHANGE.findall(value)) >= _MIN_CASE_CHANGES * 2
