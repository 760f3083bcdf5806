"""Secrets of every kind, made at random, and the places of a run that they can stand in."""

import re
import string
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from re._parser import parse  # type: ignore[import-not-found]
from typing import Any, TypeAlias

from contextgraph.model import Action, RawTrajectory
from contextgraph.model.values import replace
from tests.builders import run

# Draws a text that holds a secret, and the secret itself.
Draw: TypeAlias = Callable[[Random], tuple[str, str]]

_ALNUM = string.ascii_letters + string.digits
_WORDS = "orbit lantern cobalt meadow tunnel gravel saffron walnut breeze canyon".split()


def _drawn(alphabet: str, length: int) -> Callable[[Random], str]:
    """Random text with at least two digits and a capital in its middle, where there are any."""

    def draw(chance: Random) -> str:
        drawn = [chance.choice(alphabet) for _ in range(length)]
        for place, wanted in ((3, "7"), (5, "K"), (7, "q"), (9, "4"), (11, "d"), (13, "2")):
            if place < length and wanted in alphabet:
                drawn[place] = wanted
        return "".join(drawn)

    return draw


def _alnum(length: int) -> Callable[[Random], str]:
    return _drawn(_ALNUM, length)


def _url_safe(length: int) -> Callable[[Random], str]:
    return _drawn(_ALNUM + "_-", length)


def _hex(length: int) -> Callable[[Random], str]:
    return _drawn("0123456789abcdef", length)


def _upper(length: int) -> Callable[[Random], str]:
    return _drawn(string.ascii_uppercase + string.digits, length)


def _base64(length: int) -> Callable[[Random], str]:
    return _drawn(_ALNUM + "+/", length)


def _password(chance: Random) -> str:
    return _alnum(14)(chance) + "!"


def _phrase(chance: Random) -> str:
    return " ".join(chance.sample(_WORDS, 5))


def _login(chance: Random) -> str:
    return b64encode(f"robot:{_alnum(16)(chance)}".encode()).decode()


def _jwt(chance: Random) -> str:
    parts = ("eyJ" + _alnum(24)(chance), "eyJ" + _alnum(20)(chance) + "XXX" + _alnum(20)(chance))
    return ".".join((*parts, _url_safe(43)(chance)[:-1] + "A"))


def _few_digits(chance: Random) -> str:
    return "".join(chance.choice("aQbRcSdTeUfVgW/") for _ in range(19)) + "aQ7bRcSdTeUfVgWhXiYjZ"


def generated(pattern: str, chance: Random) -> str:
    """A text that the regular expression *pattern* matches, drawn at random."""
    return "".join(_generated(parse(pattern, re.ASCII), chance))


def _generated(parsed: Iterable[tuple[Any, Any]], chance: Random) -> Iterator[str]:
    for kind, given in parsed:
        match str(kind), given:
            case "LITERAL", code:
                yield chr(code)
            case "IN", choices:
                yield chance.choice([one for choice in choices for one in _characters(*choice)])
            case "MAX_REPEAT" | "POSSESSIVE_REPEAT", (least, most, part):
                for _ in range(chance.randint(least, min(most, least + 20))):
                    yield from _generated(part, chance)
            case "SUBPATTERN", (*_, part):
                yield from _generated(part, chance)
            case "BRANCH", (_, branches):
                yield from _generated(chance.choice(branches), chance)
            case other, _:
                assert other == "ASSERT_NOT", other  # what comes after the token


def _characters(kind: Any, given: Any) -> str:
    match str(kind), str(given):
        case "RANGE", _:
            return "".join(map(chr, range(given[0], given[1] + 1)))
        case "CATEGORY", "CATEGORY_DIGIT":
            return string.digits
        case "CATEGORY", "CATEGORY_WORD":
            return f"{_ALNUM}_"
        case _:
            return chr(given)


def _in(template: str, value: Callable[[Random], str]) -> Draw:
    """Draws *template* with a *value* instead of its braces; the value is the secret."""

    def draw(chance: Random) -> tuple[str, str]:
        secret = value(chance)
        return template.replace("{}", secret), secret

    return draw


def _slack_path(chance: Random) -> str:
    return f"T{_upper(10)(chance)}/B{_upper(10)(chance)}/{_alnum(24)(chance)}"


_BEGIN, _END = "-----BEGIN PRIVATE" + " KEY-----", "-----END PRIVATE" + " KEY-----"

# Prefixes are joined at run time: nothing in this file may look like a secret to a scanner.
KINDS: Mapping[str, Draw] = {
    "aws access key": _in("AK" + "IA{}", _upper(16)),
    "aws secret key": _in("aws_secret_access_key={}", _base64(40)),
    "aws secret key, few digits": _in("AWS_SECRET_ACCESS_KEY={}", _few_digits),
    "github token": _in("gh" + "p_{}", _alnum(36)),
    "github token, fine-grained": _in("github" + "_pat_{}", _alnum(82)),
    "gitlab token": _in("glp" + "at-{}", _alnum(20)),
    "gitlab deploy token": _in("gl" + "dt-{}", _alnum(20)),
    "gitlab runner token": _in("gl" + "rt-{}", _alnum(20)),
    "slack bot token": _in("xo" + "xb-2384729384-{}", _alnum(24)),
    "slack app token": _in("xa" + "pp-1-A07QK2D3M4F-7204816359271-{}", _hex(64)),
    "slack webhook": _in("https://hooks.slack" + ".com/services/{}", _slack_path),
    "discord webhook": _in("https://discord.com/api/webhooks/112233445566778899/{}", _url_safe(68)),
    "google api key": _in("AI" + "za{}", _alnum(35)),
    "google oauth secret": _in("GOC" + "SPX-{}", _alnum(28)),
    "google oauth token": _in("ya" + "29.{}", _alnum(60)),
    "stripe live key": _in("sk" + "_live_{}", _alnum(24)),
    "stripe test key": _in("sk" + "_test_{}", _alnum(24)),
    "stripe webhook secret": _in("wh" + "sec_{}", _alnum(32)),
    "openai key": _in("sk" + "-proj-{}", _alnum(48)),
    "anthropic key": _in("sk" + "-ant-api03-{}", _alnum(93)),
    "npm token": _in("np" + "m_{}", _alnum(36)),
    "pypi token": _in("pyp" + "i-AgEIcHlwaS5vcmc{}", _alnum(60)),
    "huggingface token": _in("h" + "f_{}", _alnum(34)),
    "sendgrid key": _in("S" + "G.aB3dE6gH9jK2mN5pQ8sT1v.{}", _alnum(43)),
    "digitalocean token": _in("do" + "p_v1_{}", _hex(64)),
    "telegram token": _in("bot 123456789:" + "AA{}", _alnum(33)),
    "twilio key": _in("S" + "K{}", _hex(32)),
    "vault token": _in("hv" + "s.{}", _alnum(90)),
    "docker token": _in("dckr" + "_pat_{}", _alnum(27)),
    "docker auth": _in('"auth": "{}"', _login),
    "age key": _in("AGE-SECRET" + "-KEY-1{}", _drawn("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    "shopify token": _in("shp" + "at_{}", _hex(32)),
    "postman key": _in("PM" + "AK-0f3a9c1d7e2b5c8d4a6f0e1b-{}", _hex(34)),
    "rubygems key": _in("ruby" + "gems_{}", _hex(48)),
    "linear key": _in("lin" + "_api_{}", _alnum(40)),
    "grafana token": _in("gl" + "sa_{}_0a1b2c3d", _alnum(32)),
    "pulumi token": _in("pu" + "l-{}", _hex(40)),
    "perplexity key": _in("pp" + "lx-{}", _alnum(48)),
    "azure client secret": _in("x='abc8" + "Q~{}'", _alnum(31)),
    "1password token": _in("op" + "s_eyJ{}", _url_safe(240)),
    "azure devops token": _in("pat {}AZDO1bC2 set", _alnum(76)),
    "asana token": _in("curl -d 2/1200000000000001/1200000000000002:{}", _hex(32)),
    "azure account key": _in("AccountName=x;AccountKey={};EndpointSuffix=y", _base64(86)),
    "jwt with XXX": _in("{}", _jwt),
    "private key": _in(f"{_BEGIN}\n{{}}\n{_END}", _base64(64)),
    "kubeconfig": _in("    client-key-data: {}", _base64(120)),
    "netrc": _in("machine api.test login robot password {}", _password),
    "url password": _in("postgres://robot:{}@db:5432/app", _alnum(16)),
    "url user": _in("https://{}@git.test/x.git", _hex(40)),
    "curl -u": _in("curl -u robot:{} https://api.test", _password),
    "mysql -p": _in("mysql -u root -p{} app", _password),
    "sshpass -p": _in("sshpass -p {} ssh robot@host", _password),
    "docker login -p": _in("docker login -u robot -p {} registry.test", _password),
    "--password": _in("deploy --password {} now", _password),
    "--token": _in("deploy --token {} now", _hex(32)),
    "PGPASSWORD": _in("PGPASSWORD={} psql -h db", _password),
    "Pwd=": _in("Server=db;Uid=sa;Pwd={};", _password),
    "password in quotes": _in('password = "{}"', _password),
    "password with blanks": _in('password: "{}"', _phrase),
    "passphrase": _in("passphrase: {}", _phrase),
    "Passwort": _in('Passwort: "{}"', _password),
    "contraseña": _in('contraseña: "{}"', _password),
    "mot de passe": _in('mot de passe: "{}"', _password),
    "senha": _in('senha = "{}"', _password),
    "пароль": _in("пароль: {}", _password),
    "密码": _in("密码：{}", _password),
    "cookie": _in("Cookie: sessionid={}; theme=dark", _alnum(32)),
    "bearer": _in("Authorization: Bearer {}", _alnum(40)),
    "basic": _in("Authorization: Basic {}", _login),
    "X-Api-Key": _in("X-Api-Key: ab_{}", _hex(24)),
    "bitbucket password": _in("AT" + "BB{}", _alnum(32)),
    "heroku key": _in("HR" + "KU-{}", _hex(40)),
    "langfuse key": _in("sk" + "-lf-{}-4c5d-8e6f-9a7b-0c1d2e3f4a5b", _hex(8)),
    "square secret": _in("sq0" + "csp-{}", _alnum(43)),
    "firebase key": _in("AAAAkettle9:AP" + "A91b{}", _url_safe(134)),
    "voyage key": _in("p" + "a-{}", _alnum(43)),
    "modal token": _in("a" + "k-{}", _alnum(22)),
    "key of an endpoint": _in("https://mainnet.infura.io/v3/{}", _hex(32)),
    "argument of a client": _in("tea.Client('{}')", _alnum(40)),
    "here-string": _in("sudo -S ls <<< '{}'", _password),
    "AUTH PLAIN": _in("AUTH PLAIN {}", _login),
    "sonar.login": _in("-Dsonar.login={}", _hex(40)),
    "psk": _in('psk="{}"', _password),
    "PSK": _in(": PSK {}", _password),
    "plink -pw": _in("plink -pw {} robot@host", _password),
    "bindpw": _in("\nbindpw {}", _password),
    "nmcli": _in("nmcli dev wifi connect home password {}", _password),
    "client_secret": _in('client_secret="{}"', _alnum(32)),
}


def _with_action(raw: RawTrajectory, action: Action) -> RawTrajectory:
    first, *rest = raw.steps
    return replace(raw, steps=(replace(first, action=action), *rest))


def _with_step(raw: RawTrajectory, **fields: str) -> RawTrajectory:
    first, *rest = raw.steps
    return replace(raw, steps=(replace(first, **fields), *rest))


_FAILED = "ModuleNotFoundError: No module named 'x'\n{}\n"

# Each puts a text into its place of a run.
PLACES: Mapping[str, Callable[[RawTrajectory, str], RawTrajectory]] = {
    "thought": lambda raw, text: _with_step(raw, thought=f"I use {text} here"),
    "command": lambda raw, text: _with_action(raw, Action("bash", text)),
    "tool": lambda raw, text: _with_action(raw, Action(text, "run")),
    "value": lambda raw, text: _with_action(raw, Action("bash", "run", {"a": [{"b": text}]})),
    "key": lambda raw, text: _with_action(raw, Action("bash", "run", {text: {text: 1}})),
    "observation": lambda raw, text: _with_step(raw, observation=_FAILED.format(text)),
    "task": lambda raw, text: replace(raw, task=f"Fix it\n{text}"),
    "patch": lambda raw, text: replace(raw, patch=f"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n+{text}"),
    "instance": lambda raw, text: replace(raw, instance_id=text),
    "repo": lambda raw, text: replace(raw, repo=text),
    "labels": lambda raw, text: replace(
        _with_step(raw, cwd=text, open_file=text, user_message=text),
        source=text,
        agent=text,
        model=text,
        exit_status=text,
    ),
}


def planted(kind: str, place: str, chance: Random) -> tuple[RawTrajectory, str]:
    """A run with a secret of *kind* in *place*, and the secret."""
    text, secret = KINDS[kind](chance)
    base = run([("python x.py", "ModuleNotFoundError: No module named 'x'", 1), ("ls", "x", 0)])
    return PLACES[place](base, text), secret
