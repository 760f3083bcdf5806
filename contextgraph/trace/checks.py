"""Checks: commands that the work of a project has to pass, by program and meaning."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from posixpath import isabs
from typing import NamedTuple

from contextgraph.text import regex
from contextgraph.trace.actions import shell_text
from contextgraph.trace.shell import TEST_RUNNER, Command, commands_in
from contextgraph.trace.steps import StepTrace


class Purpose(StrEnum):
    """Purpose of a check."""

    TEST = "test"
    LINT = "lint"
    BUILD = "build"
    FORMAT = "format"
    OTHER = "other"


_GO, _PYTHON, _RUST = frozenset({".go"}), frozenset({".py", ".pyi"}), frozenset({".rs"})
_JAVA = frozenset({".java", ".kt", ".scala"})
_SCRIPT = frozenset({".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".svelte"})
_OTHER = frozenset({".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".rb", ".php", ".swift", ".sh"})
_CODE = _GO | _PYTHON | _RUST | _JAVA | _SCRIPT | _OTHER
# The files that a rule is about where it names a language: "every change of Go code".
_LANGUAGES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("Go", "Golang"), _GO),
    "Python": _PYTHON,
    "Rust": _RUST,
    **dict.fromkeys(("Java", "Kotlin", "Scala"), _JAVA),
    **dict.fromkeys(("JavaScript", "TypeScript"), _SCRIPT),
}
_LANGUAGE = regex(rf"\b(?:{'|'.join(_LANGUAGES)})\b")
# The purpose of a program, or of its subcommand, and the files that it covers.
_PROGRAMS: Mapping[str, tuple[Purpose, frozenset[str]]] = {
    TEST_RUNNER: (Purpose.TEST, _PYTHON),
    **dict.fromkeys(("ruff", "flake8", "pylint", "mypy", "pyright"), (Purpose.LINT, _PYTHON)),
    **dict.fromkeys(("black", "ruff format", "isort"), (Purpose.FORMAT, _PYTHON)),
    "go test": (Purpose.TEST, _GO),
    "go build": (Purpose.BUILD, _GO),
    **dict.fromkeys(("golangci-lint", "go vet", "staticcheck"), (Purpose.LINT, _GO)),
    **dict.fromkeys(("gofmt", "go fmt", "goimports"), (Purpose.FORMAT, _GO)),
    **dict.fromkeys(("cargo test", "cargo nextest"), (Purpose.TEST, _RUST)),
    **dict.fromkeys(("cargo build", "cargo check"), (Purpose.BUILD, _RUST)),
    "cargo clippy": (Purpose.LINT, _RUST),
    "cargo fmt": (Purpose.FORMAT, _RUST),
    **dict.fromkeys(("jest", "vitest", "mocha"), (Purpose.TEST, _SCRIPT)),
    **dict.fromkeys(("eslint", "tsc", "biome"), (Purpose.LINT, _SCRIPT)),
    "prettier": (Purpose.FORMAT, _SCRIPT),
    **dict.fromkeys(("mvn test", "gradle test"), (Purpose.TEST, _JAVA)),
}
# What these run is named by a word of their own.
_TASKS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("npm", "yarn", "pnpm", "bun"), _SCRIPT),
    **dict.fromkeys(("make", "just", "task", "nox", "tox", "rake", "gradle", "mvn"), _CODE),
}
_TASK = regex(
    r"(?i:\b(?P<test>tests?)\b|\b(?P<lint>lint|check)|\b(?P<build>build|compile)|(?P<format>fmt|format))"
)
# "run the linter after every change", "`go test ./...` before you commit".
_ORDER = regex(r"(?i:\b(?:run|runs|running|use|pass|passes|execute)\b)")
_ALWAYS = regex(
    r"(?i:\bafter (?:each|every|any|all|an?|your|the|making|changing|editing)\b"
    r"|\b(?:each|every) (?:change|edit|time|task|turn)\b"
    r"|\bbefore (?:you |the )?(?:finish|end|done|say)"
    r"|\bwhen (?:you(?:['’]re| are)? )?(?:done|finished?)\b|\balways run\b)"
)
_BEFORE_COMMIT = regex(r"(?i:\bbefore (?:you |each |every |any |a |the )?(?:commit|push))")
_NOT_RUN = regex(r"(?i:\b(?:not|never|don['’]?t|without|no need|unless|instead)\b)")
_NAMED = regex(
    r"(?i:\b(?P<lint>lint(?:er|ers|ing)?)\b|\b(?P<test>tests?|test suite)\b|\b(?P<build>build)\b)"
)
_SPAN = regex(r"`([^`\n]+)`")
# A folder that a rule is about: "after you change code in lib/".
_FOLDER = regex(r"(?<![\w./-])((?:[\w-][\w.-]*/)+)(?![\w*/-]|\.\w)")
# What follows is left out: "after every change except in vendor/".
_EXCEPT = regex(r"(?i:\b(?:except(?:ing)?|excluding|outside)\b)")
_COMMITS = frozenset({"git commit", "git push"})


class Check(NamedTuple):
    """A check: its *purpose*, the *command* if named, and the suffixes of the files it *covers*.

    An unknown command covers all files.
    """

    purpose: Purpose
    command: str
    covers: frozenset[str]


class Order(NamedTuple):
    """A *check* that a rule orders; *at_commit*: only before what was changed is committed.

    Only what is changed in the *folder* counts, where the rule names one, and not in folders that
    it leaves *out*.
    """

    check: Check
    at_commit: bool
    folder: str = ""
    out: tuple[str, ...] = ()

    def covers(self, file: str) -> bool:
        """Return whether a change of *file* is to be followed by the check."""
        suffixes = self.check.covers
        is_covered = not suffixes or PurePosixPath(file).suffix in suffixes
        is_left_out = any(f"/{folder}" in f"/{file}" for folder in self.out)
        return is_covered and not is_left_out and f"/{self.folder}" in f"/{file}"

    def is_run_by(self, line: str) -> bool:
        """Return whether the shell *line* runs the check, or one of its purpose and files."""
        if self.check.purpose is Purpose.OTHER:
            ordered = {_name(one) for one in commands_in(self.check.command)}
            return any(_name(one) in ordered for one in commands_in(line))
        return any(
            one.purpose is self.check.purpose and one.covers & self.check.covers
            for one in checks_in(line)
        )


def checks_in(line: str) -> Iterator[Check]:
    """Yield the checks that the shell *line* runs: each part of a compound line counts."""
    for command in commands_in(line):
        if found := _check(command):
            yield found


def orders_in(text: str) -> Iterator[Order]:
    """Yield the checks that the rule *text* orders after each change, or before a commit."""
    at_commit = bool(_BEFORE_COMMIT.search(text))
    if _NOT_RUN.search(text) or not (_ORDER.search(text) and (at_commit or _ALWAYS.search(text))):
        return
    spans = _SPAN.findall(text)
    named = [check for span in spans for check in checks_in(span)]
    if not spans:  # "always run golangci-lint"
        named = [check for verb in _ORDER.finditer(text) for check in checks_in(text[verb.end() :])]
    # A span of several words is a command.
    prose = _SPAN.sub(lambda one: " " if " " in one[1] else one[1], text)
    within, *left_out = _EXCEPT.split(prose, 1)
    folder = next(iter(folders_in(within)), "")
    out = folders_in(" ".join(left_out))
    if not named and folder:
        commands = [span for span in spans if " " in span.strip()]
        named = [Check(Purpose.OTHER, span, frozenset()) for span in commands[:1]]
    if not named:
        named = [
            Check(Purpose(match.lastgroup or ""), "", _CODE)
            for match in _NAMED.finditer(_SPAN.sub(" ", text))
        ][:1]
    meant = frozenset[str]().union(*map(_LANGUAGES.__getitem__, _LANGUAGE.findall(text)))
    for check in named:
        covers = check.covers & meant or check.covers
        yield Order(check._replace(covers=covers), at_commit, folder, out)


def folders_in(text: str) -> tuple[str, ...]:
    """Return the folders that *text* names with a slash at their end, each once."""
    return tuple(dict.fromkeys(_FOLDER.findall(text)))


def unchecked(turn: Sequence[StepTrace], order: Order) -> tuple[str, ...]:
    """Return the files that *turn* changed after it last ran the check of *order*.

    Any program of the same purpose that covers them counts, whatever else its line does. Of an
    order before a commit, only what was committed so. Nothing outside the folder of the run, such
    as a scratch file.
    """
    changed, committed = dict[str, None](), dict[str, None]()
    for step in turn:
        line = shell_text(step.step.action)
        if order.is_run_by(line):
            changed.clear()
        if any(_name(command) in _COMMITS for command in commands_in(line)):
            committed |= changed
        if step.succeeded:
            files = (*step.reading.scripted, *step.reading.changed)
            changed |= dict.fromkeys(
                file for file in files if order.covers(file) and not isabs(file)
            )
    return tuple(committed if order.at_commit else changed)


def _check(command: Command) -> Check | None:
    name, program = _name(command), command.program.partition(" ")[0]
    for key in (name, command.name, program):
        if key in _PROGRAMS:
            return Check(_PROGRAMS[key][0], command.text, _PROGRAMS[key][1])
    words = (*command.program.split()[1:], *command.words)
    tasks = _TASK.search(" ".join(words)) if program in _TASKS else None
    return tasks and Check(Purpose(tasks.lastgroup or ""), command.text, _TASKS[program])


def _name(command: Command) -> str:
    """Return the program with its first word: `go test`, `git commit`."""
    words = [*command.program.split(), *command.words]
    return " ".join(words[:2])
