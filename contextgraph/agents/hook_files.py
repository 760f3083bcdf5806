"""The files of hooks beside a memory: records of sessions, and compiled advice in SQLite."""

import json
import os
import time
from _sqlite3 import Error, OperationalError, connect  # `sqlite3` loads `datetime` as well
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from msgspec import Struct, field, to_builtins
from msgspec.structs import fields

from contextgraph.errors import SettingsError
from contextgraph.model import ErrorPattern, ErrorSignature, Exposure, Json
from contextgraph.text import mask_secrets, regex
from contextgraph.working_tree import WorkingTree

if TYPE_CHECKING:
    from _sqlite3 import Connection
    from pathlib import Path

    from contextgraph.config import Settings
    from contextgraph.ports import Store
    from contextgraph.ranking import QuotedSession


_UNSAFE = regex(r"[^A-Za-z0-9_-]")
_NAME_CHARS = 100
_EMPTY = ("", (), None)
# Sessions that were not written to for so long are removed when their lines are noted.
_RETENTION = 90 * 86_400  # seconds
_MOST_BYTES = 1 << 19
# Seconds: how old the advice of a server may be; how long a file is written to after compiling.
_REFRESHED_AFTER, _CLOSED_WITHIN = 3600, 2


class HookRecord(Struct, frozen=True):
    """One event of a session: which error the agent met, and what it was shown.

    *folder* is a checksum of the folder that the agent worked in. *family*, *error_type* and
    *template* are those of the error. *text* is without its fence; it is empty, like *context*,
    where nothing was shown; *is_withheld*: see `Exposure`. *forgets*: what was shown before left
    the context of the agent. Times are ISO 8601, in UTC.
    """

    at: str
    event: str
    agent: str
    session: str = ""
    subagent: str = ""
    folder: str = ""
    repo: str = ""
    family: str = ""
    error_type: str = ""
    template: str = ""
    context: str = ""
    text: str = ""
    items: "tuple[Json, ...]" = ()
    is_withheld: bool | None = None
    forgets: bool | None = None

    def repeats(self, other: "HookRecord") -> bool:
        """Return True for the error of *other*, met again later in the same session."""
        mine = (self.session, self.subagent, self.family, self.error_type, self.template)
        its = (other.session, other.subagent, other.family, other.error_type, other.template)
        is_met = self.event.startswith("PostToolUse")
        return is_met and mine == its and self.at > other.at


class HookFiles:
    """The files beside the memory of *settings* that hooks read and append to."""

    def __init__(self, settings: "Settings") -> None:
        base = settings.companion
        self._memory = None if settings.is_remote else settings.address
        self.advice = f"{base}.advice.db"
        self.folder = f"{base}.hooks"
        self.queue = os.path.join(self.folder, "queue.jsonl")
        self.failures = os.path.join(self.folder, "failures.log")
        self.sessions = os.path.join(self.folder, "sessions")

    @property
    def are_used(self) -> bool:
        """Return True where a hook has used this memory, or is to."""
        return os.path.exists(self.folder) or os.path.exists(self.advice)

    def mark_used(self) -> None:
        """Have whatever changes the memory from now on compile its advice, though there is none."""
        _make_folder(self.folder)

    @property
    def is_outdated(self) -> bool:
        """Return True where the memory was written to since its advice was compiled."""
        compiled = _written_at(self.advice)
        if self._memory is None:
            return compiled < time.time() - _REFRESHED_AFTER
        written = max(_written_at(self._memory), _written_at(f"{self._memory}-wal"))
        return compiled + _CLOSED_WITHIN < written

    def append(self, record: HookRecord) -> None:
        """Append *record*, whose text is masked, to the file of its session."""
        values = {field.name: getattr(record, field.name) for field in fields(record)}
        written = {name: value for name, value in values.items() if value not in _EMPTY}
        of_error = {"error_type", "template"} & written.keys()
        written |= {name: mask_secrets(written[name]) for name in of_error}
        _append(self._of(record.session), written)

    def records(self, session: str | None = None) -> Iterator[HookRecord]:
        """The records of one session, or of all of them, the oldest session first."""
        if session is not None:
            paths = [self._of(session)]
        else:
            paths = sorted(_files(self.sessions), key=_written_at)
        names = {field.name for field in fields(HookRecord)}
        for path in paths:
            # A hook has no time for more than the last events of a long session.
            for line in _lines(path, _MOST_BYTES if session is not None else None):
                known = {name: value for name, value in line.items() if name in names}
                known["items"] = tuple(known.get("items", ()))
                yield HookRecord(**known)

    def enqueue(self, transcript: str) -> None:
        """Append the path of a finished session to those that wait to be learned."""
        _append(self.queue, {"at": now(), "transcript": transcript})

    def fail(self, reason: str) -> None:
        """Append why a hook could not answer, secrets masked."""
        _append(self.failures, {"at": now(), "reason": mask_secrets(reason)[:500]})

    def failed(self) -> Sequence[str]:
        """Why hooks could not answer, the last reason last."""
        return [str(line.get("reason", "")) for line in _lines(self.failures)]

    def waiting(self) -> Sequence[str]:
        """The queue files; more than one where learning was interrupted."""
        return sorted(_files(self.folder, "queue"))

    def take_queue(self) -> "tuple[Sequence[str], Sequence[Path]]":
        """The transcripts that wait and are there, and the files to remove once they are learned.

        The queue is moved aside first, so that a line that is appended meanwhile is not lost. What
        an interrupted process left is taken as well.
        """
        from contextlib import suppress
        from pathlib import Path

        aside = f"queue.{os.getpid()}.{os.urandom(4).hex()}.jsonl"
        with suppress(FileNotFoundError):  # nothing waits, or another process was faster
            os.rename(self.queue, os.path.join(self.folder, aside))
        taken = [path for path in self.waiting() if path != self.queue]
        lines = [line for path in taken for line in _lines(path)]
        transcripts = dict.fromkeys(Path(str(line["transcript"])) for line in lines)
        # Claude Code writes those of sub-agents into a folder beside that of their session.
        paths = dict.fromkeys(
            path for transcript in transcripts for path in (transcript, transcript.with_suffix(""))
        )
        return [str(path) for path in paths if path.exists()], [Path(path) for path in taken]

    def note_shown(self, store: "Store") -> None:
        """Record in *store* what was shown, so that it is credited when the session is learned."""
        if shown := [_exposure(record) for record in self.records() if record.context]:
            store.exposures.add(shown)
        self._remove_old()

    def _remove_old(self) -> None:
        """Remove the files of sessions that ended long ago."""
        oldest = time.time() - _RETENTION
        for path in _files(self.sessions):
            if _written_at(path) < oldest:
                os.unlink(path)

    def _of(self, session: str) -> str:
        name = _UNSAFE.sub("_", session)[:_NAME_CHARS] or "_"
        return os.path.join(self.sessions, f"{name}.jsonl")


def _exposure(record: HookRecord) -> "Exposure":
    from datetime import datetime

    from contextgraph.codec import decoded
    from contextgraph.model import ErrorSignature, Exposure, Family, ShownItem
    from contextgraph.trace.signature import error_id

    error = None
    if record.family:
        family = Family(record.family)
        error = error_id(ErrorSignature(family, record.error_type, "", record.template))
    items = [decoded(ShownItem, item) for item in record.items]
    return Exposure.of(
        record.context,
        items,
        datetime.fromisoformat(record.at),
        error,
        is_withheld=record.is_withheld,
        text=record.text,
    )


def _files(folder: str, beginning: str = "") -> Sequence[str]:
    """The files of lines in *folder* whose names have this *beginning*."""
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    found = (name for name in names if name.startswith(beginning) and name.endswith(".jsonl"))
    return [os.path.join(folder, name) for name in found]


def _make_folder(path: str) -> None:
    os.makedirs(path, mode=0o700, exist_ok=True)


def _written_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def now() -> str:
    """The time as records have it: ISO 8601, in UTC, with milliseconds."""
    at = time.time_ns() // 1_000_000
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at // 1000))
    return f"{whole}.{at % 1000:03}+00:00"


def _append(path: str, record: Mapping[str, object]) -> None:
    """Append one line in one write, so that lines of several processes do not mix."""
    _make_folder(os.path.dirname(path))
    line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def _lines(path: str, most: int | None = None) -> "Iterator[dict[str, Any]]":
    """The objects in *path*, or in its last *most* bytes; a line that was cut off is left out."""
    try:
        with open(path, "rb") as file:
            if most is not None and (size := os.path.getsize(path)) > most:
                file.seek(size - most)
            content = file.read()
    except FileNotFoundError:
        return
    for line in content.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


# What stands for the first names that an error message quotes, until an agent meets the error.
STAND_INS = ("contextgraphnameone", "contextgraphnametwo", "contextgraphnamethree")

_SCHEMA = """
CREATE TABLE error_advice (
    repo TEXT NOT NULL, family TEXT NOT NULL, error_type TEXT NOT NULL, template TEXT NOT NULL,
    names TEXT NOT NULL, advice TEXT NOT NULL,
    PRIMARY KEY (repo, family, error_type, template, names)
) WITHOUT ROWID;
CREATE TABLE repository (
    agent TEXT NOT NULL, repo TEXT NOT NULL, advice TEXT NOT NULL, PRIMARY KEY (agent, repo)
) WITHOUT ROWID;
CREATE TABLE conversation (
    repo TEXT NOT NULL, id TEXT NOT NULL, said TEXT NOT NULL, PRIMARY KEY (repo, id)
) WITHOUT ROWID;
CREATE TABLE conversation_word (
    repo TEXT NOT NULL, word TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (repo, word, id)
) WITHOUT ROWID;
CREATE TABLE source (revision INTEGER NOT NULL, gate TEXT NOT NULL, warnings TEXT NOT NULL);
PRAGMA user_version = 15;
"""
_VERSION = 15
_WITH_WORDS = """
SELECT id, count(*) FROM conversation_word
WHERE repo = ? AND word IN (SELECT value FROM json_each(?))
GROUP BY id ORDER BY count(*) DESC, id"""
_HAS_CONVERSATION = "SELECT 1 FROM conversation WHERE repo = ? LIMIT 1"
_PUT_CONVERSATION = "INSERT OR REPLACE INTO conversation VALUES (?, ?, ?)"
_PUT_WORD = "INSERT OR IGNORE INTO conversation_word VALUES (?, ?, ?)"
_CONVERSATION = "SELECT said FROM conversation WHERE repo = ? AND id = ?"
# Of statements on one command: the newest.
_MOST_ORDERS = 2
_FOR_ERROR = """
SELECT advice FROM error_advice
WHERE repo = ? AND family = ? AND error_type = ? AND template = ? AND names = ?"""
_PUT_ERROR = "INSERT OR REPLACE INTO error_advice VALUES (?, ?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM error_advice WHERE family = ? AND error_type = ? AND template = ?"
_KEEP = "DELETE FROM {} WHERE repo NOT IN (SELECT value FROM json_each(?))"
_OF_REPOSITORIES = ("error_advice", "repository", "conversation", "conversation_word")
_COUNTS = """
SELECT (SELECT count(*) FROM error_advice WHERE advice != '{}'),
    (SELECT count(DISTINCT repo) FROM repository
    WHERE repo != '' AND json_extract(advice, '$.text') IS NOT NULL)"""
# What is known of one agent is not mixed with what is known of others.
_FOR_REPOSITORY = """
SELECT advice FROM repository
WHERE agent = :agent AND repo IN (:repo, '') OR agent = '' AND repo = :repo
ORDER BY agent DESC, repo DESC LIMIT 1"""

ErrorKey: "TypeAlias" = tuple[str, str, str, str, str]
"""Repository in lower case, family, type, template, names; what is not known is empty."""


class Advice(Struct, frozen=True):
    """A text without its fence, and its items, as `codec.encoded` gives a `ShownItem`.

    An empty *text* means that there is no advice.
    """

    text: str = ""
    items: "Sequence[Json]" = ()


class CompiledRemedy(Struct, frozen=True):
    """One remedy of an error: its *line* in a text, what that *says*, and its *item*.

    *installs*: it advises to install something; *programs* are those that it replaces, *paths*
    those of the repository that it names. *general* has line, saying and item for where one of
    these is missing: empty where it is silent then.
    """

    line: str
    said: str
    item: "Json"
    installs: bool = False
    programs: Sequence[str] = ()
    paths: Sequence[str] = ()
    general: "Sequence[Json]" = ()


class ErrorAdvice(Struct, frozen=True):
    """Remedies for an error, best first; a text has room for *most* of the *remedies*.

    *heads* stand before a single remedy, and before several.
    """

    remedies: Sequence[CompiledRemedy] = ()
    most: int = 0
    heads: Sequence[str] = ()


# A line: its title, its parts with the paths that each names, and a symbol or an empty text, and
# its item.
Line: "TypeAlias" = tuple[str, Sequence[tuple[str, Sequence[tuple[str, str]]]], "Json"]


class RepositoryAdvice(Struct, frozen=True):
    """The advice for a repository.

    *text* precedes *lines*. *commands* are texts and forms of commands that do not run, each with
    its warning and the paths that this names; *files* are paths, with the notes of people on them,
    each with the words two of which an edit has to put in; none where any edit will do. *orders*
    say how commands are to be run, the newest first: each as it is shown, parts of words one of
    which such a command has, and its words. Notes end with their id.
    """

    text: str = ""
    lines: Sequence[Line] = ()
    commands: Mapping[str, tuple[str, Sequence[str]]] = field(default_factory=dict)
    files: Mapping[str, Sequence[tuple[str, Sequence[str], str]]] = field(default_factory=dict)
    orders: Sequence[tuple[str, Sequence[str], str, str]] = ()


class AdviceFile:
    """The advice that was compiled to the file *path*; raises `sqlite3.Error` where it is not."""

    def __init__(self, path: "Path | str") -> None:
        # Immutable: it is only ever replaced as a whole, so that no lock is needed.
        name = os.path.abspath(path).replace(os.sep, "/").replace("%", "%25")
        address = f"file:///{name.lstrip('/').replace('?', '%3F').replace('#', '%23')}"
        address += "?mode=ro&immutable=1"
        self._connection = connect(address, uri=True)

    def for_error(
        self,
        signature: "ErrorSignature",
        names: Sequence[str],
        repo: str,
        tree: WorkingTree | None = None,
        attempt: str = "",
        already_shown: Collection[str] = (),
    ) -> Advice:
        """Return what cleared this error: the most exact entry there is, which may be empty.

        *names* are those that the message quotes, *already_shown* are texts. The steps are those
        of `contextgraph.advising.pipeline`: a remedy is silent where it replaces a program that the
        failed *attempt* does not name, where it names what *tree* lacks, unless general terms say
        it as well, and where a text *already_shown* says the same.
        """
        for key in _keys(signature, names, repo.casefold()):
            if row := self._connection.execute(_FOR_ERROR, key).fetchone():
                known = json.loads(row[0])
                remedies = (CompiledRemedy(**record) for record in known.pop("remedies", ()))
                settled = (_settled(remedy, names, repo, tree, attempt) for remedy in remedies)
                return _fitting(ErrorAdvice(**known), filter(None, settled), already_shown)
        return Advice()

    def for_repository(self, repo: str, tree: WorkingTree | None = None, agent: str = "") -> Advice:
        """Return the start of the work of *agent* in this repository, without what *tree* lacks."""
        known = self._repository(repo, agent)
        shown = [(text, line[2]) for line in known.lines if (text := _line(line, tree))]
        # A line of its own is a heading; what people said holds without what follows.
        if known.lines and not shown and "\n" not in known.text:
            return Advice()
        text = "\n".join((known.text, *(text for text, _ in shown)))
        return Advice(text, [item for _, item in shown])

    def for_command(
        self, repo: str, line: str, tree: WorkingTree | None = None, agent: str = ""
    ) -> Sequence[Advice]:
        """Return what people said about the commands of a shell *line*, and whether it runs here.

        Nothing on that where what runs instead is not in *tree*.
        """
        texts = [*self._orders(repo, line), Advice(self._warning(repo, line, tree, agent))]
        return [advice for advice in texts if advice.text]

    def _orders(self, repo: str, line: str) -> Sequence[Advice]:
        typed = line.casefold()
        known = [
            order
            for order in self._repository(repo, "").orders
            if any(word in typed for word in order[1])
        ]
        if not known:
            return ()
        from contextgraph.trace.ordered import bears_on_command

        said = (
            Advice(text, [{"id": id_}])
            for text, _, content, id_ in known
            if bears_on_command(content, line, repo)
        )
        return [*islice(said, _MOST_ORDERS)]

    def _warning(self, repo: str, line: str, tree: WorkingTree | None, agent: str) -> str:
        known = self._repository(repo, agent).commands
        # What reads a command takes longer than all else.
        if not any(name.partition(" ")[0] in line for name in known):
            return ""
        from contextgraph.trace.actions import command_use

        use = command_use(line)
        warnings = [known[name] for name in (use.text, use.runner) if name in known] if use else []
        return next((text for text, paths in warnings if _has_all(tree, paths)), "")

    def for_edit(self, repo: str, path: str, written: str = "") -> Sequence[Advice]:
        """Return what people noted about the file *path*, relative to the root, or a parent folder.

        A note may name the end of the path only, and may matter only to some of what is *written*.
        """
        noted = [
            note
            for name, notes in self._repository(repo, "").files.items()
            if f"/{path}".endswith(f"/{name}") or path.startswith(f"{name}/")
            for note in notes
        ]
        if not any(words for _, words, _ in noted):
            return _each(noted)
        from contextgraph.ranking import FEWEST_WRITTEN
        from contextgraph.text import stems

        put_in = {*stems(written)}
        return _each(
            [note for note in noted if not note[1] or len(put_in & {*note[1]}) >= FEWEST_WRITTEN]
        )

    def for_request(self, repo: str, request: str) -> Advice:
        """Return decisions about *request* in earlier sessions: see `Statements.for_request`.

        Nothing where it is not probable that one of them was about it.
        """
        place = repo.casefold()
        if not self._connection.execute(_HAS_CONVERSATION, (place,)).fetchone():
            return Advice()  # what splits a text into stems takes longer than all else
        from contextgraph.ranking import PROBABLE, fitting, quotes_about, request_words

        words = request_words(request)
        load = partial(self._conversation, place)
        rated, probability = quotes_about(words, self._proposed(place, words), load)
        lines = fitting(quote for _, quote in rated) if probability >= PROBABLE else []
        return Advice(
            "\n".join(line for _, line in lines), [{"id": quote.id} for quote, _ in lines]
        )

    def _proposed(self, place: str, words: Sequence[str]) -> "dict[str, QuotedSession]":
        """The conversations with the statements that a store proposes for a request of *words*."""
        from contextgraph.ranking import CONVERSATIONS, PROPOSED

        found: dict[str, QuotedSession] = {}
        proposed: list[tuple[int, str, str, str]] = []
        for id_, most in self._connection.execute(_WITH_WORDS, (place, json.dumps(words))):
            # No statement of the conversations that follow shares as many words.
            if len(proposed) >= PROPOSED and proposed[PROPOSED - 1][0] > most:
                break
            found[id_] = known = self._conversation(place, id_)
            title = {*known.title}
            for quote in known.quotes:
                shared = len((title | {*quote.words}) & {*words})
                time = quote.place.partition(" ")[0]
                proposed.append((shared, time, quote.id, id_))
            proposed.sort(key=itemgetter(2))
            proposed.sort(key=itemgetter(0, 1), reverse=True)
        best = dict.fromkeys(id_ for shared, *_, id_ in proposed[:PROPOSED] if shared)
        return {id_: found[id_] for id_ in [*best][:CONVERSATIONS]}

    def _conversation(self, repo: str, id_: str) -> "QuotedSession":
        from contextgraph.ranking import Quote, QuotedSession

        row = self._connection.execute(_CONVERSATION, (repo, id_)).fetchone()
        known = QuotedSession(id_, *(json.loads(row[0]) if row else ("", [], {}, [])))
        return known._replace(quotes=[Quote(*quote) for quote in known.quotes])

    def submission_warnings(self) -> dict[str, str]:
        """Sign of a run that is submitted too early -> the warning."""
        (warnings,) = self._connection.execute("SELECT warnings FROM source").fetchone()
        return dict(json.loads(warnings))

    def revision(self, gate: str) -> int | None:
        """The revision of the memory that it was compiled at.

        None for another version's file, and where the memory had another *gate* than this.
        """
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            return None
        revision, used = self._connection.execute("SELECT revision, gate FROM source").fetchone()
        return int(revision) if used == gate else None

    def _repository(self, repo: str, agent: str) -> RepositoryAdvice:
        asked = {"agent": agent, "repo": repo.casefold()}
        row = self._connection.execute(_FOR_REPOSITORY, asked).fetchone()
        return RepositoryAdvice(**json.loads(row[0])) if row else RepositoryAdvice()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *raised: object) -> None:
        self._connection.close()


def compiled_revision(path: "Path | str", gate: str) -> int | None:
    """The revision of the memory that the file *path* was compiled at.

    None where it is not there or damaged, another version of ContextGraph wrote it, or the memory
    had another *gate*: then it has to be compiled as a whole.
    """
    try:
        with AdviceFile(path) as file:
            return file.revision(gate)
    except Error:
        return None


def write_advice(  # noqa: PLR0913  (one parameter per part of the file)
    path: "Path",
    revision: int,
    errors: Iterable[tuple[ErrorKey, ErrorAdvice]],
    repositories: Iterable[tuple[str, str, RepositoryAdvice]],
    warnings: Mapping[str, str],
    *,
    gate: str = "",
    conversations: "Iterable[tuple[str, Iterable[QuotedSession]]]" = (),
    outdated: "Iterable[ErrorPattern] | None" = None,
    known: Collection[str] = (),
) -> tuple[int, int]:
    """Replace the file *path* in one step; how many texts on errors and on repositories it holds.

    *revision* and *gate* are those of the memory; *repositories* go by an agent, empty for any, and
    their names in lower case, empty for any; *conversations* are all of a repository. With
    *outdated*, what it says of other errors stays, in those repositories that are *known*. Raises
    `SettingsError` where it cannot be written.
    """
    from contextlib import closing

    from contextgraph.processes import replacing

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(path) as part:
            if outdated is not None:
                part.write_bytes(path.read_bytes())
            with closing(connect(part)) as connection:
                connection.execute("PRAGMA journal_mode = OFF")
                # Nothing of a session that was deleted stays in the file.
                connection.execute("PRAGMA secure_delete = ON")
                if outdated is None:
                    connection.executescript(_SCHEMA)
                else:
                    for table in _OF_REPOSITORIES:
                        connection.execute(_KEEP.format(table), (json.dumps([*known]),))
                patterns = [
                    (pattern.family, pattern.error_type, pattern.template)
                    for pattern in outdated or ()
                ]
                connection.executemany(_REMOVE, patterns)
                connection.executemany(
                    _PUT_ERROR, ((*key, _written(advice)) for key, advice in errors)
                )
                connection.executemany(
                    "INSERT OR REPLACE INTO repository VALUES (?, ?, ?)",
                    ((agent, repo, _written(advice)) for agent, repo, advice in repositories),
                )
                for repo, talks in conversations:
                    _put_conversations(connection, repo, talks)
                connection.execute("DELETE FROM source")
                connection.execute(
                    "INSERT INTO source VALUES (?, ?, ?)", (revision, gate, json.dumps(warnings))
                )
                connection.commit()
                counts: tuple[int, int] = connection.execute(_COUNTS).fetchone()
    except (OSError, OperationalError) as error:
        raise SettingsError(f"{path} cannot be written: {error}") from error
    return counts


def _put_conversations(
    connection: "Connection", repo: str, conversations: "Iterable[QuotedSession]"
) -> None:
    for table in ("conversation", "conversation_word"):
        connection.execute(f"DELETE FROM {table} WHERE repo = ?", (repo,))
    for talk in conversations:
        id_, *record = talk
        connection.execute(_PUT_CONVERSATION, (repo, id_, json.dumps(record)))
        words = {*talk.title, *talk.counts, *chain.from_iterable(one.words for one in talk.quotes)}
        connection.executemany(_PUT_WORD, ((repo, word, id_) for word in words))


def _written(advice: ErrorAdvice | RepositoryAdvice) -> str:
    """*advice* as JSON, without what is empty."""
    record = {name: value for name, value in to_builtins(advice).items() if value}
    if isinstance(advice, ErrorAdvice) and advice.remedies:
        record["remedies"] = [
            {name: value for name, value in to_builtins(remedy).items() if value}
            for remedy in advice.remedies
        ]
    return json.dumps(record)


def _each(noted: Sequence[tuple[str, Sequence[str], str]]) -> Sequence[Advice]:
    """Return *noted* as advice, each text once."""
    ids = {text: id_ for text, _, id_ in noted}
    return [Advice(text, [{"id": id_}]) for text, id_ in ids.items()]


def _line(line: Line, tree: WorkingTree | None) -> str:
    """*line* with those items whose names *tree* has; empty for none."""
    title, parts, _ = line
    shown = [
        text for text, names in parts if tree is None or all(tree.has(*name) for name in names)
    ]
    return f"{title} {', '.join(shown)}" if shown else ""


def _could_replace(programs: Sequence[str], attempt: str) -> bool:
    """Return True where *attempt* names one of *programs*, or there are none."""
    if not programs:
        return True
    from contextgraph.trace.shell import names_program

    return any(names_program(program, attempt) for program in programs)


def _has_all(tree: WorkingTree | None, paths: Sequence[str]) -> bool:
    return tree is None or all(map(tree.has, paths))


def _keys(signature: "ErrorSignature", names: Sequence[str], repo: str) -> "Iterator[ErrorKey]":
    """The keys of *signature*, the most exact first."""
    variants = signature.variants()
    for where in dict.fromkeys((repo, "")):
        for variant in variants:
            if where and names:
                yield (
                    where,
                    variant.family,
                    variant.error_type,
                    variant.template,
                    "\n".join(names),
                )
            yield (where, variant.family, variant.error_type, variant.template, "")
    for where in dict.fromkeys((repo, "")):
        for variant in variants:
            yield (where, variant.family, variant.error_type, "", "")


def _settled(
    remedy: CompiledRemedy,
    names: Sequence[str],
    repo: str,
    tree: WorkingTree | None,
    attempt: str,
) -> CompiledRemedy | None:
    """Return *remedy* as it can be said here, with *names* for their stand-ins; None for not."""
    from contextgraph.text import mask_secrets
    from contextgraph.trace.shell import is_never_installed, is_own_module

    if not _could_replace(remedy.programs, attempt):
        return None
    line, said, item = remedy.line, remedy.said, remedy.item
    if not _has_all(tree, remedy.paths):
        if not remedy.general:
            return None
        line, said, item = str(remedy.general[0]), str(remedy.general[1]), remedy.general[2]
    for stand_in, name in zip(STAND_INS, names, strict=False):
        if stand_in in line:  # all else was masked when it was learned
            line, said = (text.replace(stand_in, mask_secrets(name)) for text in (line, said))
    is_own = remedy.installs and any(
        is_own_module(name, repo) or is_never_installed(name, "") for name in names
    )
    is_incomplete = any(stand_in in line for stand_in in STAND_INS)
    return None if is_own or is_incomplete else CompiledRemedy(line, said, item)


def _fitting(
    known: ErrorAdvice, remedies: Iterable[CompiledRemedy], already_shown: Collection[str]
) -> Advice:
    """Return the text of those of *remedies* that are new and that there is room for."""
    new = [one for one in remedies if not any(one.said in text for text in already_shown)][
        : known.most
    ]
    if not new:
        return Advice()
    one, several = known.heads
    lines = [f"{number}. {remedy.line}" for number, remedy in enumerate(new, start=1)]
    text = f"{one} {new[0].line}" if len(new) == 1 else "\n".join((several, *lines))
    return Advice(text, [remedy.item for remedy in new])
