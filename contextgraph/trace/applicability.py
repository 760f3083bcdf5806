"""Whether a remedy may be advised: what it presumes of a state, and that it can do no harm.

Many causes end in the same message, and a remedy helps against one of them. And a run may have been
written to be learned from. So nothing that it did is advice because no rule
calls it harmful; a command or an edit has to be made of parts that are known: packages by name from
the default index, variables, flags, folders, programs that build, test and look.
"""

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple

from contextgraph.model import (
    EXCEPTIONS,
    Action,
    ErrorSignature,
    Family,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    State,
)
from contextgraph.text import gives_instructions, regex
from contextgraph.trace.actions import new_text, read_action
from contextgraph.trace.advice import EDITED, IMPORTS, Construct, Names, Term, names_in
from contextgraph.trace.changes import UNDEFINED, without_doubled
from contextgraph.trace.shell import TOKEN, names_program, unquoted
from contextgraph.trace.steps import Span, numbered_lines

# Of so many lines behind the range of an edit the first that is not blank counts.
_LINES_BEHIND = 4
_COMPARED_BEHIND = 2
_IDENTIFIER = regex(r"[A-Za-z_]\w{2,}")
_PROGRAM = regex(r"\w[\w.-]*")
_SUBCOMMAND = regex(r" [a-z][a-z-]*")
_NUMBERED = regex(r"^(\d+):", re.MULTILINE)
_MORE_LINES = "<more lines"
# What is written where it is expected that a command may fail.
_PROBING = regex(r"\b2>|\|\||\btest -|\[ -")
# What has no ending is a class or a package rather than a file: no folder has it.
_NO_FILE_SOUGHT = regex(r"""\s*find_file\s+["']?[^\s.*"']+["']?(?:\s|$)""")
# Of a file that is not there a listing of the current folder says no more.
_LISTS_FILE = regex(r"\bls(?: -\S+)* [^\s/-][^\s/]*\.\w+(?=\s|$)")


# Begins the circumstance that names the program of the attempt.
ATTEMPT_BY = "attempt by "


def circumstances_of(error: ErrorSignature, attempt: str, shown: str) -> tuple[str, ...]:
    """Return the facts about *attempt*, which met *error* and returned *shown*, sorted.

    Statements of one kind exclude each other, so that the circumstances of two failures can be
    compared.
    """
    if not attempt:
        return ()
    action = Action(tool="", text=attempt)
    reading = read_action(action, None, None)
    text = [line for line in new_text(action, reading) if line.strip()]
    names = names_in(error.error_type, error.message)
    # Which program ran the code at fault says nothing of it, unless it did not find a module.
    is_of_code = error.family in EXCEPTIONS and Term.MISSING_MODULE not in names.roles
    known = [f"{ATTEMPT_BY}{reading.verb}"] if reading.verb and not is_of_code else []
    if Term.UNDEFINED_NAME in names.roles and text:
        known.append(f"undefined name used as {_use(names.names[0], text)}")
    if reading.span is not None:
        known += _of_range(reading.span, text, shown)
    return tuple(sorted(known))


def _use(name: str, text: Sequence[str]) -> str:
    """Return how *text* uses the undefined *name*: modules and classes are imported."""
    name = name.partition(".")[0]
    match = re.search(rf"\b{re.escape(name)}\b(.?)", "\n".join(text))
    if match is None:
        return "nothing in the edit"
    if name in sys.stdlib_module_names:
        return "standard module"
    if name[:1].isupper():
        return "class"
    return {".": "object", "(": "function"}.get(match[1], "value")


def _of_range(span: Span, text: Sequence[str], shown: str) -> Iterator[str]:
    """Yield how the *text* of an edit fits the lines that it replaces and those behind them."""
    first, last = span
    replaced = last - first + 1
    yield "one line replaced" if replaced == 1 else "several lines replaced"
    yield "text longer than the range" if len(text) > replaced else "text not longer than the range"
    old, behind = _lines(shown, first, last), _lines(shown, last + 1, last + _LINES_BEHIND)
    if not text or not old:
        return
    stripped = {line.strip() for line in text}
    opens = any(line.endswith(":") and line.strip() not in stripped for line in old)
    yield "opening of a block replaced" if opens else "no opening of a block replaced"
    shares = not _identifiers(text).isdisjoint(_identifiers(old))
    yield "text about the lines replaced" if shares else "text about other lines"
    yield f"first line indented {_compared(text[0], old[0])} than before"
    if behind:
        yield f"line behind indented {_compared(behind[0], text[-1])} than the last"


def _lines(shown: str, first: int, last: int) -> list[str]:
    """Lines *first* to *last*, without blank ones, of the last numbered view in *shown*."""
    lines = numbered_lines(shown, shown.rfind(f"\n{first}:"), first, last)
    return [line.rstrip() for line in lines if line.strip()]


def _identifiers(lines: Sequence[str]) -> set[str]:
    return set(_IDENTIFIER.findall("\n".join(lines)))


def _compared(line: str, other: str) -> str:
    more = _indentation(line) - _indentation(other)
    return "more" if more > 0 else "less" if more < 0 else "no more"


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def could_apply(pattern: RemedyPattern, attempt: str, names: Names, shown: str = "") -> bool:
    """Return False if *pattern* changes something that the failed *attempt* does not have.

    *names* are those of its error: the paths that were not found, the name that was undefined. What
    is set or defined by the attempt, or where the file was *shown*, or imported by another name,
    needs no import; nor does an edit that lacks the name.
    """
    change = EDITED.get(pattern.target)
    if change is not None and change.name == Term.UNDEFINED_NAME and change.construct.binds:
        return _could_bind(change.construct, names.fill(Term.UNDEFINED_NAME), attempt, shown)
    if pattern.target in _PATHS:
        return _PATHS[pattern.target](names, attempt)
    if pattern.target == Term.ANOTHER_PATH and pattern.replaced:
        return pattern.replaced in {name.strip("/") for name in names.names}
    if pattern.target == Term.CURRENT_FOLDER and pattern.parameters:
        return any(names_program(parameter, attempt) for parameter in pattern.parameters)
    if pattern.kind is RemedyKind.USE and _SUBCOMMAND.fullmatch(
        pattern.target.removeprefix(pattern.replaced)
    ):
        return False  # `git diff` instead of `git add` is another task
    program = None if pattern.kind is RemedyKind.EDIT else _PROGRAM.match(pattern.replaced)
    return not (program and attempt) or names_program(program[0], attempt)


def _could_bind(construct: Construct, name: str, attempt: str, shown: str) -> bool:
    """False where *name* is bound already, or in another way than by *construct*."""
    quoted = re.escape(name)
    if re.search(rf"\b(?:class|def) {quoted}\b", f"{attempt}\n{shown}"):
        return False
    if construct is not Construct.IMPORT:
        return name not in sys.stdlib_module_names
    has_text = _span(attempt) is not None and "\n" in attempt.strip()
    is_missing = has_text and re.search(rf"\b{quoted}\b", attempt) is None
    by_another = rf"\bimport {quoted}(?:\.| as )"
    is_set = re.search(rf"(?:^|[\s:]){quoted} *=(?!=)|{by_another}", f"{attempt}\n{shown}")
    return not is_missing and is_set is None


# How a path is put right -> whether that changes the paths of the error, or of the attempt.
_PATHS: Mapping[str, Callable[[Names, str], bool]] = {
    Term.WITH_FOLDER: lambda names, _: not any(name.startswith("..") for name in names.names),
    Term.WITHOUT_DOUBLED: lambda names, _: any(
        without_doubled(name.strip("/")) for name in names.names
    ),
    Term.ABSOLUTE: lambda names, attempt: any(
        "/" in name.strip("/") for name in names.names or attempt.split()[1:]
    ),
}


def shows_cause(pattern: RemedyPattern, state: State) -> bool:
    """Return False if *pattern* presumes a cause that *state* does not show.

    Many causes end in the same message. An edit was meant for another file where this one has no
    such lines, and for more lines where its text repeats what follows its range. It lacks a name
    where no other is undefined; but an import, only where its range is right. A path that an agent
    asks about may rightly be missing, and so may a folder where there is a module of its name. A
    name without an ending is not found as a file anywhere. A path is given from the root where the
    file is known by such a path.
    """
    attempt, shown = state.last_action, state.last_outcome
    if pattern.target in (
        Term.CURRENT_FOLDER,
        Term.ANOTHER_PATH,
    ) and _NO_FILE_SOUGHT.match(attempt):
        return False
    if pattern.target == Term.CURRENT_FOLDER:
        return not (_PROBING.search(attempt) or _LISTS_FILE.search(attempt))
    if pattern.kind is RemedyKind.EDIT and Term.UNDEFINED_NAME in pattern.target:
        is_only_one = len({*UNDEFINED.findall(shown)}) < 2
        return is_only_one and (
            pattern.target in IMPORTS or not _repeats_lines_behind(attempt, shown)
        )
    if pattern.target == Term.FILE_TO_EDIT:
        return _is_beyond_file(attempt, shown)
    if pattern.target in (Term.NO_FILE_NAME, Term.ABSOLUTE):
        return _names_open_file(attempt, state.open_file, is_whole=pattern.target == Term.ABSOLUTE)
    if pattern.kind is RemedyKind.CREATE and pattern.target == Term.PARENT_FOLDER:
        return not _is_module(attempt, f"{state.open_file}\n{shown}\n{state.task_description}")
    if pattern.target.startswith(_MORE_LINES):
        return _repeats_lines_behind(attempt, shown)
    return True


def _arguments(attempt: str) -> list[str]:
    return attempt.partition("\n")[0].split()[1:]


def _names_open_file(attempt: str, open_file: str, *, is_whole: bool) -> bool:
    """Return whether *attempt* names the open file; *is_whole*: by more than its last part."""
    named = [argument.strip("/") for argument in _arguments(attempt)]
    if is_whole:
        return any("/" in name and open_file.endswith(f"/{name}") for name in named)
    return posixpath.basename(open_file) in map(posixpath.basename, named)


def _is_module(attempt: str, shown: str) -> bool:
    """True where a folder of the path in *attempt* has the name of a module that is *shown*."""
    folders = filter(None, map(posixpath.dirname, _arguments(attempt)))
    return any(f"{folder}.py" in shown for folder in folders)


def _is_beyond_file(attempt: str, shown: str) -> bool:
    span, numbers = _span(attempt), _NUMBERED.findall(shown)
    return span is not None and bool(numbers) and int(numbers[-1]) < span[0]


def _repeats_lines_behind(attempt: str, shown: str) -> bool:
    action = Action(tool="", text=attempt)
    reading = read_action(action, None, None)
    text = [line for line in new_text(action, reading) if line.strip()]
    if reading.span is None or not text:
        return False
    first, last = reading.span
    old, behind = _lines(shown, first, last), _lines(shown, last + 1, last + _LINES_BEHIND)
    is_indented_so = not old or _indentation(old[0]) == _indentation(text[0])
    repeated = {line.strip() for line in text}.intersection(
        line.strip() for line in behind[:_COMPARED_BEHIND]
    )
    return is_indented_so and bool(repeated)


def _span(attempt: str) -> Span | None:
    return read_action(Action(tool="", text=attempt), None, None).span


# What is done before the attempt is repeated, as a step of its own.
_BEFOREHAND = frozenset(
    {
        RemedyKind.INSTALL,
        RemedyKind.CREATE,
        RemedyKind.OPEN,
        RemedyKind.CONFIGURE,
        RemedyKind.DELETE,
        RemedyKind.REVERT,
    }
)
_BEFOREHAND_OF_CODE = _BEFOREHAND | {RemedyKind.EDIT}


def detour(actions: Sequence[RemedyAction], family: Family, taken: int) -> int:
    """Return how many of the steps *taken* to clear an error *actions* themselves do not need.

    An agent that does at once what clears the error makes none.
    """
    kinds = _BEFOREHAND if family is Family.EDIT_REJECTED else _BEFOREHAND_OF_CODE
    beforehand = [action.kind in kinds for action in actions].count(True)
    return max(0, taken - max(1, 2 * beforehand))  # each is done, and then tried


# A longer command, edit or name is not advice: nobody sees at a glance what it does.
_LONGEST_LINE, _LONGEST_EDIT = 400, 4_000
# What stands around a word in a sentence.
_AROUND = "'\"`“”‘’«»()[]{}<>,;:.!?*"
_MOST_WORDS = 6  # of a quoted argument, a file name, or a text in code

# A word without code that a shell would run, and redirections that write nothing of the project.
_SAFE_WORD = regex(
    r"""(?>(?:[^'"\\`$\#]|(?<=[\w.])\#|\$(?:\w++|\{\w++\})
    |'[^'\n]*+'
    |"(?>(?:[^"\\$`\n]|\$(?:\w++|\{\w++\}|\(pwd\))|\\[^\n])*)"
    )+)""",
    re.VERBOSE,
)
_HARMLESS_REDIRECTION = regex(
    r"[12&]?>>?(?:/dev/null|(?!(?i:requirements|constraints|cmakelists))[\w-]++\.(?:txt|log|out))"
    r"|[12]?>&[12]|</dev/null"
)
_SEPARATORS = frozenset(("&&", "||", ";", "|", "\n"))
_SETTING = regex(r"([A-Za-z_]\w{0,60})=(.*)", re.DOTALL)
_SHARE = "\\\\"  # of Windows
_OPTION = regex(r"--([a-z][a-z-]*)(?:=.*)?")
_ADDRESS = regex(r"://|[\w.-]@[\w.-]+[:/]|\bgit\+|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}\b")
_LOOPBACK = regex(r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?=[:/]|$)")
# Folders that are not part of a checkout, nor of what is installed on a machine.
_OUTSIDE = regex(
    r"(?:^|[=:,])(?:~|\$\{?HOME\b|\.\./\.\.|/(?:etc|tmp|var|dev|proc|sys|boot|private|run|media)\b"
    r"|/(?:root|(?:home|Users)/[^/]+)/\.(?!local/bin|cargo/bin|pyenv/|venv|virtualenvs/|nvm/))"
)
# Programs and their configuration that a variable would replace, and what turns checks off.
_LOADING = regex(
    r"(?:LD_|DYLD_|GIT_|PIP_|UV_|NPM_CONFIG_|NODE_(?:OPTIONS|TLS|EXTRA)|CARGO_(?:REG|NET|HTTP)|GO(?:"
    r"PROXY|INSECURE|FLAGS|SUMDB|NOSUMDB|PRIVATE)|BASH_|PROMPT_|PERL5|RUBY(?:OPT|LIB)|JAVA_TOOL|_JAVA|"
    r"MAVEN_|GRADLE_|SSL_|SSH_|AWS_|DOCKER_|KUBE)"
    r"|.*(?:PROXY|INDEX|REGISTRY|MIRROR|CERT|CA_BUNDLE|VERIFY|TLS|INSECURE|TOKEN|SECRET|PASS|AUTH|"
    r"CREDENTIAL|API_?KEY|STARTUP|PRELOAD)|(?:PATH|HOME|SHELL|IFS|ENV|EDITOR|VISUAL|PAGER|BROWSER|"
    r"CC|CXX|PYTHONHOME|PYTHONINSPECT|PYTHONBREAKPOINT)$",
    re.IGNORECASE,
)
_PYTHON = regex(r"(?:python|pypy)[\d.]*")
_NAME = regex(r"[\w+-][\w.+-]*")
_PACKAGE = regex(
    r"(?:@[a-z0-9][\w.-]*/)?[A-Za-z0-9][\w.+-]*(?:\[[\w,.-]+\])?"
    r"(?:(?:[=<>!~]=?|===)[\w.*+!-]+(?:,(?:[=<>!~]=?)[\w.*+!-]+)*|@[\^~]?[\w.-]+|:\w+)?"
)
_REQUIREMENTS = regex(r"(?!/)[\w./-]*\w\.(?:txt|toml|ya?ml|lock|json|in)")
_IN_PROJECT = regex(r"\.{1,2}(?>(?:/[\w-]+)*)/?(?:\[[\w,.-]+\])?")

_LOOKING = frozenset(
    "ls cat head tail grep egrep fgrep rg ag wc pwd which type file stat diff du tree uniq cut nl "
    "cd echo printf true false test [ less sort tr id whoami uname date basename dirname realpath "
    "readlink hostname nproc free df jq column ps lsof env printenv pushd popd set export unset "
    # The tools of agents with a window on a file.
    "open goto create edit scroll_up scroll_down search_dir search_file find_file submit "
    "view".split()
)
_BUILDING = frozenset(
    "pytest py.test tox nox nosetests nose2 unittest trial behave stestr ptw mypy pyright pyre "
    "flake8 ruff black isort pylint pyflakes bandit pycodestyle pydocstyle autopep8 pre-commit "
    "sphinx-build django-admin alembic coverage manage.py runtests.py setup.py make gmake ninja "
    "cmake ctest meson bazel scons ant mvn mvnw gradle gradlew sbt dotnet msbuild rake rspec "
    "bundle phpunit composer jest vitest mocha ava tap karma cypress playwright tsc eslint "
    "prettier vite webpack rollup esbuild turbo nx lerna ng next nuxt gulp grunt mix rebar3 "
    "stack cabal ghc swift xcodebuild rustc rustfmt gofmt golangci-lint javac java gcc g++ "
    "clang clang++ cython f2py build venv virtualenv compileall py_compile doctest timeit "
    "cProfile pdb tabnanny site deno".split()
)
_WRAPPERS = frozenset("time timeout nohup env nice xvfb-run command stdbuf ionice".split())
# Programs that run another one in an environment of the project.
_RUNNERS = {"uv": "run", "poetry": "run", "pipenv": "run", "hatch": "run", "pdm": "run"} | {
    "coverage": "run",
    "bundle": "exec",
}
_SUBCOMMANDS = {
    "docker": frozenset("ps start logs images build compose".split()),
    "docker-compose": frozenset("up start build ps logs".split()),
    "conda": frozenset("activate deactivate list info env".split()),
    "pip": frozenset("list show freeze check".split()),
    "go": frozenset("build test run vet fmt generate list mod version env".split()),
    "cargo": frozenset("build test run check clippy fmt bench doc metadata tree".split()),
    "npm": frozenset("run test start ci ls build run-script rebuild t".split()),
    "systemctl": frozenset(("start", "restart", "status", "daemon-reload")),
} | dict.fromkeys(("yarn", "pnpm", "bun"), frozenset("run test build start lint ls why".split()))
_GIT = frozenset("status log diff show branch blame grep ls-files rev-parse init add".split())
_MANAGERS = frozenset(
    "pip conda mamba micromamba uv poetry pdm pipenv hatch npm yarn pnpm bun cargo apt apt-get apk "
    "yum dnf brew gem easy_install opam pacman zypper".split()
)
_INSTALLING = frozenset("install add i ci sync update upgrade ensure lock -S".split())
_PLAIN_OPTIONS = regex(
    r"-[qyvUDEgIs]+|-{1,2}(?:upgrade|user|quiet|yes|pre|no-deps|no-build-isolation|no-cache-dir|"
    r"force-reinstall|ignore-installed|break-system-packages|no-input|dev|save-dev|save|global|"
    r"prefer-binary|only-binary|no-binary|all-extras|extra|group|with|without|no-root|no-interaction|"
    r"frozen|frozen-lockfile|locked|legacy-peer-deps|no-audit|no-fund|no-install-recommends|fix-missing|"
    r"no-warn-script-location|disable-pip-version-check|root-user-action|default-timeout|progress-bar|"
    r"use-pep517|editable|requirement|constraint|python|strict-channel-priority|override-channels|"
    r"assume-yes|all-groups|no-dev|system|verbose|name|timeout|retries)(?:=[\w.:,-]*)?|-[ercncp]"
)
_CHANNELS = frozenset(("conda-forge", "defaults", "anaconda", "bioconda", "pytorch", "main"))
# Modules that serve, send, or run what they are given.
_OTHER_MODULES = regex(
    r"(?:http|smtpd?|ftplib|telnetlib|webbrowser|base64|code|pty|socketserver|xmlrpc|urllib|ensurepip|"
    r"zipapp|runpy|pickle|binascii|antigravity|this|idlelib|turtledemo)(?:\.|$)"
)
_ACTIVATING = regex(r"(?:[\w./-]*/)?(?:bin/activate|conda\.sh|activate)")
_DANGEROUS_OPTION = regex(
    r"-{1,2}(?:exec|execdir|ok|okdir|delete|fprint\w*|fls|eval|command|rootdir|override-ini|pager|"
    r"ext-diff|textconv|output|upload\w*|post-file|to-command|checkpoint\w*|shell|init-file|rcfile|"
    r"require|import|loader|preload|javaagent\S*|privileged|volume|mount|network|deselect|"
    r"ignore(?:-glob)?|no-verify|passWithNoTests|ignore-scripts=false|force|hard)(?:=.*)?"
    r"|-(?:XX:On\S*|DskipTests\S*|Dmaven\.test\.skip\S*)",
    re.IGNORECASE,
)
_UNTESTED = regex(r"^-[km]$")

# Code: what an edit may not add, and what it may not take away.
_HARMFUL_CODE = regex(
    r"\b(?:system|popen\w*|subprocess|spawn\w*|exec\w*|eval|__import__|importlib|socket|urllib\w*|"
    r"urlopen|requests?|httpx|aiohttp|fetch|curl|wget|ftplib|smtplib|paramiko|base64|b64decode|"
    r"loads|marshal|ctypes|rmtree|remove|unlink|rmdir|chmod|chown|setuid|kill|compile|globals|"
    r"environ|getenv|verify\w*|ssl\w*|check_hostname|CERT_NONE|_create_unverified_context|"
    r"InsecureSkipVerify|rejectUnauthorized|skip\w*|xfail|expectedFailure|Disabled|Ignore|xit|"
    r"xdescribe|noqa|nosec|pragma|DROP|TRUNCATE|DELETE|write\w*|allow_?any|"
    r"\w*(?:password|passwd|secret|token|api_?key|credential)\w*)\b|://|#|--|/\*",
    re.IGNORECASE,
)
_GUARDING = regex(
    r"\bassert\w*|\braise\b|\bexpect\b|\bthrow\b|\w*(?:permi|auth|login|csrf|sanit|escape|valid|verif|"
    r"check|is_staff|is_admin|superuser|role|quota|limit|encrypt|hash|sign)\w*",
    re.IGNORECASE,
)
_GUARDED_FILE = regex(
    r"(?:^|/)(?:tests?|spec|__tests__|testing)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest|[^/]*[.-](?:test|spec))"
    r"\.\w+$|(?:^|/)\.(?!/)[^/]|(?:^|/)(?:Jenkinsfile|Dockerfile|Makefile|CODEOWNERS|azure-pipelines|"
    r"setup\.(?:py|cfg)|tox\.ini|noxfile|pyproject\.toml|package\.json|[^/]*\.(?:ya?ml|sh|lock))|"
    r"auth|permission|security|login|acl|crypto|secret",
    re.IGNORECASE,
)
_TEXT_IN_CODE = regex(r"\"\"\"|'''|\"([^\"\n]*)\"|'([^'\n]*)'")
_GENERATED = regex(
    r"(?:^|/)(?:__pycache__|build|dist|node_modules|target|\.(?:pytest|mypy|ruff)_cache|\.tox|\.nox|"
    r"\.coverage|\.eggs|[^/]*\.egg-info|[^/]*\.(?:pyc|pyo|o|so|class|log|tmp|db-journal|lock))(?:/|$)"
)
# Names, and the words in them; words of sentences, the first of which no name needs.
# Names of more than one word, such as `read_this`.
_NAMES = regex(r"(?<![A-Za-z])[A-Za-z][a-z]*+(?:[^\Wa-z]|-)[\w-]*")
_WORD = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ADDRESSING = frozenset(
    "the you your yours please must always never everything everyone anything urgent me my i we our"
    " will should shall told asking assistant".split()
)
_JOINING = frozenset(
    "a an to and with without from before after this that these those is are was were be as of for"
    " at by it its who now then instead until".split()
)
_CODE = regex(
    r"(?:def|class|import|from|return|raise|async|function|const|var|let|public|private|self|if)\b"
)
_CHOICE = regex(r"[\w\[\].-]+(?: (?:and|or|not|and not|or not) [\w\[\].-]+){0,3}")
_EDITS = frozenset({RemedyKind.EDIT, RemedyKind.RESEND, RemedyKind.CONFIGURE})
_PLACEHOLDER = regex(r"<[^<>\n]{1,60}>")


def is_hazardous(actions: Sequence[RemedyAction]) -> bool:
    """Return True if one of *actions* is never advice, however often it cleared an error."""
    return any(map(_is_hazardous, actions))


@lru_cache(8_192)
def is_hazardous_command(line: str) -> bool:
    """Return True if a command *line* is never advice, however often it worked."""
    return not _is_command(line)


@lru_cache(8_192)
def _is_hazardous(action: RemedyAction) -> bool:
    if action.is_general:
        return not _is_general_form(action)
    if action.kind in _EDITS:
        return not _is_edit(action)
    if action.kind is RemedyKind.RETRY:
        return False  # nothing of it is shown
    lines = [action.target] if action.kind in _SHOWN_AS_COMMAND else []
    if action.kind is not RemedyKind.CWD:
        lines += action.values_of("command")
    tried = _program_of(action.replaced)
    if not all(_is_command(line, tried) for line in lines):
        return True
    is_known = _OF_TARGET.get(action.kind)
    return is_known is not None and not is_known(action.target)


def _is_path(target: str) -> bool:
    """A file or folder whose name holds no instruction to an agent."""
    words = re.split(r"[\W_]+", target.rpartition("/")[2])
    return (
        "\n" not in target
        and not _ADDRESS.search(target)
        and not _OUTSIDE.search(target)
        and len(words) <= _MOST_WORDS
        and not _instructs(target)
    )


def _is_generated(target: str) -> bool:
    return _is_path(target) and _GENERATED.search(target) is not None


def _are_packages(target: str) -> bool:
    return all(
        re.fullmatch(rf"{_PACKAGE.pattern}|{_REQUIREMENTS.pattern}|{_IN_PROJECT.pattern}", word)
        for word in target.split()
    ) and not _instructs(target)


_SHOWN_AS_COMMAND = frozenset(
    {RemedyKind.RUN, RemedyKind.USE, RemedyKind.SEARCH, RemedyKind.OTHER, RemedyKind.SET_ENV}
)
_OF_TARGET: dict[RemedyKind, Callable[[str], bool]] = {
    RemedyKind.CREATE: _is_path,
    RemedyKind.OPEN: lambda target: _is_path(target) or _is_command(target),
    RemedyKind.CWD: lambda target: "\n" not in target and not _instructs(target),
    RemedyKind.DELETE: _is_generated,
    RemedyKind.INSTALL: _are_packages,
    # It takes back work of the agent, and of a person.
    RemedyKind.REVERT: lambda _: False,
}


def _is_general_form(action: RemedyAction) -> bool:
    """Return whether a pattern without names of a project may be advice: its words are programs."""
    pattern = action.pattern
    if pattern.kind in (RemedyKind.REVERT, RemedyKind.DELETE):
        return False
    texts = (pattern.target, *pattern.parameters)
    if pattern.kind is RemedyKind.INSTALL:
        return all(_are_packages(_PLACEHOLDER.sub("name", text)) for text in texts)
    if pattern.kind in (RemedyKind.RUN, RemedyKind.USE, RemedyKind.SEARCH, RemedyKind.SET_ENV):
        named = " ".join(_PLACEHOLDER.sub("name", text) for text in texts)
        if pattern.replaced.endswith(Term.ITS_ARGUMENT):
            # The program that the agent itself tried to run, in the same letters.
            return _NAME.fullmatch(pattern.target) is not None and not _instructs(pattern.target)
        if _PLACEHOLDER.match(pattern.target):
            named = f"ls {named}"
        if pattern.kind is RemedyKind.USE and not _PLACEHOLDER.search(pattern.target):
            # A launcher alone, such as `python3` or `python -m pytest`.
            return _is_command(named) or _PYTHON.fullmatch(named) is not None
        return _is_command(named, _program_of(named) if "name" in named else "")
    return not _ADDRESS.search("\n".join(texts)) and not _instructs("\n".join(texts))


class _Part(NamedTuple):
    """A simple command and whether it reads the output of the one before it."""

    words: tuple[str, ...]
    is_filter: bool


def _parts(line: str) -> list[_Part] | None:
    """The simple commands of *line* without quotes; None where a part of it has another form."""
    if len(line) > _LONGEST_LINE or "\u23ce" in line or "\u2026" in line:
        return None
    line = line.replace("$(pwd)", "$PWD")
    parts, words, is_filter = list[_Part](), list[str](), False
    position, redirection = 0, ""
    while position < len(line):
        if not (match := TOKEN.match(line, position)):
            return None
        position, kind, token = match.end(), match.lastgroup, match.group()
        if kind == "blank" and not token.strip(" \t"):
            continue
        if redirection:
            if not _HARMLESS_REDIRECTION.fullmatch(redirection + token):
                return None
            redirection = ""
        elif kind == "redirect":
            redirection = token
        elif kind == "word" and _SAFE_WORD.fullmatch(token):
            words.append(unquoted(token))
        elif kind == "operator" and token in _SEPARATORS:
            parts.append(_Part(tuple(words), is_filter))
            words, is_filter = [], token == "|"
        else:
            return None
    parts.append(_Part(tuple(words), is_filter))
    return [part for part in parts if part.words or not part.is_filter] if not redirection else None


def _program_of(line: str) -> str:
    """The program that *line* runs first, where it can be read."""
    parts = _parts(line) if line else None
    for part in parts or ():
        words = [word for word in part.words if not _SETTING.fullmatch(word)]
        if words and words[0] not in _WRAPPERS and words[0] != "cd":
            return words[0]
    return ""


def _is_command(line: str, tried: str = "") -> bool:
    """Return whether all of *line* has a known form; *tried* is a program that was tried before."""
    parts = _parts(line.strip())
    if parts is None or _instructs(line):
        return False
    return bool(parts) and all(
        (not part.words) or _is_simple(part.words, tried, part.is_filter) for part in parts
    )


def _is_simple(words: Sequence[str], tried: str, is_filter: bool) -> bool:
    rest = list(words)
    while rest and (setting := _SETTING.fullmatch(rest[0])):
        if not _is_setting(setting[1], setting[2]):
            return False
        rest = rest[1:]
    while rest and rest[0] in _WRAPPERS:
        rest = rest[1:]
        while rest and (rest[0].startswith("-") or re.fullmatch(r"\d+[smhd]?", rest[0])):
            rest = rest[1:]
    if not rest:
        return True
    if rest[0] == "sudo":
        rest = rest[1:]
        if not rest or rest[0] not in ("apt", "apt-get", "yum", "dnf", "apk", "service"):
            return False
    program, arguments = rest[0], rest[1:]
    if arguments and _RUNNERS.get(program) == arguments[0]:
        inner = [word for word in arguments[1:] if word != "--"] or ["true"]
        if program == "coverage":
            return _is_python(inner)
        # Of hatch it may be a script that the project defines.
        return _is_simple(inner, inner[0] if program == "hatch" else tried, is_filter)
    return _has_known_form(program, arguments, tried, is_filter)


def _has_known_form(program: str, arguments: Sequence[str], tried: str, is_filter: bool) -> bool:
    """Return True if *program* may be run with *arguments*; a filter reads earlier output."""
    name = posixpath.basename(program).replace("pip3", "pip")
    if program != name and (_OUTSIDE.search(program) or _ADDRESS.search(program)):
        return False
    if name == "uv" and arguments[:1] == ["pip"]:
        name, arguments = "pip", arguments[1:]
    if _PYTHON.fullmatch(name):
        return not is_filter and _is_python(arguments)
    if name in _MANAGERS and (installs := _installs(name, arguments)) is not None:
        return installs
    said = " ".join(word for word in arguments if word.isalpha())
    if not all(map(_is_argument, arguments)) or _leaves_tests_out(arguments) or _is_prose(said):
        return False
    if rule := _RULES.get(name):
        return rule(arguments) and not (is_filter and name in _INTERPRETERS)
    if name in _SUBCOMMANDS:
        return _first_word(arguments) in _SUBCOMMANDS[name] and not _reaches_out(name, arguments)
    is_script = program.startswith("./") or program.endswith((".sh", ".py"))
    if is_script and not is_filter and _is_path(program):
        return True
    return name in _LOOKING or name in _BUILDING or (tried != "" and program == tried)


def _is_git(arguments: Sequence[str]) -> bool:
    if arguments[:1] == ["-C"]:
        arguments = arguments[2:]
    if arguments[:2] == ["submodule", "update"]:
        return {*arguments[2:]} <= {"--init", "--recursive"}
    return arguments[:1] != [] and arguments[0] in _GIT


def _sets(arguments: Sequence[str]) -> bool:
    """Settings of `export`, or names alone."""
    settings = [(_SETTING.fullmatch(word), word) for word in arguments]
    return all(
        _is_setting(setting[1], setting[2]) if setting else _NAME.fullmatch(word) is not None
        for setting, word in settings
    )


def _runs_script(arguments: Sequence[str]) -> bool:
    return arguments[:1] != [] and not arguments[0].startswith("-") and _is_path(arguments[0])


def _makes(arguments: Sequence[str]) -> bool:
    return all(word.startswith("-") or _is_path(word) for word in arguments)


def _removes(arguments: Sequence[str]) -> bool:
    named = [word for word in arguments if word != "-f"]
    return bool(named) and all(map(_is_generated, named))


_INTERPRETERS = ("node", "ruby", "php", "perl", "bash", "sh", "zsh", "find")
# Programs of which only some uses are listed.
_RULES: dict[str, Callable[[Sequence[str]], bool]] = {
    "git": _is_git,
    "source": lambda given: len(given) == 1 and _ACTIVATING.fullmatch(given[0]) is not None,
    "mkdir": _makes,
    "touch": _makes,
    "rm": _removes,
    "chmod": lambda given: given[:1] == ["+x"] and all(map(_is_path, given[1:])),
    "sed": lambda given: re.fullmatch(r"-n [\d,$]+p", " ".join(given[:2])) is not None,
    "npx": lambda given: given[:1] != [] and given[0] in _BUILDING,
    "service": lambda given: len(given) == 2,
    **dict.fromkeys(("export", "set", "unset"), _sets),
    **dict.fromkeys(_INTERPRETERS, _runs_script),
}
_RULES["curl"] = lambda given: all(
    re.fullmatch(rf"-[sfILi]+|{_LOOPBACK.pattern}[\w./:?=&-]*", word) for word in given
)
_RULES["."] = _RULES["source"]


def _first_word(arguments: Sequence[str]) -> str:
    return next((word for word in arguments if not word.startswith("-")), "")


def _reaches_out(name: str, arguments: Sequence[str]) -> bool:
    """Return whether `go` or `docker` gets code from elsewhere, or more of the machine."""
    others = ("download", "edit", "exec", "run", "push", "pull")
    return name in ("go", "docker") and any(
        "@" in word or word in ("-v", "-p", *others) for word in arguments[1:]
    )


def _is_setting(name: str, value: str) -> bool:
    if name == "PATH":
        folders = value.split(":")
        return all(
            re.fullmatch(
                r"\$\{?PATH\}?|/(?:usr|opt|root/\.local|root/\.cargo)[\w./-]*/?s?bin", folder
            )
            for folder in folders
        )
    return (
        _LOADING.match(name) is None
        and re.fullmatch(r"[\w.,:/=+$({})*@%-]{0,120}", value) is not None
        and not _ADDRESS.search(value)
        and not _OUTSIDE.search(value)
        and len(re.split(r"[\W_]+", value)) <= 2 * _MOST_WORDS
    )


def _is_argument(word: str) -> bool:
    """Return True if an argument names nothing elsewhere, and is no text to follow."""
    if len(word.split()) > 2 and not (_CODE.match(word) or _CHOICE.fullmatch(word)):
        return False
    plain = _LOOPBACK.sub("", word)
    return (
        not _ADDRESS.search(plain)
        and not _OUTSIDE.search(word)
        and not _DANGEROUS_OPTION.fullmatch(word)
        and len(word.split()) <= _MOST_WORDS
    )


@lru_cache(8_192)
def names_what_is_no_advice(text: str) -> bool:
    """Return True if a word of *text* is a part of a command that advice never has.

    An address, a path outside the checkout or on a share, an option or a variable that loads
    something else, a source of packages that is not the default one, a shell that runs what it is
    sent.
    """
    words = [word.strip(_AROUND) for word in text.split()]
    return (
        any(
            word.startswith(_SHARE) or _sets_what_loads(word) or not _is_argument(word)
            for word in words
            if not word.isalpha() and word != "~"  # most are plain words
        )
        or any(
            before.endswith("|") and posixpath.basename(word) in _INTERPRETERS
            for before, word in pairwise(words)
        )
        or any(map(_installs_others, _installing(words)))
    )


def _installing(words: Iterable[str]) -> Iterator[Sequence[str]]:
    """Yield the words that follow each other on commands to install packages, in a sentence."""
    runs = groupby(words, key=_is_of_install)
    return ([*run] for is_of_install, run in runs if is_of_install)


def _installs_others(words: Sequence[str]) -> bool:
    """Return True if a manager among *words* installs other than packages of the default index."""
    plain = set[str]()  # a later command of the same manager has no other words
    for at, word in enumerate(words):
        if word in _MANAGERS and word not in plain:
            installs = _installs(word, words[at + 1 :])
            if installs is False:
                return True
            if installs:
                plain.add(word)
    return False


def _sets_what_loads(word: str) -> bool:
    """Return True for a variable, or an option of that name, that advice does not set."""
    if option := _OPTION.fullmatch(word):
        return _LOADING.match(option[1].replace("-", "_")) is not None
    setting = _SETTING.fullmatch(word)
    return bool(setting and setting[1].isupper() and not _is_setting(setting[1], setting[2]))


def _is_of_install(word: str) -> bool:
    """Return True for a word that goes on a command to install packages, in a sentence."""
    return word.startswith("-") or _PACKAGE.fullmatch(word) is not None or "/" in word


def _leaves_tests_out(arguments: Sequence[str]) -> bool:
    return any(
        _UNTESTED.match(option) and re.search(r"\bnot\b", value)
        for option, value in pairwise(arguments)
    )


def _is_python(arguments: Sequence[str]) -> bool:
    """A module or a script of the project; not code on the line, nor what is read from a pipe."""
    rest = list(arguments)
    while rest and re.fullmatch(r"-[uBOEsIvPX]+|-W|-X|(?<=-W)\S+|-W\S+|-X\S+", rest[0]):
        rest = rest[2:] if rest[0] in ("-W", "-X") else rest[1:]
    if rest in (["--version"], ["-V"], ["-VV"]):
        return True
    if not rest or not all(map(_is_argument, rest)):
        return False
    if rest[0] == "-m" and len(rest) > 1:
        module, given = rest[1], rest[2:]
        if module in _MANAGERS:
            return _installs(module, given) is not False
        return (
            re.fullmatch(r"\w+(?:\.\w+)*", module) is not None
            and not _OTHER_MODULES.match(module)
            and not _leaves_tests_out(given)
        )
    return not rest[0].startswith("-") and _is_path(rest[0]) and not _leaves_tests_out(rest)


def _installs(name: str, arguments: Sequence[str]) -> bool | None:
    """Return True if only packages by name are installed, from the default index; None: none."""
    words = list(arguments)
    if _first_word(words) not in _INSTALLING and not (name == "conda" and words[:1] == ["create"]):
        return None
    given = words[words.index(_first_word(words)) + 1 :]
    given = [word for word in words[: words.index(_first_word(words))] if word] + given
    before = ""
    for word in given:
        if word.startswith("-"):
            if not _PLAIN_OPTIONS.fullmatch(word):
                return False
        elif before == "-c" and name in ("conda", "mamba", "micromamba"):
            if word not in _CHANNELS:
                return False
        elif not _are_packages(word) or _OUTSIDE.search(word):
            return False
        elif name in ("npm", "yarn", "pnpm", "bun") and "/" in word and not word.startswith("@"):
            return False  # a repository on GitHub
        before = word
    return True


def _is_edit(action: RemedyAction) -> bool:
    """Return whether an edit only adds or changes plain code, in a file that guards nothing."""
    files = action.values_of("file")
    added = "\n".join((action.target, *action.values_of("with")))
    removed = "\n".join((action.replaced, *action.values_of("without")))
    if any(_GUARDED_FILE.search(file) or not _is_path(file) for file in files):
        return False
    if len(added) + len(removed) > _LONGEST_EDIT or not _is_code(added):
        return False
    kept = {word.lower() for word in _GUARDING.findall(added)}
    return all(word.lower() in kept for word in _GUARDING.findall(removed))


def _is_code(text: str) -> bool:
    """Return whether *text* is code that reaches for nothing, without comments and sentences."""
    sentences = [
        first or second for first, second in _TEXT_IN_CODE.findall(text) if first or second
    ]
    return (
        '"""' not in text
        and "'''" not in text
        and not _HARMFUL_CODE.search(text)
        and all(len(sentence.split()) < _MOST_WORDS for sentence in sentences)
        and not any(len(said.split()) > 2 and _is_prose(said) for said in sentences)
        and not _instructs(text)
    )


def _instructs(text: str) -> bool:
    """Return True if *text* instructs an agent; joints of the words of a name are blanks."""
    return gives_instructions(text) or any(map(_is_prose, _NAMES.findall(text)))


def _is_prose(text: str) -> bool:
    """Return whether the words of *text* are those of a sentence, rather than of a name."""
    words = [word.lower() for word in _WORD.findall(text)]
    if words[:1] == ["test"]:  # names of tests say what they test
        return False
    return (len(words) >= 3 and not _ADDRESSING.isdisjoint(words)) or (
        len(words) >= 4 and not _JOINING.isdisjoint(words)
    )
