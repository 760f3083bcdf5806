"""Makes contextgraph/text/secret_rules.toml of the rules of gitleaks.

    python -m scripts.secret_rules gitleaks.toml

Taken are the rules of tokens with a distinctive prefix that ends in a separator. Left out are those
that need a file name, and those that accept any value near the name of a vendor: too many hashes
and identifiers match. What contextgraph/text/secret_rules.py has in a wider form is left out, too.
"""

import re
import sys
import tomllib
from pathlib import Path

_TARGET = Path(__file__).parent.parent / "contextgraph" / "text" / "secret_rules.toml"
_LICENCE = Path(__file__).parent / "gitleaks.licence"
_NEAR_A_NAME = re.compile(r"^(?:\(\?i\))?\[\\w\.-\]\{0,50\}")
_GENERIC = {
    "azure-ad-client-secret",
    "authress-service-client-access-key",  # its prefix `sc_` is a common one
    "curl-auth-header",
    "curl-auth-user",
    "gitlab-pat",
    "gitlab-pat-routable",
    "gitlab-runner-authentication-token-routable",
    "huggingface-organization-api-token",
    "jwt",
    "kubernetes-secret-yaml",
    "openai-api-key",
    "sendgrid-api-token",
    "slack-app-token",
    "vault-batch-token",
    "vault-service-token",
    "private-key",
    "sentry-org-token",  # its repetitions overlap: slow on hostile text
    "sourcegraph-access-token",  # any hash
    "stripe-access-token",
}
_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_ENDS = (
    _END,
    _END[:-1] + r"|\b)",
    r"(?:[^\w-]|\z)",
    r"(?:[^a-zA-Z0-9+/]|\z)",
    r"""(?:$|[\\'"\x60\s<),])""",
)
_START = r"""(?:^|[\\'"\x60\s>=:(,)])"""
_OPEN_ENDED = re.compile(r"(\]|\\[dw])(\+|\{\d+,\})")


def main() -> None:
    """Write the rules of the file named on the command line."""
    given = tomllib.loads(Path(sys.argv[1]).read_text())["rules"]
    rules = [rule for entry in given if (rule := _converted(entry))]
    head = "".join(f"# {line}".rstrip() + "\n" for line in _LICENCE.read_text().splitlines())
    _TARGET.write_text(head + "\n" + "\n".join(map(_as_toml, rules)))
    print(f"{len(rules)} of {len(given)} rules")


def _converted(rule: dict[str, object]) -> tuple[str, list[str], str] | None:
    """The kind, prefixes and Python pattern of *rule*; None where it is left out."""
    kind, regex = str(rule["id"]), str(rule.get("regex", ""))
    if not regex or "path" in rule or kind in _GENERIC or _NEAR_A_NAME.match(regex):
        return None
    keywords = rule.get("keywords")
    assert isinstance(keywords, list)
    prefixes = [prefix for keyword in keywords if (prefix := _prefix(keyword, regex))]
    return (kind, prefixes, _python(regex)) if prefixes else None


def _prefix(keyword: str, regex: str) -> str | None:
    """The literal text of *regex* from *keyword* on, to its last separator."""
    literal = re.sub(r"\\(?=[._-])", "", regex.replace(r"\b", " ")).lower()
    start = literal.find(keyword)
    match = re.match(r"[a-z0-9_.~-]*[_.~-]", literal[start:]) if start >= 0 else None
    return match.group() if match else None


def _python(regex: str) -> str:
    """*regex* of Go as a Python pattern for `re.ASCII`; its ends are not part of the match."""
    ends = r"(?![A-Za-z0-9])"
    for end in _ENDS:
        if regex.endswith(end):
            regex = regex.removesuffix(end) + ends
    regex = regex.removeprefix(_START)
    if regex.endswith(r"\b"):
        regex = regex.removesuffix(r"\b") + ends
    whole = regex.startswith("(?i)")
    regex = _scoped(regex.removeprefix("(?i)"))
    regex = _OPEN_ENDED.sub(r"\1\2+", regex.removeprefix(r"\b"))
    return f"(?i:{regex})" if whole else regex


def _scoped(regex: str) -> str:
    """*regex* with each `(?i)` in its middle as a group to the end of the one around it."""
    while (flag := regex.find("(?i)")) >= 0:
        depth, end = 0, flag + 4
        while end < len(regex) and (depth or regex[end] != ")"):
            depth += {"(": 1, ")": -1}.get(regex[end], 0)
            end += 1
        regex = f"{regex[:flag]}(?i:{regex[flag + 4 : end]}){regex[end:]}"
    return regex


def _as_toml(rule: tuple[str, list[str], str]) -> str:
    kind, prefixes, pattern = rule
    listed = ", ".join(f'"{prefix}"' for prefix in prefixes)
    return f"[[rules]]\nkind = \"{kind}\"\nprefixes = [{listed}]\npattern = '''{pattern}'''\n"


if __name__ == "__main__":
    main()
