"""Compiled advice: one read-only SQLite file beside a memory, read by a process that just began."""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from contextgraph.errors import SettingsError
from contextgraph.working_tree import WorkingTree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contextgraph.model import ErrorPattern, ErrorSignature, Json

# What stands for the first names that an error message quotes, until an agent meets the error.
STAND_INS = ("contextgraphnameone", "contextgraphnametwo", "contextgraphnamethree")

_SCHEMA = """
CREATE TABLE error_advice (
    repo TEXT NOT NULL, family TEXT NOT NULL, error_type TEXT NOT NULL, template TEXT NOT NULL,
    names TEXT NOT NULL, text TEXT NOT NULL, items TEXT NOT NULL, installs INTEGER NOT NULL,
    programs TEXT NOT NULL, paths TEXT NOT NULL,
    general TEXT NOT NULL, general_items TEXT NOT NULL,
    PRIMARY KEY (repo, family, error_type, template, names)
) WITHOUT ROWID;
CREATE TABLE repository (
    repo TEXT PRIMARY KEY, text TEXT NOT NULL, lines TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE command (
    repo TEXT NOT NULL, command TEXT NOT NULL, text TEXT NOT NULL, paths TEXT NOT NULL,
    PRIMARY KEY (repo, command)
) WITHOUT ROWID;
CREATE TABLE file (
    repo TEXT NOT NULL, path TEXT NOT NULL, texts TEXT NOT NULL, PRIMARY KEY (repo, path)
) WITHOUT ROWID;
CREATE TABLE submission (sign TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE source (revision INTEGER NOT NULL);
PRAGMA user_version = 4;
"""
_VERSION = 4
_FOR_ERROR = """
SELECT text, items, installs, programs, paths, general, general_items FROM error_advice
WHERE repo = ? AND family = ? AND error_type = ? AND template = ? AND names = ?"""
_REMOVE = "DELETE FROM error_advice WHERE family = ? AND error_type = ? AND template = ?"
_COUNTS = """
SELECT (SELECT count(*) FROM error_advice WHERE text != ''),
    (SELECT count(*) FROM repository WHERE text != '')"""

ErrorKey: TypeAlias = tuple[str, str, str, str, str]
"""Repository in lower case, family, type, template, names; what is not known is empty."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A text without its fence, and its items, as `codec.encoded` gives a `ShownItem`.

    *installs*: it advises to install something; *programs* are those that its remedies replace, if
    each of them replaces one; *paths* are those of the repository that it names.
    An empty *text* means that the memory has nothing to say. *general* is what is said, of
    *general_items*, where one of *paths* is gone.
    """

    text: str
    items: "tuple[Json, ...]" = ()
    installs: bool = False
    programs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    general: str = ""
    general_items: "tuple[Json, ...]" = ()


# A line: its title, and its items with the paths that each names, and a symbol or an empty text.
Line: TypeAlias = tuple[str, Sequence[tuple[str, Sequence[tuple[str, str]]]]]


@dataclass(frozen=True, slots=True)
class RepositoryAdvice:
    """What is said in a repository, by its name in lower case.

    *text* stands before *lines*, or alone. *commands* are texts and forms of commands that do not
    run, with what is to be said of each; *files* are paths, with what people noted of them.
    """

    repo: str
    text: str
    lines: Sequence[Line]
    commands: Mapping[str, Advice]
    files: Mapping[str, Sequence[str]]


class AdviceFile:
    """The advice that was compiled to the file *path*; raises `sqlite3.Error` where it is not."""

    def __init__(self, path: Path) -> None:
        # Immutable: it is only ever replaced as a whole, so that no lock is needed.
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        self._connection = sqlite3.connect(address, uri=True)

    def for_error(
        self,
        signature: "ErrorSignature",
        names: Sequence[str],
        repo: str,
        tree: WorkingTree | None = None,
        attempt: str = "",
    ) -> Advice:
        """What cleared this error: the most exact entry that there is, though it may be empty.

        *names* are those that the message quotes. In general terms where it names what *tree*
        lacks; nothing where it replaces a program that the failed *attempt* does not name.
        """
        for key in _keys(signature, names, repo.casefold()):
            if row := self._connection.execute(_FOR_ERROR, key).fetchone():
                text, items, installs, programs, paths, general, general_items = row
                if not _could_replace(json.loads(programs), attempt):
                    return Advice("")
                if not _has_all(tree, paths):
                    text, items = general, general_items
                return _advice(text, tuple(json.loads(items)), bool(installs), names, repo)
        return Advice("")

    def for_repository(self, repo: str, tree: WorkingTree | None = None) -> Advice:
        """What all work in this repository begins with, without what *tree* lacks."""
        query = "SELECT text, lines FROM repository WHERE repo = ?"
        row = self._connection.execute(query, (repo.casefold(),)).fetchone()
        text, lines = row or ("", "[]")
        known: list[Line] = json.loads(lines)
        shown = [line for one in known if (line := _line(one, tree))]
        return Advice("" if known and not shown else "\n".join((text, *shown)))

    def for_command(self, repo: str, line: str, tree: WorkingTree | None = None) -> str:
        """What is known of a shell *line* that does not run; empty for nothing.

        Nothing where what runs instead is not in *tree*.
        """
        query = "SELECT command, text, paths FROM command WHERE repo = ?"
        known = {name: one for name, *one in self._connection.execute(query, (repo.casefold(),))}
        # What reads a command takes longer than all else.
        if not any(name.partition(" ")[0] in line for name in known):
            return ""
        from contextgraph.trace.project import command_use

        use = command_use(line)
        found = [known[one] for one in (use.text, use.runner) if one in known] if use else []
        return next((text for text, paths in found if _has_all(tree, paths)), "")

    def for_edit(self, repo: str, path: str) -> Sequence[str]:
        """What people noted of the file *path*, relative to the root, or of a folder that has it.

        A note may name the end of the path only.
        """
        query = "SELECT path, texts FROM file WHERE repo = ?"
        known = self._connection.execute(query, (repo.casefold(),))
        found = (
            json.loads(texts)
            for name, texts in known
            if f"/{path}".endswith(f"/{name}") or path.startswith(f"{name}/")
        )
        return list(dict.fromkeys(chain.from_iterable(found)))

    def submission_warnings(self) -> dict[str, str]:
        """Sign of a run that is submitted too early -> the warning."""
        return dict(self._connection.execute("SELECT sign, text FROM submission"))

    def revision(self) -> int | None:
        """The revision of the memory that it was compiled at; None for another version's file."""
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            return None
        (revision,) = self._connection.execute("SELECT revision FROM source").fetchone()
        return int(revision)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._connection.close()


def compiled_revision(path: Path) -> int | None:
    """The revision of the memory that the file *path* was compiled at.

    None where it is not there or damaged, or another version of ContextGraph wrote it: then it has
    to be compiled as a whole.
    """
    try:
        with AdviceFile(path) as file:
            return file.revision()
    except sqlite3.Error:
        return None


def write_advice(
    path: Path,
    revision: int,
    errors: Iterable[tuple[ErrorKey, Advice]],
    repositories: Iterable[RepositoryAdvice],
    warnings: Iterable[tuple[str, str]],
    *,
    outdated: "Iterable[ErrorPattern] | None" = None,
) -> tuple[int, int]:
    """Replace the file *path* in one step; how many texts on errors and on repositories it holds.

    *revision* is that of the memory. With *outdated*, what it says of other errors stays. Raises
    `SettingsError` where it cannot be written.
    """
    with _replacing(path) as part:
        if outdated is not None:
            part.write_bytes(path.read_bytes())
        with closing(sqlite3.connect(part)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            if outdated is None:
                connection.executescript(_SCHEMA)
            patterns = [(one.family, one.error_type, one.template) for one in outdated or ()]
            connection.executemany(_REMOVE, patterns)
            connection.executemany(
                "INSERT OR REPLACE INTO error_advice VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                ((*key, *_error_row(one)) for key, one in errors),
            )
            connection.executescript("DELETE FROM submission; DELETE FROM source")
            for one in repositories:
                _put(connection, one)
            connection.executemany("INSERT INTO submission VALUES (?, ?)", warnings)
            connection.execute("INSERT INTO source VALUES (?)", (revision,))
            connection.commit()
            found: tuple[int, int] = connection.execute(_COUNTS).fetchone()
    return found


def _error_row(advice: Advice) -> tuple[str | bool, ...]:
    lists = (advice.items, advice.programs, advice.paths, advice.general_items)
    items, programs, paths, general_items = map(json.dumps, lists)
    return advice.text, items, advice.installs, programs, paths, advice.general, general_items


def _put(connection: sqlite3.Connection, advice: RepositoryAdvice) -> None:
    repo, insert = advice.repo, "INSERT OR REPLACE INTO repository VALUES (?, ?, ?)"
    connection.execute(insert, (repo, advice.text, json.dumps(advice.lines)))
    connection.execute("DELETE FROM command WHERE repo = ?", (repo,))
    commands = (
        (repo, command, one.text, json.dumps(one.paths)) for command, one in advice.commands.items()
    )
    connection.executemany("INSERT INTO command VALUES (?, ?, ?, ?)", commands)
    connection.execute("DELETE FROM file WHERE repo = ?", (repo,))
    files = ((repo, path, json.dumps(texts)) for path, texts in advice.files.items())
    connection.executemany("INSERT INTO file VALUES (?, ?, ?)", files)


@contextmanager
def _replacing(path: Path) -> "Iterator[Path]":
    """A file to write, which then replaces *path*."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        yield part
        part.replace(path)
    except (OSError, sqlite3.OperationalError) as error:
        raise SettingsError(f"{path} cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def _line(line: Line, tree: WorkingTree | None) -> str:
    """*line* with those items whose names *tree* has; empty for none."""
    title, parts = line
    shown = [text for text, names in parts if tree is None or all(tree.has(*one) for one in names)]
    return f"{title} {', '.join(shown)}" if shown else ""


def _could_replace(programs: Sequence[str], attempt: str) -> bool:
    """Whether *attempt* names one of *programs*; True for none."""
    if not programs:
        return True
    from contextgraph.trace.remedies.circumstances import names_program

    return any(names_program(one, attempt) for one in programs)


def _has_all(tree: WorkingTree | None, paths: str) -> bool:
    return tree is None or all(map(tree.has, json.loads(paths)))


def _keys(signature: "ErrorSignature", names: Sequence[str], repo: str) -> "Iterator[ErrorKey]":
    """The keys of *signature*, the most exact first."""
    variants = signature.variants()
    for where in dict.fromkeys((repo, "")):
        for one in variants:
            if where and names:
                yield (where, one.family, one.error_type, one.template, "\n".join(names))
            yield (where, one.family, one.error_type, one.template, "")
    for where in dict.fromkeys((repo, "")):
        for one in variants:
            yield (where, one.family, one.error_type, "", "")


def _advice(
    text: str, items: "tuple[Json, ...]", installs: bool, names: Sequence[str], repo: str
) -> Advice:
    """The advice with *names* for their stand-ins; empty where one is missing.

    Empty as well where it is to install what the repository itself is.
    """
    from contextgraph.text import mask_secrets
    from contextgraph.trace.remedies.placeholders import is_never_installed, is_own_module

    for stand_in, name in zip(STAND_INS, names, strict=False):
        if stand_in in text:  # all else was masked when it was learned
            text = text.replace(stand_in, mask_secrets(name))
    is_own = installs and any(
        is_own_module(name, repo) or is_never_installed(name, "") for name in names
    )
    is_incomplete = any(stand_in in text for stand_in in STAND_INS)
    return Advice("") if is_own or is_incomplete else Advice(text, items, installs)
