"""The kinds of secrets: hints that make the search fast, and the rule that each leads to.

A hint begins with a character or word that texts are searched for fast; `secret_rules.toml` has
tokens with a known prefix, taken from gitleaks. To add a token with a prefix, add it to `_TOKENS`;
anything else needs a hint and a rule of the same name.
"""

import os
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from types import MappingProxyType

from msgspec import Struct

from contextgraph.text.strings import compiled, regex

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
    r"|(?:file|env|fd):\S*\Z"  # where programs such as openssl read it
    r"|[\w./-]+\.(?:[jt]sx?|json|py|txt|pem|key|crt|ya?ml|toml|cfg|ini|md|html?"
    r"|png|jpe?g|gif|svg|gz|zip|tar|sql|log|csv|whl)\Z"
)
_DOTTED_NAME = regex(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\Z")
_HEX_DIGITS = regex(r"[0-9a-fA-F-]+")
# Parts joined by separators, as in the key of a cache or a file name.
_PART = r"(?>[A-Za-z]++(?![0-9])|v?[0-9]++(?![a-z])|[0-9a-f]{7,64}+)"
_VERSIONED = regex(rf"^{_PART}(?:[_:./-]{_PART})+$")
_DIGIT_RUN = regex(r"[0-9]+")
_CASE_CHANGE = regex(r"[a-z](?=[A-Z])|[A-Z](?=[a-z])")
_KIND_CHANGE = regex(r"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|[0-9](?=[A-Za-z])")
_LONG_PART = regex(r"[A-Za-z0-9]{20,}")
_STAND_INS = ("pass", "secret", "token", "basic", "user", "postgres", "first.last")
_TYPES = ("int", "float", "string", "array", "bytes", "buffer", "bool", "list", "dict", "option")
# As Apple and Google make them for one program.
_APP_PASSWORD = regex(r"[a-z]{4}(?:-[a-z]{4}){3}\Z")
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
    """Return True if *value* varies like a generated key (for tokens with a known prefix)."""
    value = value[:200]
    if len(set(value)) < 8 or _TOKEN_PLACEHOLDER.search(value) or _TEMPLATE.search(value):
        return False
    return bool(_DIGIT_RUN.search(value)) or len(_CASE_CHANGE.findall(value)) > 4


def is_generated(value: str) -> bool:
    """Return whether *value*, after a prefix such as `acme_live_`, is as random as a token.

    In names of code and files letters and digits alternate half as often; digests are hexadecimal.
    """
    return is_random(value) and any(map(_is_generated, _LONG_PART.findall(value)))


def _is_generated(part: str) -> bool:
    if _HEX_DIGITS.fullmatch(part.lower()):
        return False
    changes = len(_KIND_CHANGE.findall(part)) / len(part)
    if part == part.lower() or part == part.upper():
        return len(part) >= 40 and changes > 0.3
    return len(_DIGIT_RUN.findall(part)) > 2 and changes > 0.45


def is_credential(value: str) -> bool:
    """Return True if *value*, after an authorization scheme, is neither a word nor a variable."""
    if is_placeholder(value) or len(set(value)) < _MIN_DISTINCT:
        return False
    return bool(_DIGIT_RUN.search(value)) or len(_CASE_CHANGE.findall(value)) > 2


def is_url_password(value: str) -> bool:
    """Return True if *value*, the password of a URL, is not a placeholder such as `api_secret`."""
    lowered = value.lower()
    return (
        len(value) >= 6
        and len(set(value)) >= 4
        and (bool(_DIGIT_RUN.search(value)) or not any(word in lowered for word in _STAND_INS))
        and not is_placeholder(value)
    )


def is_option_value(value: str) -> bool:
    """Return True if *value*, after an option such as `--password`, is a literal and not a word."""
    varied = bool(_DIGIT_RUN.search(value)) or not _SYMBOLS.isdisjoint(value)
    is_mixed = len(_CASE_CHANGE.findall(value)) >= _MIN_CASE_CHANGES
    return (
        (varied or is_mixed or _APP_PASSWORD.match(value) is not None)
        and any(c.isalpha() for c in value)
        and is_url_password(value)
        and not _NO_SECRET.match(value)
    )


def is_strong(value: str) -> bool:
    """Return True if *value* has the signs of a password that a sentence about one has not."""
    changes = len(_KIND_CHANGE.findall(value))
    varied = (
        changes > len(value) / 4
        or not _SYMBOLS.isdisjoint(value)
        or _CHOSEN.match(value) is not None
    )
    return varied and is_option_value(value) and is_key(value)


def is_password(value: str) -> bool:
    """Return True if *value* is a literal that a person or a program would use as a password."""
    if " " in value:
        return is_passphrase(value)
    if not _may_be_secret(value):
        return False
    letters = any(c.isalpha() for c in value)
    if _DIGIT_RUN.search(value):
        return letters
    mixed = value != value.lower() and value != value.upper()
    if _APP_PASSWORD.match(value):
        return True
    return (mixed and not _SYMBOLS.isdisjoint(value)) or _is_scrambled(value)


def is_passphrase(value: str) -> bool:
    """Return True if *value* is a password of several words, and not a sentence about passwords."""
    words = value.lower().replace("-", " ").split()
    if is_placeholder(value):
        return False
    prose = sum(word in _PROSE for word in words)
    # A phrase of twelve words of a wallet has some of them by chance (five in 2,048).
    if prose > (2 if len(words) >= 12 else 0):
        return False
    if _WORDS.match(value):
        return True
    return 1 < len(words) < 8 and bool(_DIGIT_RUN.search(value)) and not _SYMBOLS.isdisjoint(value)


def is_key(value: str) -> bool:
    """Return True if *value* is a generated token or key: numbered names (`int32_type`) are not."""
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
    """Return True if *value* is random beyond doubt: its name is one that much else has, too."""
    if not (_may_be_secret(value) and is_key(value)) or _VERSIONED.search(value):
        return False
    if _HEX_DIGITS.fullmatch(value):
        return False  # of a cache key, a fingerprint, a commit
    digits = len(_DIGIT_RUN.findall(value))
    changes = len(_CASE_CHANGE.findall(value))
    if len(value) < 16:
        return digits > 0 and changes > 0 and not _SYMBOLS.isdisjoint(value)
    if value.isalnum() and digits > 2:
        return changes_kind(value)
    return digits + changes >= 5 and bool(digits) and (changes > 1 or digits > 4)


def is_aws_secret_key(value: str) -> bool:
    """Return True if *value* is a secret key of AWS; some of their 40 characters have no digit."""
    if len(value) == 40 and len(_CASE_CHANGE.findall(value)) >= _MIN_CASE_CHANGES:
        return not _TOKEN_PLACEHOLDER.search(value)
    return is_key(value)


def is_basic_login(value: str) -> bool:
    """Return True if *value* is base64 of ``user:password``, as in the file of Docker's logins."""
    from base64 import b64decode  # not for each hook

    try:
        user, colon, password = b64decode(value, validate=True).decode("ascii").partition(":")
    except ValueError:  # not base64, or not ASCII
        return False
    return bool(user and colon and password) and (user + password).isprintable()


def is_bare_literal(value: str) -> bool:
    """Return True if *value*, unquoted, cannot be an expression of a programming language."""
    value = value.rstrip(",;")
    if not _DOTTED_NAME.match(value):
        return True
    last = value.rpartition(".")[2]
    is_mixed = last != last.lower() and last != last.upper() and "_" not in last
    if is_mixed and len(last) >= 10 and len(_KIND_CHANGE.findall(last)) > 0.4 * len(last):
        return bool(_DIGIT_RUN.search(last))
    return len(_DIGIT_RUN.findall(value)) >= 3 and "_" not in value and "." not in value


def is_name(value: str) -> bool:
    """Return whether *value*, unquoted, is the name of a type or a variable, not a literal."""
    lowered = value.lower()
    return "_" in value or any(word in lowered for word in (*_STAND_INS, *_TYPES))


def changes_kind(value: str) -> bool:
    """Return whether letters, capitals and digits alternate as in a key.

    In random base 62, base 36 and hexadecimal a character differs in kind from the one before in
    .62, .40 and .47 of cases; in words with a number or a date in fewer than .15.
    """
    return len(_KIND_CHANGE.findall(value)) > len(value) / 5


def is_generated_key(value: str) -> bool:
    """Return True for a long key in base 62: its name is `key`, which much else has, too."""
    mixed = value != value.lower() and value != value.upper()
    return value.isalnum() and len(value) >= 24 and mixed and is_scrambled(value)


_ODD_CASE = regex(r"[A-Z]{2,}|(?<=[A-Z])[a-z](?=[A-Z])")


def is_shuffled(value: str) -> bool:
    """Return True for letters in an order of cases that no name has: random without digits."""
    return len(value) >= 16 and len(_ODD_CASE.findall(value)) >= 3 and _may_be_secret(value)


def is_placeholder(value: str) -> bool:
    """Return True if *value* stands for a secret without being one."""
    lowered = value.lower()
    if "xxx" in value or "XXX" in value or _TEMPLATE.search(value):
        return True
    return any(word in lowered for word in _PLACEHOLDERS)


# What an option or a file of logins has before the name that the value follows.
_OPTION_NAME = regex(
    r"(?:(?:\A|[\s\"'\[])--?[a-z][a-z0-9.-]{0,30}|\blogin\s{1,4}\S{1,64}\s{1,9}password"
    r"|\bauthtoken|\b(?:re)?set-(?:[\w-]{1,20}-)?password|\b(?:mysqladmin|nmcli)\b[^\n|;&]{0,100}\spassword"
    r"|\bgh\s{1,4}secret\s{1,4}set\b[^\n|;&]{0,100}\s(?:-b|--body)"
    r"|[\w-](?:auth|api)-?key|\benable\ssecret|\busername\s\S{1,40}\s(?:\w{1,20}\s){0,2}(?:password|secret)"
    r"|insecure-password"
    r"|\b(?:set\s-\w{1,3}|setx|setenv|\w{2,12}_param)\s\w{1,40}|header\s(?:set\s)?[\w-]{1,40})\Z",
    re.IGNORECASE,
)
# SQL has its passwords in quotes.
_IN_SQL = regex(r"(?i)\b(?:with|encrypted|set|new|login|createdb|superuser)\s{1,4}password\Z")
# A line of a file of settings has the name, a blank, and the value: `password s3cr3t!9`.
_LINE_OF_SETTING = regex(
    r"(?i)(?:\A|\n)[ \t]{0,8}(?:[\w-]{1,20}[ ]){0,3}\w{0,20}(?:pass|passwd|password|secret)\Z"
)
_LINE_ENDS = regex(r"[\"']?[ \t]{0,9}(?:\r?\n|\\n|\Z)")
# As a person says it to an agent: `use the password … for staging`.
_SPOKEN = regex(
    r"(?i)\b(?:the|my|our|your|its|with|using|and|der|das|dem|mit)\s(?:\w{1,12}\s)?password\Z"
)
_ATTACHED = regex(r"\b(?:(?:mysql|mariadb)\w{0,8}|7z[ar]?|(?:un)?rar|sshpass)\b[^\n|;&]{0,150}-p\Z")
_DETACHED = regex(
    r"\b(?:(?:sshpass|login|cqlsh|mongo\w{0,8}|rdesktop|mysql\w{0,8}|vncdotool)\b[^\n|;&]{0,150}-p"
    r"|(?:nuget|openssl)\b[^\n|;&]{0,150}-k|(?:redis-cli|auth)\b[^\n|;&]{0,150}-a"
    r"|(?:ldap\w{1,8}|security)\b[^\n|;&]{0,150}-[wp]|ssh-keygen\b[^\n|;&]{0,150}-N"
    r"|(?:codecov|conda|doctl|vercel|upload|publish)\b[^\n|;&]{0,150}-t"
    r"|(?:un)?zip\b[^\n|;&]{0,150}-P|(?:sqlcmd|bcp|ipmitool|mosquitto_\w{3})\b[^\n|;&]{0,150}-P)\Z"
)
# Of any program: a name, then the option that most take a password with.
_AFTER_USER = regex(r"\s-[uUnlaj] ?[^\s\"'-][^\s\"']{0,60} -[pP]\Z")
# A program that reads a secret from its input.
_READER = regex(
    r"(?:\bsudo\b[^\n|;&]{0,60} -\w{0,4}S|stdin|\bchpasswd|passphrase-fd|with-token)\b"
    r"[^\n|;&]{0,80}<<<\Z"
)
_WITH_LOGIN = regex(r"\bcurl\b|\bhttp|\s-jar\s", re.IGNORECASE)
_COMMAND_END = regex(r"[|;&]|(?<!\\)\n")


def _last(match: re.Match[str]) -> str:
    """Return the value that *match* found, in quotes or without."""
    return match[str(match.lastgroup)]


def _text_before(match: re.Match[str], most: int) -> str:
    return match.string[max(0, match.start() - most) : match.start()]


def follows_option(match: re.Match[str]) -> bool:
    """Return True if the secret of *match* follows an option, or a login and a password."""
    before = _text_before(match, 120)
    if _LINE_OF_SETTING.search(before) and _LINE_ENDS.match(match.string, match.end()):
        return is_strong(_last(match))
    if _IN_SQL.search(before) and match.lastgroup == "inside":
        return is_option_value(_last(match))
    if _SPOKEN.search(before):
        return is_strong(_last(match))
    if before.endswith((" token", "\ntoken")):
        return len(_last(match)) >= 32 and is_key(_last(match))
    return is_option_value(_last(match)) and bool(_OPTION_NAME.search(before))


def follows_command_option(match: re.Match[str]) -> bool:
    """Return True if it follows the option of a command that takes a password."""
    before = _text_before(match, 200)
    known = _DETACHED.search(before) or (not match["blank"] and _ATTACHED.search(before))
    if known:
        return is_option_value(_last(match))
    return bool(_AFTER_USER.search(before)) and is_strong(_last(match))


def is_login_of_command(match: re.Match[str]) -> bool:
    """Return True if it is the login that a command such as curl is given."""
    if not is_option_value(match[str(match.lastgroup)]):
        return False
    before = _text_before(match, 300)
    start = max((end.end() for end in _COMMAND_END.finditer(before)), default=0)
    return bool(_WITH_LOGIN.search(before, start)) or is_strong(match[str(match.lastgroup)])


def is_authorization(match: re.Match[str]) -> bool:
    """Return True if it is a credential after a scheme, or without one a long key."""
    value = match["secret"]
    is_long = len(value) >= 20 and sum(map(str.isdigit, value)) > 2
    return is_credential(value) and (bool(match["scheme"]) or is_long)


def is_cookie(match: re.Match[str]) -> bool:
    """Return True if any value of a cookie is a key."""
    values = (part.partition("=")[2] for part in match["secret"].split(";"))
    return any(is_key(value.strip()) for value in values)


def is_url_secret(match: re.Match[str]) -> bool:
    """Return True if it is the password of a URL, or a key instead of a user."""
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


class Hint(Struct, frozen=True):
    """Where a secret may be: *search* is worth its time only where *first* is in the text."""

    first: str
    pattern: Callable[[], str]

    @property
    def search(self) -> Callable[[str, int], re.Match[str] | None]:
        """Searches a text from a position on; compiled when it is first needed."""
        return _searches(self.pattern)


class Rule(Struct, frozen=True):
    """One kind of secret: *pattern* applies at *start* of a hint; its last group is the secret."""

    kind: str
    pattern: str
    start: Callable[[re.Match[str]], int]
    accepts: Callable[[re.Match[str]], bool]

    def span(self, text: str, hit: re.Match[str]) -> tuple[int, int] | None:
        """Where the secret of *text* is that *hit* led to; None where there is none."""
        match = compiled(self.pattern, re.ASCII).match(text, self.start(hit))
        return match.span(str(match.lastgroup)) if match and self.accepts(match) else None


class Token(Struct, frozen=True):
    """A provider's token: *pattern* has one of *prefixes*, *lead* characters after its beginning.

    Prefixes are in lower case and end in a separator.
    """

    kind: str
    prefixes: tuple[str, ...]
    pattern: str
    lead: int = 0


_TOKENS = (
    Token("github-token", ("ghp_", "gho_", "ghs_", "ghu_", "ghr_"), "gh[posur]_[A-Za-z0-9]{30,}+"),
    Token("github-token", ("github_pat_",), "github_pat_[A-Za-z0-9_]{30,}+"),
    Token("gitlab-token", ("glpat-",), r"glpat-[\w-]{20,}+(?:\.[0-9a-z]{2,3}\.?[0-9a-z]{7,9})?"),
    Token("1password-token", ("ops_",), r"ops_eyJ[\w-]{100,}+"),
    Token("anthropic-key", ("sk-ant-",), r"sk-ant-[\w-]{20,}+"),
    Token(
        "openai-key",
        ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-"),
        r"sk-(?:proj|svcacct|admin|or-v1)-[\w-]{20,}+",
    ),
    Token("openai-key", ("sk-",), "sk-[A-Za-z0-9]{20,}+(?![A-Za-z0-9])"),
    Token(
        "stripe-key",
        tuple(f"{kind}_{mode}_" for kind in ("sk", "rk") for mode in ("live", "test", "prod")),
        "[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}+",
    ),
    Token("stripe-webhook-secret", ("whsec_",), "whsec_[A-Za-z0-9+/=]{24,}+"),
    Token("slack-token", tuple(f"xox{c}-" for c in "abceoprs"), "xox[a-z]-[A-Za-z0-9-]{10,}+"),
    Token("slack-app-token", ("xapp-",), "xapp-[A-Za-z0-9-]{16,}+"),
    Token("npm-token", ("npm_",), "npm_[A-Za-z0-9]{36}+(?![A-Za-z0-9])"),
    Token("pypi-token", ("pypi-",), r"pypi-AgEI[\w-]{20,}+"),
    Token("huggingface-token", ("hf_",), "hf_[A-Za-z0-9]{30,}+"),
    Token("google-oauth-secret", ("gocspx-",), r"GOCSPX-[\w-]{24,}+"),
    Token("google-oauth-token", ("ya29.",), r"ya29\.[\w-]{20,}+"),
    Token("flyio-access-token", ("fm1a_", "fm1r_"), r"fm1[ar]_[A-Za-z0-9+/]{100,}+={0,3}"),
    Token("docker-token", ("dckr_pat_", "dckr_oat_"), r"dckr_[po]at_[\w-]{20,}+"),
    Token("sendgrid-key", ("sg.",), r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
    Token("vault-token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[\w-]{20,}+"),
    Token("sentry-token", ("sntrys_",), "sntrys_[A-Za-z0-9+/=_]{40,}+"),
    Token("groq-key", ("gsk_",), "gsk_[A-Za-z0-9]{40,}+"),
    Token("xai-key", ("xai-",), "xai-[A-Za-z0-9]{40,}+"),
    Token("figma-token", ("figd_", "figo_", "figu_"), r"fig[dou]_[\w-]{20,}+"),
    Token("supabase-token", ("sbp_", "sb_secret_"), r"sb(?:p|_secret)_[\w-]{20,}+"),
    Token("new-relic-key", ("nrak-", "nrjs-", "nrii-", "nrra-"), r"NR(?:AK|JS|II|RA)-[\w-]{16,}+"),
    Token("tailscale-key", ("tskey-auth-", "tskey-api-", "tskey-client-"), r"tskey-[\w-]{16,}+"),
    Token("replicate-token", ("r8_",), "r8_[A-Za-z0-9]{30,}+"),
    Token("render-key", ("rnd_",), "rnd_[A-Za-z0-9]{20,}+"),
    Token("netlify-token", ("nfp_", "nfo_", "nfc_"), "nf[poc]_[A-Za-z0-9]{30,}+"),
    Token("contentful-token", ("cfpat-",), r"CFPAT-[\w-]{30,}+"),
    Token("langchain-key", ("lsv2_pt_", "lsv2_sk_"), r"lsv2_(?:pt|sk)_[\w]{20,}+"),
    Token("tavily-key", ("tvly-",), r"tvly-[\w-]{20,}+"),
    Token("pinecone-key", ("pcsk_",), r"pcsk_[\w]{30,}+"),
    Token("nvidia-key", ("nvapi-",), r"nvapi-[\w-]{30,}+"),
    Token("cerebras-key", ("csk-",), "csk-[A-Za-z0-9]{30,}+"),
    Token("mailgun-key", ("key-",), "key-[0-9a-f]{32}"),
    Token("resend-key", ("re_",), r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{16,}+"),
    Token("dropbox-token", ("sl.", "sl.u."), r"sl\.(?:u\.)?[\w-]{60,}+"),
    Token("paystack-key", ("flwseck-",), r"FLWSECK-[\w-]{20,}+"),
    Token("notion-token", ("secret_",), "secret_[A-Za-z0-9]{43}"),
    Token("cloudflare-token", ("v1.0-",), r"v1\.0-[\w-]{40,}+"),
    Token("mapbox-token", ("sk.",), r"sk\.eyJ[\w-]{40,}+\.[\w-]{16,}+"),
    Token("buildkite-token", ("bkua_", "bkat_"), "bk[ua][at]_[A-Za-z0-9]{30,}+"),
    Token("circleci-token", ("ccipat_",), r"CCIPAT_[\w]{30,}+"),
    Token("sonar-token", ("squ_", "sqp_", "sqa_"), "sq[upa]_[0-9a-f]{40}"),
    Token("deno-token", ("ddp_", "ddo_"), "dd[po]_[A-Za-z0-9]{30,}+"),
    Token("elevenlabs-key", ("sk_",), "sk_[0-9a-f]{40,}+(?![A-Za-z0-9])"),
    Token("huggingface-token", ("api_org_",), "api_org_[A-Za-z0-9]{30,}+"),
    Token("hubspot-token", ("pat-na1-", "pat-eu1-"), "pat-(?:na|eu)1-[0-9a-f-]{36}"),
    Token("notion-token", ("ntn_",), "ntn_[A-Za-z0-9]{40,}+"),
    Token(
        "launchdarkly-key",
        ("sdk-", "mob-"),
        "(?:sdk|mob)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    ),
    Token("clickup-token", ("pk_",), "pk_[0-9]{6,10}_[A-Z0-9]{32}"),
    Token("aws-mws-key", ("mws.",), r"amzn\.mws\.[0-9a-f-]{36}", lead=5),
    Token("heroku-key", ("hrku-",), r"HRKU-[\w-]{30,}+"),
    Token("langfuse-key", ("sk-lf-",), "sk-lf-[0-9a-f-]{36}"),
    Token("square-secret", ("sq0csp-", "sq0atp-"), r"sq0(?:cs|at)p-[\w-]{22,}+"),
    Token("voyage-key", ("pa-",), r"pa-[\w-]{40,48}"),
    Token("modal-token", ("ak-", "as-"), "a[ks]-[A-Za-z0-9]{22}"),
    Token(
        "service-token",
        ("st.", "pat."),
        r"(?:st|pat)\.[A-Za-z0-9]{18,40}(?:\.[A-Za-z0-9]{16,64}){1,3}",
    ),
    Token(
        "vendor-key",
        ("persona_production_", "persona_sandbox_", "ovsxp_"),
        r"(?:persona_(?:production|sandbox)|ovsxp)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    ),
    Token("vendor-key", ("live_",), "(?<!pk_)live_[A-Za-z0-9]{30,}+(?![A-Za-z0-9_-])"),
    Token("mandrill-key", ("md-",), r"md-[\w-]{22}"),
    Token("sourcegraph-token", ("sgp_",), "sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    Token("azure-client-secret", ("q~",), r"[\w.~]{3}[0-9]Q~[\w.~-]{31,34}", lead=4),
    Token("1password-token", ("ops_eyj",), r"ops_eyJ[\w-]{100,}+"),
    Token("cursor-key", ("key_",), "key_[0-9a-f]{64}"),
)

# Prefixes that vendors document for what is secret, before at least so many letters and digits.
_VENDORS = (
    "fc- e2b_ fw_ hb_ bb_live_ dtn_ rpa_ jina_ tgp_v1_ wandb_v1_ m0- ck- apify_api_ exa_ napi_"
    " sk-helicone- xau_ vcp_ vca_ depot_ snyk_uat. jsrp_ packagist_ dbtc_ dbtu_ pnb_ phx_ xaat-"
    " xapt- hcaik_ hcbik_ waka_ lin_oauth_ cal_live_ cal_test_ signkey-prod- signkey-test- tr_prod_"
    " tr_dev_ nyk_v0_ pdl_live_apikey_ pdl_sdbx_apikey_ polar_oat_ polar_pat_ rzp_live_ rzp_test_"
    " xsmtpsib- secret-live- secret-test- dp.st. dp.ct. dp.sa. dp.scim. dp.audit. vk1.a. essu_ ser."
    " bpk- ste- gsk- mfa. cs_ tfp_ shpua_ kgat_ atlasv1. sk_car_ aio_ avns_ sk_sbox_ ccdb1_"
    " dvc_server_ rootly_ tss_ vtwn_ zpka_ ramp_tok_ samsara_api_ pina_ tmprl_ at_ cfut_ cfat_"
    " s-s4t2ud- mlsn. ucat_ ptr_ sktsec_ nbp_ gitpod_pat_ os_v2_app_ sec-c- tly- bxt_ mdb_sa_sk_"
    " standard_ cbkey_ pylf_v1_us_ pylf_v1_eu_ tpuf_ luma- sk-ws- nf- hbp_ cu_ phs_ ory_pat_"
    " ory_at_ ory_rt_ syt_ sess- pmat- bbdc- cciprj_ dt0s01. dt0s16. y0_ t1. lip_live_ lip_test_"
    " vck_ vci_ secret_admin_ nk- rc_ esecret_ scp-live- vercel_blob_rw_ iad1_ dnkey-"
    " lin_wh_ access-production- access-sandbox- access-development- glrtr-"
    " glwt- dkea_ unkey_ coze_pat_ cplt_ kinde_ frp_ xoxe.xoxp- xoxe.xoxb- tok_live_"
    " secret-token:mercury_production_ nvcf- sk_prod_ sk_dev_ coze_"
).split()
_VENDOR_TOKENS = tuple(
    Token(
        "vendor-key",
        (prefix,),
        rf"(?i:{re.escape(prefix)})[A-Za-z0-9_.-]{{16,}}+[\w.+/=-]{{0,400}}+",
    )
    for prefix in _VENDORS
)

_KEY_KINDS = (
    "api access private account signing encryption auth shared master"
    " application app license service deploy admin write webhook subscription validation"
    " decryption account storage".split()
)
# Of one separator after the other, as most keys have none of these before them.
_KEY_NAMES = "|".join(
    f"(?<={separator}key)(?:{'|'.join(f'(?<={kind}{separator}key)' for kind in _KEY_KINDS)})"
    for separator in ("_", "-", r"\ ", "")
)
# Names in prose and in expressions are many; a match object for each would cost the most.
_ASSIGNED = (
    r"""(?=[\w"'`\]*\\.-]{0,30}+[ \t]{0,20}+"""
    r"""(?:[=:：>(,]|\?[?=]|\n?[ \t]{0,20}value|</|["'](?=[^\s"']{8})"""
    r"""|(?:for\ [\w.-]{1,30}\ )?(?:is|was|lautet|ist|est|es|as)[ :]|encoding=|\|"""
    r"""|\{\s{0,60}default))"""
)
# What follows a prefix: enough of random characters.
_TAIL = r"(?=[a-z0-9_-][a-z0-9_+/=.-]{15})(?:(?=[a-z_+/=.-]{0,40}+[0-9])|(?=[a-z]{16}))"

# After an option or in a file of logins the value follows a blank.
_BLANK = """(?=[ ]|["'],[ ])"""

# A hint is named as its rule; digits at the end distinguish hints of one rule.
# Of the text as it is.
_EXACT = {
    "A": (
        r"A(?=[A-Z2-7z])(?:(?P<aws_access_key>(?:(?:[KS]I|BI)A|CCA)[A-Z0-9]{16})"
        r"|(?P<atlassian>T[AC]TT3)|(?P<bitbucket>TBB(?=[A-Za-z0-9]{28}))|(?P<firebase>PA(?<=:APA)(?=91b))|(?P<twilio_pair>C(?=[0-9a-f]{32}))|(?P<tencent>KID[A-Za-z0-9]{32})|(?P<alibaba>I(?<=LTAI))"
        r"|(?P<facebook>A(?<=EAA)(?=[A-Za-z0-9]{80}))|(?P<easypost>[KT](?<=EZA.))|(?P<jfrog>KCp(?=[A-Za-z0-9]{60}))"
        r"|(?P<twitter>A{18,21}(?=[A-Za-z0-9]{40}))|(?P<yandex>QVN(?=[\w-]{36}))|(?P<azure1>z(?:Ca|Fu|Se)(?=[A-Z])|St(?<=\+ASt)|CDb|ZDO(?=[A-Za-z0-9]{4}(?![A-Za-z0-9])))|(?P<bedrock>BSK(?=[A-Za-z0-9+/]{100}))|(?P<google>Iza)|(?P<telegram>A(?<=[0-9]:AA))|(?P<nkey>(?<=SUA)(?=[A-Z2-7]{54}))|(?P<square>AA(?<=EAAA)))"
    ),
    "J": r"J(?:(?P<docker_logins>(?<=eyJ)hdXRo)|(?P<jwt>(?<=eyJ))|(?P<azure>QQJ9))",
}
# Of the text in lower case. Names share hints, as each search costs time.
_FOLDED = {
    "k": rf"""k(?:(?=[0-9a-fist])(?:
        (?P<backblaze>00[0-9](?=[a-z0-9+/]{{27}}))
        | init(?P<piped3>(?<=\|\ kinit))
        | s(?P<piped4>(?<=luks)(?:open|format|addkey))
        | ty(?P<jwk>"(?<="kty"))
        | ey(?P<kaggle>"(?<="key")(?=:[ ]?"[0-9a-f]{{32}}"))
        | (?P<telnyx>ey0(?=[a-f0-9]{{20,40}}_))
        | e[ny](?:
            (?P<token>(?<=token){_ASSIGNED})
            | (?P<values1>(?<=token)(?=[^()\n]{{0,100}}\)\s{{0,9}}values))
            | (?P<option>(?<=[-h\ _]token){_BLANK})
            | (?P<private_key>(?:(?<=private\ key)|(?<=static\ key))(?:\ block|\ v1)?-----)
            | (?P<key>(?:{_KEY_NAMES}){_ASSIGNED})
            | (?P<key_data>(?<=client-key)-data)
            | (?P<option1>(?<=[-i_]key){_BLANK})
            | (?P<suffix2>(?<=[a-z]-key)(?=:\ ))
            | (?P<key1>(?<=\ key)(?=\ is[\ :]))
            | (?P<bare_key>(?<=[\s"'({{]key)(?=["']?\s?[:=]))
        )
        | (?P<cookie>ie(?<=cookie)(?=["']?[ :=,]))
        | (?P<webhook>s(?<=hooks)(?=[./]))
        | (?P<webhook1>b2(?<=webhookb2)(?=/))
        | (?P<twilio>[0-9a-f]{{32}}(?<=sk.{{32}}))
        ) | (?<=sk)(?:(?P<password7>(?<=psk)(?:(?<![a-z]psk)|(?<=\\[nrt]psk)){_ASSIGNED})
        | (?P<positional14>(?<=:\ psk)(?=\ )))
    )""",
    "w": rf"""w(?:(?=[ado])(?:
        d(?:(?P<positional>(?<=htpasswd)(?=[^\n|;&]{{0,99}}\ -\w{{0,9}}b)
                (?:\ [^\s|;&<>]{{1,99}}+){{1,6}}(?=\ [^\s|;&<>-]))
            |(?P<piped>(?<=chpasswd)))
        |
        (?P<values>ord(?<=password)(?=[^()\n]{{0,100}}\)\s{{0,9}}values))
        | (?P<password>(?:ord(?<=assword)
            |d(?:(?<=asswd)|(?<=pwd)(?:(?<![a-z0-9]pwd)|(?<=\\[nrt]pwd))|(?<=userpwd))|ort(?<=(?:ass|enn)wort)
            |achtwoord){_ASSIGNED})
        | (?P<option2>(?:ord(?<=password)|d(?<=passwd)){_BLANK})
        ) | (?<=pw)(?:(?P<suffix>(?<=[a-z]pw){_ASSIGNED})
        | (?P<password9>(?<=pw)(?<![\w.-]pw)(?=[ ]?[:=]))
        | (?P<positional15>(?<=\ -pw)(?=\ )|(?<=bindpw)(?=\ )))
    )""",
    "se": rf"""se(?:
        cret(?:(?P<aws_secret_key>_?access_?key)|(?P<secret>{_ASSIGNED})
            |(?P<piped2>(?=\ put\ ))|(?P<option3>(?:-string)?{_BLANK}))
        | (?P<password1>n(?:a(?<=contrasena)|ya(?<=contrasenya)){_ASSIGNED})
        | (?P<password3>nha{_ASSIGNED})
        | (?P<session>ss(?:ion)?id(?:(?<=phpsessid)|(?<=jsessionid)|(?<=net_sessionid))=)
        | (?P<positional7>curestring(?:\ {{1,4}}-string)?(?=\ ))
        | t(?P<positional9>(?<=alias\ set)(?:\ [^\s]{{1,200}}){{3}}(?=\ ))
        | t(?P<positional8>(?<=config\ set|figure\ set|secret\ set|ecrets\ set)\ [\w.:/@-]{{0,60}}
            (?:key|token|secret|password|passwd|pass|auth)\w{{0,10}}(?=\ ))
        | (?<=[as]se)(?:
            (?P<password2>(?<=passphrase){_ASSIGNED})
            | (?P<password8>(?:(?<=pass_phrase)|(?<=(?:seed|very|cret)[_\ -]phrase)){_ASSIGNED})
            | (?P<option4>(?<=passphrase){_BLANK})
            | (?P<password4>(?<=mot.de.passe){_ASSIGNED})
        )
    )""",
    "z": r"zation(?P<authorization>(?<=uthorization))",
    "@": r"@(?:(?P<dsn>(?<=[^\s/]@)(?=(?:tcp|unix)\(|//[a-z0-9]))"
    r"|(?P<url>(?<=[^\s/]@)(?=[a-z0-9\[])))",
    "mnemonic": rf"mnemonic(?P<password6>{_ASSIGNED})",
    "p": rf"""pa(?:ss(?:
        (?P<pass>:(?<=[ ]pass:)(?=\S))
        | (?P<suffix>(?<!\bbypass)(?<!compass)(?<!surpass)(?<!trespass){_ASSIGNED})
        | (?P<positional6>(?<=requirepass)(?=\ ))
        | (?P<option5>(?<=[a-z\n-]pass){_BLANK})
        ) | rola(?P<password5>{_ASSIGNED})
    )""",
    "=": r"""=(?<=[eg]=)(?:
        (?P<signature>(?<=[?&;]sig=)|(?<=signature=))
        | (?P<code>(?<=[?&]code=))
    )""",
    "bearer": rf"bearer(?:(?P<option6>(?<=-bearer){_BLANK})|(?P<bearer>(?<=[:=]\ bearer)(?=\ )))",
    "c": r"""c(?:
        red(?:s(?P<creds>(?<=-creds)(?=[ =]))|entials?(?P<pair>\())
        | on(?:
            nect(?:ion)?(?P<third>\()
            | fig(?P<positional18>(?:\ set|\ --\w+){0,2}\ [\w.:/@-]{0,60}
                (?:token|password|secret|passwd|api[_-]?key)[\w.:/@-]{0,40}(?=\ ))
        )
        | lient\((?P<argument>(?=["'][a-z0-9]{30}))
        | mvmdgtu(?P<jfrog_token>(?=[a-z0-9]{40}))
    )""",
    "1": r"""1(?:
        /(?:(?P<refresh>/0(?=[\w-]{40}))|(?P<asana1>(?=[0-9]{13,19}:[0-9a-f]{32})))
        | (?<=c1)(?P<nostr>(?<=nsec1)(?=[a-z0-9]{40}))
        | (?<=21)(?P<wallet>(?<=[xyz]prv9s21)(?=[a-z0-9]{40}))
    )""",
    "2": r"""2(?:
        /(?P<asana>(?=[0-9]{13,19}/[0-9]{13,19}:[0-9a-f]{32}))
        | (?P<pgpass>:(?<=5432:))
    )""",
    "dapi": r"dapi(?P<databricks>(?=[0-9a-f]{32}))",
    "*": r"\*(?=:\*:):\*(?P<pgpass1>:)",
    # What comes after a name: of a user, of a share, of a file.
    "identified by": r"identified\ by(?P<positional1>(?:\ values)?(?=\ ))",
    "<": r"<(?=<)<<(?P<here>)",
    "net us": r"net\ us(?P<positional4>er\ [^\s\"'/]{1,64}(?=\ )|e(?:\ [a-z]:)?\ \S{1,99}(?=\ ))",
    "smbclient": r"smbclient(?P<positional5>\ [^\s-]{1,99}(?=\ ))",
    # Two arguments, a name and its password.
    "auth": rf"""auth(?:
        (?P<docker>"(?<="auth")(?=[ ]{{0,4}}:))
        | (?P<suffix1>(?:(?<=\.auth)|(?<=aspxauth))(?=[ ]{{0,4}}[:=]))
        | (?P<positional19>(?<=>\ auth)(?=\ ))
        | (?P<pair1>(?:=|:\ |\ =\ )?[(\[])
        | (?P<positional16>\ (?:plain|login)(?=\ ))
        | (?P<otp>://(?<=otpauth://))
        | (?P<option7>(?<=--auth){_BLANK})
        | (?P<positional20>(?<=\ auth)(?=\ [a-z0-9_-]{{20}}))
    )""",
    "login": r"login(?:(?P<pair2>\()|(?P<positional10>(?<=\ login)(?=\ [a-z0-9_-]{20}))|"
    r"(?P<token1>(?<=sonar\.login)(?==)))",
    # Passwords that are hashed.
    "$": (
        r"\$(?:production(?P<braintree>\$(?<=access_token\$production\$))"
        r"|(?<=sha256\$)[0-9]{4,7}(?P<crypt2>\$)"
        r"|(?:[156y]|2[abxy]|apr1|argon2(?:id|i|d))(?P<crypt>\$))"
    ),
    "{ssha": r"\{ssha[0-9]{0,3}(?P<crypt1>\})",
    "q": (
        r"q(?:(?<=sq)lplus(?P<login_of_database>(?:\ -\w{1,9}(?:\ \d)?)?\ [\"']?\w{1,64}/)"
        r"|(?P<salesforce>(?<=00d.{12}!aq)))"
    ),
    "\t/\t": r"\t/(?P<jar>(?<=\ttrue\t/)|(?<=\tfalse\t/))",
}
_RARE = frozenset(
    ("mnemonic", "dapi", "identified by", "net us", "smbclient", "bearer", "auth", "login", "{ssha")
)
# Of texts with other characters than ASCII, in lower case.
_FOREIGN = (
    "contraseña пароль 密码 密碼 口令 パスワード 비밀번호 hasło lösenord şifre jelszó"
).split()
# Of commands: the options that take a login or a password.
_OPTIONS = r"""(?<=[\s"']-)(?:
    (?P<login>(?:[ua]|-(?:proxy-)?user|-?auth(?:-cred)?|-cert)
        (?=[ =]{0,2}["']?(?:[\w.@+{}\\-]{0,60}["']?:["']?\S{4}|[^\s:]{8,60}:[a-z]?["'\s])))
    | u[ ]["']?[\w.\\/-]{1,64}[%,](?P<percent>)
    | b(?P<cookie1>(?=[ ]["']?[\w.-]{1,40}=))
    | (?P<command_option>[pawknt](?=[ ]?["']?[^\s"'-]\S{3}))
)"""
# Of what a program reads from its input, or after the name of a user.
_INPUTS = r"(?P<piped1>s(?<=sudo\ -s)|stdin|fd(?<=passphrase-fd)|token(?<=with-token))"
_PUTTY = "(?P<putty>(?<=private-)(?:lines|mac):[ ])"
_USERS = (
    r"(?:user(?<=add_user)|password(?<=change_password)"
    r"|passphrase(?<=wpa_passphrase))(?P<positional2>\ [^\s\"']{1,64}(?=\ ))"
)
# Ends of names whose value is a secret where it is scrambled.
_SUFFIXES = rf"""(?:
    (?=[abchjlopsw])(?:a(?:uth|ppid)|bearer|c(?:redentials?|reds?|ookie|ipher|ertificate)|hmac|jwt
        |license|otp|p(?:at|wd?|epper|rivate)|s(?:alt|ession|eed)|webhook)
    |[a-z]{{0,2}}keys?
)(?P<suffix>{_ASSIGNED})"""
# A prefix of a provider that is not known, and what is random.
_MAILCHIMP = r"(?P<mailchimp>(?<=[0-9a-f]{32}-)us[0-9]{1,2}(?![a-z0-9]))"
_LOGIN_OF_TOOL = r"(?P<positional11>(?<=http-)basic\.[\w.-]{1,60}\ [^\s]{1,64}(?=\ ))"
_PREFIXED = r"(?P<prefixed>(?<=[a-z0-9].)(?=[a-z0-9_-]{30})(?=[a-z_-]{0,40}+[0-9]))"
_DISCORD = "|".join(rf"(?<=[mno][a-z0-9_-]{{{length}}}\.)" for length in range(23, 28))
_DISCORD = (
    rf"(?P<discord>(?=[a-z0-9_-]{{6}}\.[a-z0-9_-]{{27}})(?:{_DISCORD}))"
    r"|(?P<airtable>(?<=pat[a-z0-9]{14}\.)(?=[0-9a-f]{64}))"
)

# What has the key in its path, and what is given one last.
_AFTER_HOST = (
    r"(?<=[keaty]\.)(?:(?<=alchemy\.)com/v2/(?P<endpoint>)|(?<=infura\.)io/v3/(?P<endpoint4>)|(?<=make\.)com/(?P<endpoint1>)|(?<=quiknode\.)pro/(?P<endpoint2>)"
    r"|(?<=ifttt\.)com/trigger/[\w-]{1,60}/(?:json/)?with/key/(?P<endpoint3>)"
    r"|(?<=jwt\.)(?:sign|verify|encode|decode)(?P<last>\())"
)


@cache
def hints() -> tuple[tuple[Hint, ...], tuple[Hint, ...], tuple[Hint, ...]]:
    """Hints of the text as it is, of it in lower case, and of it where it is not ASCII."""
    exact = tuple(_hint(*item) for item in _EXACT.items())
    folded = tuple(_hint(*item) for item in _FOLDED.items())
    separated = (Hint(separator, partial(_separator_pattern, separator)) for separator in "_-.~")
    return exact, (*folded, *separated), tuple(map(_foreign, _FOREIGN))


def _hint(beginning: str, pattern: str) -> Hint:
    # A character is found ten times as fast as a word, for which `search` is faster, too; but a
    # rare word is looked for once.
    return Hint(beginning if beginning in _RARE else beginning[:1], lambda: pattern)


def _foreign(word: str) -> Hint:
    rare = next(character for character in word if not character.isascii())
    return Hint(rare, lambda: rf"{word}(?P<password>{_ASSIGNED})")


@cache
def _searches(pattern: Callable[[], str]) -> Callable[[str, int], re.Match[str] | None]:
    return re.compile(pattern(), re.VERBOSE).search


def _separator_pattern(separator: str) -> str:
    """Return the first characters of all tokens whose prefix ends in *separator*."""
    # Of the characters before a separator few end a prefix; then the prefixes that it may end.
    prefixes: dict[str, list[str]] = {}
    for prefix in tokens():
        if prefix[-1] == separator:
            prefixes.setdefault(prefix[-2:], []).append(f"(?<={re.escape(prefix)})")
    ends = "|".join(
        f"(?<={re.escape(end)})(?:{'|'.join(found)})" for end, found in prefixes.items()
    )
    before = "".join(re.escape(end[0]) for end in prefixes)
    pattern = rf"(?<=[{before}]{re.escape(separator)}){_TAIL}(?P<provider>{ends})"
    if separator == "-":
        pattern = (
            f"(?:{pattern}|{_OPTIONS}|{_INPUTS}|{_PUTTY}|{_MAILCHIMP}|{_LOGIN_OF_TOOL}|{_PREFIXED})"
        )
    if separator == "_":
        # The names first: of `DISK_KEY=…` the end of the first word is a prefix, too.
        pattern = f"(?:{_SUFFIXES}|{pattern}|{_USERS}|{_PREFIXED})"
    if separator == ".":
        pattern = f"(?:{pattern}|{_DISCORD}|{_AFTER_HOST})"
    return re.escape(separator) + pattern


@cache
def tokens() -> Mapping[str, tuple[Rule, ...]]:
    """Return the rules of providers' tokens by prefix, in lower case."""
    # A text without any separator needs none of this, and it takes longer than all the rest.
    import tomllib

    with open(f"{os.path.splitext(__file__)[0]}.toml", encoding="utf-8") as file:
        data = file.read()
    taken = (
        Token(row["kind"], tuple(row["prefixes"]), row["pattern"])
        for row in tomllib.loads(data)["rules"]
    )
    rules: dict[str, tuple[Rule, ...]] = {}
    for token in (*_TOKENS, *_VENDOR_TOKENS, *taken):
        for prefix in token.prefixes:
            rules[prefix] = (*rules.get(prefix, ()), _token_rule(token, prefix))
    return MappingProxyType(rules)


_LONGEST_PREFIX = 32


def rules_of(hit: re.Match[str]) -> tuple[Rule, ...]:
    """Return the rules that apply at *hit*, the more specific ones first."""
    name = str(hit.lastgroup)
    if name != "provider":
        name = name.rstrip("0123456789")
        return (RULES[name], *(RULES[other] for other in _BESIDE.get(name, ())))
    end = hit.start() + 1
    return _rules_of_ending(hit.string[max(0, end - _LONGEST_PREFIX) : end])


# What is looked for beside a secret of another kind.
_BESIDE = {"aws_access_key": ("aws_neighbour",)}


@lru_cache(4096)  # a text may hold one prefix a hundred thousand times
def _rules_of_ending(ending: str) -> tuple[Rule, ...]:
    ended = [prefix for prefix in tokens() if ending.endswith(prefix)]
    return tuple(rule for prefix in ended for rule in tokens()[prefix])


def _token_rule(token: Token, prefix: str) -> Rule:
    before = len(prefix) - 1 + token.lead
    accepts = _varies if token.kind == "vendor-key" else _random
    return Rule(token.kind, _whole(token.pattern), lambda hit: hit.start() - before, accepts)


def _whole(pattern: str) -> str:
    """*pattern* where no letter or digit touches its beginning, but one of an escaped line end."""
    # Bounded, as each of many prefixes in one long word would lead to a search of all of it.
    bounded = pattern.replace(",}+", ",2000}+")
    end = "" if pattern.endswith(",}+") else "(?![A-Za-z0-9])"
    return rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?P<secret>{bounded}){end}"


# The name may go on (`secret_access_key`, `token2`), be quoted, be a subscript, have a type.
_NAME_END = (
    r"(?i:(?>(?:[_.-]?(?:access|secret|key|token|value|hash|base)){0,3})s?+"
    r"(?>(?:[_ ]?[0-9]{1,2}+)?))"
    r"(?:\\{0,7}[\"'`]|\\{1,7}u002[27]|\*\*)?\]?"
)
_ANNOTATION = (
    r"(?:\s{0,3}:\s{0,3}(?:&(?:'[a-z]{1,10}\s)?)?[A-Za-z][\w.]{0,30}(?:\[\w{1,20}\])?(?=\s{0,3}=)"
    r"|\s[aA]s\s\w{1,20}(?=\s{0,3}=))?"
)
_SIGN = (
    r"(?P<sign>[ \t]{0,20}+(?:=>|:=|\?=|=(?!=)|:(?![:/])(?:\*\*)?|：)[ \t]{0,20}+)"
    # Of YAML: an anchor, a type, a text on lines of its own.
    r"(?>(?:&\w{1,20}[ ]|!!str[ ]|\|[-+]?\n[ \t]{1,20})?)"
)
_QUOTE = r"[bBrRuUNL@$]{0,2}(?:\\{0,7}[\"'`]|\\{1,7}u002[27])"
_QUOTE_END = r"(?=\\{0,7}[\"'`]|\\{1,7}u002[27]|\n|\Z)"
# What ends a value in a query (`&name=`) or a command (`&&`), and else is a part of it.
_AND = r"&(?!&|amp;|[\w.%-]{1,40}=|\s|\Z)"
_QUOTED = rf"{_QUOTE}(?P<quoted>[^\"'`\s\\<>]{{8,4096}}+){_QUOTE_END}"


def _unquoted(name: str, ends: str) -> str:
    """A value without quotes, of 8 to 4,096 characters, that none of *ends* is in."""
    # Blanks by their characters: a class such as `\s` within a set takes four times as long.
    one = rf"[^\"'` \t\n\r\f\v\\<>(){{}}\[\]&{ends}]"
    # In a long run of names, each of which a value may follow, all of it is passed over at each.
    return (
        rf"(?!{one}{{4097}})(?=(?:{one}|{_AND}){{8}})"
        rf"(?P<{name}>(?>(?:(?>{one}{{1,4096}})|{_AND}){{1,1024}}))"
    )


# All of a line of settings, which may have what would end an expression.
_LINE = _unquoted("line", "") + r"(?=[ \t]{0,9}(?:\r?\n|\\n|\Z))"
_BARE = _unquoted("bare", ",;|") + r"(?=[\s\"'&;\]}]|\\[nrt\"']|\Z)"
_PHRASE = (
    rf"{_QUOTE}(?P<phrase>[^\"'`\n\\<>]{{10,100}}+)(?=\\?[\"'`])"
    r"|(?P<words>[a-z]{3,12}(?>(?: [a-z]{3,12}){3,23}))(?=[ \t]*+(?:\\?[\"'\n]|\\n|\Z))"
)
# `<password>…</password>`, `key="Password" value="…"`, `setPassword("…")`, `("password", "…")`.
_MARKED_UP = (
    r"(?:(?:\sencoding=[^<>\s]{1,20})?>|</[\w-]{1,20}>\s{0,40}<[\w-]{1,20}>"
    r"|>\s{0,40}<\w{1,20}>)(?P<element>[^<>\s]{8,4096}+)(?=</)"
    r"|(?:,(?:Parameter)?|,?\s{1,40})\\?[\"']?[vV]alue\\?[\"']?\s?[=:]\s?\\?[\"']?(?P<attribute>[^\"'\s<>\\,}]{8,256}+)"
    r"(?=[\"'\\\s,}]|\Z)"
)
# As Groovy, nginx and others have it: `storePassword "…"`.
_SPACED = r"[ \t]{1,4}[\"'](?P<spaced>[^\"'`\s\\<>]{8,256}+)[\"']"
_ARGUMENT = rf"(?:\(|,)\s{{0,3}}{_QUOTE}(?P<argument>[^\"'`\s\\<>]{{8,256}}+){_QUOTE_END}"
# As a person writes it.
_SAID = (
    r"(?:(?:\sfor\s[\w.-]{1,30})?\s(?:is|was|lautet|ist|est|es)|[ \t]{0,9}\|)[ :]{1,2}"
    r"[\"'`]?(?P<said>[^\s\"'`<>\\]{8,256}+)"
)
# What takes the place of a variable that is not set.
_FALLBACK = (
    r"['\"]?[\])]{0,2}[ \t]{0,3}(?:\|\||\?\?)[ \t]{0,3}"
    rf"{_QUOTE}(?P<fallback>[^\"'`\s\\<>]{{8,256}}+){_QUOTE_END}"
    r"|:-(?P<default>[^\s\"'`{}$]{8,256}+)(?=\})"
)
# As Terraform declares a variable.
_DECLARED = r"\s?\{\s{0,60}default\s{0,9}=\s{0,9}\"(?P<declared>[^\"\s<>\\]{8,256}+)(?=\")"
_OTHERWISE = rf"|{_MARKED_UP}|{_DECLARED}|{_ARGUMENT}|{_FALLBACK}|{_SPACED}|{_SAID}"
_ASSIGNMENT = f"{_NAME_END}(?:{_ANNOTATION}{_SIGN}(?:{_QUOTED}|{_LINE}|{_BARE}){_OTHERWISE})"
_PASSWORD = (
    f"{_NAME_END}(?:{_ANNOTATION}{_SIGN}(?:{_PHRASE}|{_QUOTED}|{_LINE}|{_BARE}){_OTHERWISE})"
)
# A header (`X-Api-Key: a_b1`), or a part of a connection string (`;Pwd=…`): never an expression.
_HEADER = regex(r"[a-z]-(?:api-?|auth-?)?(?:key|token|secret|password)\Z", re.IGNORECASE)
_HEX = regex(r"[0-9a-f]+")
_UNQUOTED = frozenset(("bare", "line"))
_VARIABLE = regex(r"[A-Z][A-Z0-9_]+\Z")
_PASSWORD_NAME = regex(r"(?:_PASS|_PW|_PWD|_PAT)\Z")
_LOGIN_NAME = regex(r"(?i:[_.](?:auth|credentials?|creds|login))\Z")
_LOGIN_VALUE = regex(r"(?P<user>[A-Za-z][\w.@-]{0,40})[:/](?P<password>[^\s:/]{8,128})")
# A word with a number, as people choose them.
_CHOSEN = regex(r"(?=.{0,40}[A-Z])(?=.{0,40}[a-z]).{0,40}[0-9]{3}")
# Of what is public, or a place in a list.
_PUBLIC_NAME = regex(
    r"(?i:(?:pub(?:lic)?|cache|primary|foreign|sort|partition|etag|object"
    r"|idempotency|surrogate|sec-websocket|dedupe?|translation|correlation)[_-]?keys?"
    r"|(?:continuation|next|page|sync|resume|cursor)[_-]?token|existing[_-]?secret)\Z"
)
# `x ? "has-password" : "…"`
_ONE_OF_TWO = regex(r"\?\s{0,2}[\"'][\w-]{0,30}\Z")
_PASS_NAME = regex(r"(?i:pass|[_.-]pwd?)\Z")
_EVENT_KEY = regex(r"(?i:(?:routing|integration|ingestion)_?key)\Z")
_NAMES_CONTENT = regex("CACHE|HASH|SHA|MD5|COMMIT|PRIMARY|SORT|PARTITION|OBJECT|ETAG|BUILD")
# An option or a query (`-Ddb.password=…`, `--set a.token=…`, `?token=…`), one setting of several
# (`host=… password=…`), and a line of settings.
_SETTING = regex(
    r"(?:\s-[DoEe]\s?|\s--(?:[\w-]{1,30}[ =])?|[?&])[\w.,=:/-]{0,60}\Z"
    r"|(?:\b|_)(?:host|dbname|database|user|username|uid|server)=[^\s,;\"']{1,64}[ ;][^,\n]{0,60}\Z"
)
_LINE_BEFORE = regex(r"(?:\A|\n)[ \t+-]{0,12}(?:(?:export|ENV|ARG|set)[ ])?[\w.-]{0,60}\Z")
_IN_STRING = regex(r";\s?\w{0,20}\Z")


def _after(hit: re.Match[str]) -> int:
    return hit.end()


def _start(hit: re.Match[str]) -> int:
    return hit.start()


def _random(match: re.Match[str]) -> bool:
    return is_random(match["secret"])


def _varies(match: re.Match[str]) -> bool:
    return is_random(match["secret"]) and changes_kind(match["secret"])


def _assigned(
    kind: str, pattern: str, looks_literal: Callable[[str], bool], *, by_name: bool = False
) -> Rule:
    """The value of `name = value`, read from the end of the keyword in the name.

    *by_name*: a variable of the environment may hold a password, or hexadecimal digits.
    """

    def accepts(match: re.Match[str]) -> bool:
        group = str(match.lastgroup)
        value = match[group]
        before = match.string[max(0, match.start() - 40) : match.start()]
        known = _known_by_name(match, before) if by_name else None
        if _ONE_OF_TWO.search(before):
            return False
        if known is not None or _PUBLIC_NAME.search(before[-24:]):
            return bool(known) and not _PUBLIC_NAME.search(before[-24:])
        if group in _ELSEWHERE:
            return _is_literal_elsewhere(match, kind, looks_literal)
        if group not in _UNQUOTED:
            return looks_literal(value)
        is_set = match["sign"] == "=" and (kind == "password" or _VARIABLE.search(before))
        if is_set and is_shuffled(value):
            return True
        return looks_literal(value) and (is_bare_literal(value) or _plain(match))

    return Rule(kind, pattern, _after, accepts)


def _known_by_name(match: re.Match[str], before: str) -> bool | None:
    """Return whether the name that *before* ends in makes a value a secret, else None."""
    group = str(match.lastgroup)
    value = match[group]
    login = _LOGIN_VALUE.fullmatch(value)
    if login and _LOGIN_NAME.search(before):
        return is_password(login["password"]) and login["user"] != login["password"]
    name = _VARIABLE.search(before)
    if name and _PASSWORD_NAME.search(name[0]):
        return is_password(value)
    if _PASS_NAME.search(before[-8:]):
        return is_key(value) and (group not in _UNQUOTED or _plain(match))
    if len(value) >= 32 and _HEX.fullmatch(value):
        if _HEADER.search(before) and match["sign"].strip() == ":":
            return not _NAMES_CONTENT.search(before.upper())
        if _EVENT_KEY.search(before):
            return True
        return name is not None and not _NAMES_CONTENT.search(name[0])
    return None


_ELSEWHERE = frozenset(("said", "spaced", "attribute", "argument"))


def _is_literal_elsewhere(
    match: re.Match[str], kind: str, looks_literal: Callable[[str], bool]
) -> bool:
    """Return True for a secret that no sign of assignment stands before."""
    group = str(match.lastgroup)
    value = match[group]
    if group == "argument":
        is_literal = is_bare_literal(value) or is_strong(value) or changes_kind(value)
        return is_key(value) and looks_literal(value) and is_literal
    if not is_option_value(value):
        return False
    if group == "attribute":
        return looks_literal(value)
    if group == "spaced":
        return is_password(value) if kind == "password" else is_scrambled(value)
    if kind == "password":
        return is_strong(value)
    return is_key(value) and len(_KIND_CHANGE.findall(value)) > len(value) / 2


def _plain(match: re.Match[str]) -> bool:
    """Return True if the value of *match*, though not quoted, is not an expression there."""
    before = match.string[max(0, match.start() - 80) : match.start()]
    name, value = before[-24:], match[str(match.lastgroup)]
    if match["sign"].strip() == ":" and _HEADER.search(name):
        return True
    if match["sign"] == "=" and (name[-1:].isupper() or _IN_STRING.search(name)):
        return True
    is_setting = match["sign"] == "=" and _SETTING.search(before)
    is_line = _LINE_BEFORE.search(before) and match.string[match.end() :][:1] in ("", "\n", "\r")
    return bool(is_setting or is_line) and (not is_name(value) or is_scrambled(value))


_VALUE = (
    r"(?:[\"'](?P<inside>[^\s\"'`<>\\]{4,128}+)(?=[\"'])"
    r"|[\"']?(?P<secret>[^\s\"'`<>;|&\\]{4,128}+))"
)
_OPTION = rf"(?:[ ]{{1,4}}(?:[05789][ ])?|[\"'],[ ]{{1,4}}(?=[\"'])){_VALUE}"
_POSITIONAL = rf"[ ]{{1,4}}(?:(?:--(?:body|value)|-b)[ =])?{_VALUE}"
_PIPED = (
    r"(?:echo|printf)(?:\s-[ne]{1,2})?\s{1,4}[\"']?(?:%s(?:\\n)?[\"']?\s{1,4}[\"']?)?(?:[\w.-]{1,64}:)?"
    r"(?P<secret>[^\s\"'`<>;|&\\]{4,128}+)(?:\\n)?[\"']?\s{0,4}\|"
)
_STRING_ARGUMENT = r"[bu]?[\"'](?P<secret>[^\s\"']{8,256}+)[\"']"
# The first value of a row that is neither a name, an address, nor a date.
_VALUES = (
    r"[^()\n]{0,100}\)\s{0,9}(?i:values)\s{0,9}\([^()\n]{0,200}?"
    r"N?'(?P<secret>(?=[^']{0,60}[0-9])(?=[^']{0,60}[A-Za-z])(?!\d{4}-)[^\s'@:$]{8,100}+)'"
)
# A secret key is most often near its access key, in a file or a table.
_AWS_NEIGHBOUR = (
    r"A[KS]IA[A-Z0-9]{16}(?![A-Z0-9])[\s\S]{1,120}?"
    r"(?<![A-Za-z0-9/+])(?P<secret>(?=[0-9/+]*[A-Za-z])[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
)
_COMMAND_OPTION = (
    r"(?P<blank>[ ]?)(?:[\"'](?P<inside>[^\s\"'`\\]{4,128}+)(?=[\"'])"
    r"|[\"']?(?P<secret>[^\s\"'`;|&\\]{4,128}+))"
)
_LOGIN = (
    r"[ =]{0,2}[\"']?(?:[\w.@+{}\\-]{0,60}[\"']?:[\"']?(?P<secret>[^\s\"'`|&\\]{4,128}+)"
    r"|(?P<user>[^\s\"'`|&\\:]{8,60}+):[A-Za-z]?[\"'\s])"
)


def _word(hit: re.Match[str]) -> int:
    """Return where the word without blanks and quotes begins that *hit* is in."""
    start, text = hit.start(), hit.string
    while start and hit.start() - start < 200 and text[start - 1] not in " \t\n\"'`=":
        start -= 1
    return start


def _run(hit: re.Match[str]) -> int:
    """Return where the run of letters, digits and signs of base64 begins that *hit* is in."""
    start, text = hit.start(), hit.string
    while (
        start
        and hit.start() - start < 90
        and (text[start - 1].isalnum() or text[start - 1] in "+/-_")
    ):
        start -= 1
    return start


def _echo(hit: re.Match[str]) -> int:
    """Return where the command begins whose output the program of *hit* reads; the end for none."""
    start, text = max(0, hit.start() - 200), hit.string
    found = max(text.rfind(word, start, hit.start()) for word in ("echo", "printf"))
    return found if found >= 0 else len(text)


def _is_value(match: re.Match[str]) -> bool:
    return is_option_value(_last(match))


def _scheme_end(hit: re.Match[str]) -> int:
    """Where the `://` is that belongs to the `@` of *hit*."""
    return hit.string.rfind("://", max(0, hit.start() - 200), hit.start())


_URL_SAFE = "A-Za-z0-9_-"
_JWT_PART = f"[{_URL_SAFE}]{{8,}}+"
_JWT = rf"eyJ{_JWT_PART}\.{_JWT_PART}\.[{_URL_SAFE}]{{8,}}+"
_AUTHORIZATION = (
    r"(?i)\\?[\"'`]?\]?\s{0,4}(?:=>|,?\s{0,40}\\?[\"']?value\\?[\"']?\s?[:=]|[:=,]|(?=[\"']))\s{0,4}[bfru]?\\?[\"'`]?"
    r"(?P<scheme>(?>(?:(?:bearer|basic|(?:api-)?token|apikey|ssws|bot|[a-z][a-z-]{2,20}(?=\s[a-z0-9-]*[0-9]))\s{1,4})?))"
    r"(?P<secret>[A-Za-z0-9._~+/=@-]{8,}+)(?![(\[{<$%*])"
)
_URL = (
    r"://(?:(?P<user>(?=[\w-]{0,60}[0-9])[\w-]{20,200}+(?::[^\s/@\"'<>\\]{0,128}+)?)@"
    r"|[^\s/:@\"'<>\\]{0,64}+:(?P<secret>[^\s/@\"'<>\\]{1,128}+(?>(?:@[^\s/@\"'<>\\]{1,64}+(?=@)){0,2}))@)"
)
_COOKIE = (
    r"[\"']?(?:[ ]{0,3}[:= ]|,\s{0,40}[\"']?value[\"']?\s?[:=])[ ]{0,3}[\"']?"
    r"(?P<secret>[\w.-]{1,40}=[^\s\"'<>;]{1,256}+"
    r"(?>(?:;[ ]?[\w.-]{1,40}=[^\s\"';<>]{1,256}+){0,9}))"
)
_COOKIE_JAR = (
    r"[^\t\n]{0,200}\t(?:TRUE|FALSE)\t[0-9]{1,12}\t[^\t\n]{1,100}\t(?P<secret>[^\s]{8,2000}+)"
)
_WEBHOOK = (
    r"(?:/[0-9a-f-]{36}@[0-9a-f-]{36}/IncomingWebhook/|\.zapier\.com/hooks/catch/|\.slack\.com/(?:services|workflows|triggers)/|/[0-9]{17,20}/)"
    r"(?P<secret>[\w/+-]{14,100}+)"
)
# Lines of base64, each after a line end that may be escaped, quoted, numbered or a diff's.
_LINE_END = r"(?:\\+(?:[nr]|x0[ad])|[\s\"'+,|>:0-9-])"
_PRIVATE_KEY = (
    r"(?P<secret>(?>(?:(?:\\+[nr]|\s){1,8}(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\]{1,80})*)"
    rf"(?>(?:{_LINE_END}{{1,40}}?[A-Za-z0-9+/]{{16,}}+={{0,2}})+)"
    rf"(?:{_LINE_END}{{1,40}}?[A-Za-z0-9+/=]{{1,64}}+(?={_LINE_END}{{0,40}}?-----END|\s*\Z))?)"
)


def _prefix(hit: re.Match[str]) -> int:
    """Return where the prefix begins that ends at *hit*."""
    start, text = hit.start(), hit.string
    while start and hit.start() - start < _LONGEST_PREFIX and text[start - 1] in _PREFIX:
        start -= 1
    return start


def _is_known(value: str) -> bool:
    """Return True for the token of a provider that has rules of its own."""
    ends = (
        at for at, character in enumerate(value[:_LONGEST_PREFIX], start=1) if character in "_-"
    )
    return any(value[:end].lower() in tokens() for end in ends)


_NAMES_ID = regex(r"(?i)id\\?[\"']?\s?[:=]\s?\\?[\"']?\Z")
_PREFIX = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_PREFIXED_TOKEN = (
    r"(?<![\w/.+=-])(?P<secret>(?:[a-z][a-z0-9]{1,11}[_-]){1,3}?[A-Za-z0-9][\w-]{29,400}+)"
    r"(?![/.+=])"
)


def _token(kind: str, lead: int, pattern: str) -> Rule:
    """A token that begins *lead* characters before its hint."""
    return Rule(kind, _whole(pattern), lambda hit: hit.start() - lead, _random)


_RULES = {
    "aws_access_key": _token("aws-access-key", 0, "A(?:[KS]I|BI|CC)A[A-Z0-9]{16}"),
    "google": _token("google-api-key", 0, r"AIza[\w-]{35}"),
    "square": _token("square-access-token", 1, r"EAAA[\w-]{22,60}"),
    "jwt": _token("jwt", 2, _JWT),
    "twilio": _token("twilio-key", 1, "SK[0-9a-f]{32}"),
    "telegram": Rule(
        "telegram-token",
        r"(?<=[0-9]{8}:)(?P<secret>AA[\w-]{32,34})(?![\w-])",
        lambda hit: hit.start(),
        _random,
    ),
    "private_key": Rule("private-key", _PRIVATE_KEY, _after, lambda match: True),
    "key_data": Rule(
        "client-key",
        r"[\"']?\s{0,3}:\s{0,3}[\"']?(?P<secret>[A-Za-z0-9+/=]{40,}+)",
        _after,
        lambda match: True,
    ),
    "authorization": Rule("authorization", _AUTHORIZATION, _after, is_authorization),
    "cookie": Rule("cookie", _COOKIE, _after, is_cookie),
    "signature": Rule("signature", r"(?P<secret>[A-Za-z0-9%+/_~=-]{20,1200}+)", _after, _random),
    "pass": Rule(
        "password",
        r"(?P<secret>[^\s\"'`]{6,128}+)",
        _after,
        lambda match: is_option_value(match["secret"]),
    ),
    "prefixed": Rule(
        "token",
        _PREFIXED_TOKEN,
        _prefix,
        lambda match: (
            not _is_known(match["secret"])
            and not _NAMES_ID.search(_text_before(match, 24))
            and is_generated(match["secret"])
        ),
    ),
    "jfrog": _token("jfrog-key", 0, "AKCp[A-Za-z0-9]{60,80}"),
    "yandex": _token("yandex-key", 0, r"AQVN[\w-]{35,38}"),
    "bedrock": _token("aws-bedrock-key", 0, "ABSK[A-Za-z0-9+/]{100,300}={0,2}"),
    "code": Rule(
        "code",
        r"(?P<secret>[\w%+/=-]{30,400}+)",
        _after,
        lambda match: is_random(match["secret"]) and is_key(match["secret"]),
    ),
    "salesforce": _token("salesforce-token", 17, r"00D[A-Za-z0-9]{12}!AQ[\w.]{60,120}"),
    "braintree": Rule(
        "braintree-token", r"(?P<secret>[a-z0-9]{16}\$[0-9a-f]{32})", _after, _random
    ),
    "jfrog_token": Rule("jfrog-token", r"(?P<secret>cmVmdGtu[A-Za-z0-9]{40,80})", _start, _random),
    "mailchimp": _token("mailchimp-key", 32, "[0-9a-f]{32}-us[0-9]{1,2}"),
    "twitter": _token("twitter-token", 0, "A{19,22}[A-Za-z0-9]{4,40}[A-Za-z0-9%]{40,120}"),
    "tencent": _token("tencent-key", 0, "AKID[A-Za-z0-9]{32}"),
    "alibaba": _token("alibaba-key", 2, "LTAI[A-Za-z0-9]{12,26}"),
    "facebook": _token("facebook-token", 1, "EAA[A-Za-z0-9]{80,400}"),
    "easypost": _token("easypost-key", 2, "EZ[AT]K[A-Za-z0-9]{54}"),
    "refresh": Rule("google-refresh-token", r"(?P<secret>1//0[\w-]{40,200})", _start, _random),
    "airtable": Rule("airtable-token", r"\.(?P<secret>[0-9a-f]{64})", _start, _random),
    "asana": _token("asana-token", 0, "[12]/[0-9]{13,19}(?:/[0-9]{13,19})?:[0-9a-f]{32}"),
    "bitbucket": _token("bitbucket-password", 0, "ATBB[A-Za-z0-9]{28,40}"),
    "firebase": _token("firebase-key", 0, r"APA91b[\w-]{100,180}"),
    "atlassian": _token("atlassian-token", 0, r"AT[AC]TT3[\w=-]{40,300}"),
    "databricks": Rule(
        "databricks-token", r"(?P<secret>dapi[0-9a-f]{32}(?:-\d)?)", _start, _random
    ),
    "discord": Rule("discord-token", r"\.(?P<secret>[\w-]{6,7}\.[\w-]{27,40})", _start, _random),
    "putty": Rule(
        "private-key",
        r"(?P<secret>(?:[0-9]{1,3}(?:\\+[nr]|\s)|)(?>(?:[A-Za-z0-9+/=]{16,64}(?:\\+[nr]|\s){0,2})+))",
        _after,
        lambda match: True,
    ),
    "pgpass": Rule(
        "pgpass",
        r"[^:\s]{1,64}:[^:\s]{1,64}:(?P<secret>[^\s:\"']{6,128})(?=\s|\\n|[\"']|\Z)",
        _after,
        lambda match: is_option_value(match["secret"]),
    ),
    "session": Rule(
        "cookie",
        r"(?P<secret>[\w%.-]{16,256}+)",
        _after,
        lambda match: is_random(match["secret"]) and changes_kind(match["secret"]),
    ),
    "jar": Rule("cookie", _COOKIE_JAR, _after, lambda match: is_key(match["secret"])),
    "webhook": Rule("webhook", _WEBHOOK, _after, _random),
    "docker": Rule(
        "docker-login",
        r"[ ]{0,4}:[ ]{0,4}\"(?P<secret>[A-Za-z0-9+/=]{8,512}+)\"",
        _after,
        lambda match: is_basic_login(match["secret"]),
    ),
    # `{"auth…` in base64, as Kubernetes keeps it.
    "docker_logins": Rule(
        "docker-login", r"(?P<secret>(?<=eyJhdXRo)[A-Za-z0-9+/=]{24,4096}+)(?!\.)", _after, _random
    ),
    "url": Rule("url-password", _URL, _scheme_end, is_url_secret),
    "dsn": Rule(
        "url-password",
        r"[\w.:-]{0,60}[\w.-][:/](?P<secret>[^\s/@\"'<>\\:]{4,128}+)@",
        _word,
        lambda match: is_url_password(match["secret"]),
    ),
    "creds": Rule(
        "login",
        r"[ =][\"']?[\w.@+-]{1,60}:(?P<secret>[^\s\"'`|&\\]{4,128}+)",
        _after,
        _is_value,
    ),
    "bearer": Rule(
        "authorization",
        r"\s{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,4096}+)",
        _after,
        lambda match: is_credential(match["secret"]) and is_key(match["secret"]),
    ),
    "nostr": Rule(
        "private-key", r"(?P<secret>nsec1[a-z0-9]{40,80})", lambda hit: hit.start() - 4, _random
    ),
    "wallet": _token("private-key", 7, "[xyz]prv9s21[A-Za-z0-9]{40,120}"),
    "jwk": Rule(
        "private-key",
        r"\{[^{}]{0,1000}?\"d\"\s?:\s?\"(?P<secret>[\w-]{40,400}+)\"",
        lambda hit: hit.string.rfind("{", max(0, hit.start() - 1000), hit.start()),
        _random,
    ),
    "pair": Rule(
        "password",
        r"\s{0,40}[\"'][^\"'\s]{1,100}[\"'],\s{0,40}[\"'](?P<secret>[^\"'\s]{8,128}+)[\"']",
        _after,
        lambda match: is_password(match["secret"]),
    ),
    "kaggle": Rule(
        "kaggle-key",
        r":\s?\"(?P<secret>[0-9a-f]{32})\"",
        _after,
        lambda match: '"username"' in _text_before(match, 100) and is_random(match["secret"]),
    ),
    "twilio_pair": Rule(
        "twilio-key",
        r"[0-9a-f]{32}[\"']?[:,]\s?[\"']?(?P<secret>[0-9a-f]{32})(?![0-9a-f])",
        _after,
        _random,
    ),
    "crypt": Rule("password-hash", r"(?P<secret>[A-Za-z0-9./+=,$]{20,200}+)", _after, _random),
    "azure": Rule("azure-key", r"(?P<secret>[\w+/-]{48,90}+={0,2})", _run, _random),
    "aws_neighbour": Rule(
        "aws-secret-key", _AWS_NEIGHBOUR, _start, lambda match: is_aws_secret_key(match["secret"])
    ),
    "nkey": Rule(
        "private-key", r"(?P<secret>(?<=SU)A[A-Z2-7]{54,55})(?![A-Z0-9])", _start, _random
    ),
    "backblaze": Rule(
        "backblaze-key", r"(?<!\w)(?P<secret>K00[0-9][\w/+]{27,28})(?!\w)", _start, _random
    ),
    "telnyx": Rule("telnyx-key", r"(?P<secret>KEY0[0-9A-Fa-f]{20,40}_\w{20,40})", _start, _random),
    "otp": Rule(
        "otp-seed", r"[^\s\"']{1,200}[?&]secret=(?P<secret>[A-Za-z2-7]{16,128}+)", _after, bool
    ),
    "last": Rule(
        "secret",
        rf"[^,\n]{{1,80}},\s{{0,20}}{_STRING_ARGUMENT}",
        _after,
        lambda m: is_key(m["secret"]),
    ),
    "third": Rule(
        "password",
        rf"(?:[^,()\n]{{1,120}},\s{{0,20}}){{2,3}}?(?=[bu]?[\"'][^\"'\s]{{0,40}}[0-9]){_STRING_ARGUMENT}",
        _after,
        lambda match: is_strong(match["secret"]),
    ),
    "values": Rule("password", _VALUES, _after, lambda match: is_password(match["secret"])),
    "positional": Rule("option", _POSITIONAL, _after, _is_value),
    "piped": Rule("option", _PIPED, _echo, _is_value),
    "login_of_database": Rule("login", r"(?P<secret>[^\s\"'@]{4,128}+)", _after, _is_value),
    "here": Rule(
        "option",
        r"[ ]{0,3}[\"'](?P<secret>[^\s\"'`<>|&\\]{4,128}+)[\"']",
        _after,
        lambda match: _is_value(match) and bool(_READER.search(_text_before(match, 120))),
    ),
    "argument": Rule(
        "api-key",
        r"[\"'](?P<secret>[A-Za-z0-9]{30,128}+)[\"']",
        _after,
        lambda match: is_generated(match["secret"]) or is_shuffled(match["secret"]),
    ),
    "endpoint": Rule("api-key", r"(?P<secret>[\w-]{20,64}+)", _after, _random),
    "percent": Rule("login", r"(?P<secret>[^\s\"'@]{4,128}+)", _after, _is_value),
    "login": Rule("login", _LOGIN, _after, is_login_of_command),
    "option": Rule("option", _OPTION, _after, follows_option),
    "command_option": Rule("option", _COMMAND_OPTION, _after, follows_command_option),
    "aws_secret_key": _assigned("aws-secret-key", _ASSIGNMENT, is_aws_secret_key),
    "password": _assigned("password", _PASSWORD, is_password),
    "secret": _assigned("secret", _ASSIGNMENT, is_password),
    "token": _assigned("token", _ASSIGNMENT, is_key),
    "key": _assigned("api-key", _ASSIGNMENT, is_key),
    "bare_key": _assigned("api-key", _ASSIGNMENT, is_generated_key),
    "suffix": _assigned("credential", _ASSIGNMENT, is_scrambled, by_name=True),
}

# By the name of the group of the hint, the more specific kinds first.
RULES: Mapping[str, Rule] = MappingProxyType(_RULES)
RANKS: Mapping[str, int] = MappingProxyType(
    {rule.kind: rank for rank, rule in enumerate(RULES.values(), start=1)}
)
