"""``contextgraph setup``, ``doctor``, ``config``, ``integrations``, ``hook``: the installation."""

import json
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated, Literal

import click
from msgspec import Struct

from contextgraph.agents.hook_files import HookFiles
from contextgraph.cli.commands import Common, Yes, argument, common_options, described, flag, option
from contextgraph.cli.output import (
    DONE,
    FAILED,
    PARTLY_DONE,
    confirm,
    emit,
    fail,
    print_box,
    print_command,
    print_table,
    print_text,
    styled,
    warn,
)
from contextgraph.cli.team import forget_team, learn_team, rules_written, taken_line
from contextgraph.config import (
    HISTORIES,
    LESSONS,
    SETTINGS_FILE,
    TRUSTED_SETTINGS,
    ProjectFile,
    data_folder,
    environment_of_hooks,
    ignored_by_hooks,
    load_settings,
    settings_in_force,
    trusted_folders,
    user_settings_file,
)
from contextgraph.errors import MemoryNotFoundError, SettingsError
from contextgraph.knowledge.entries import Entries, entries_in
from contextgraph.knowledge.team import trust_lessons
from contextgraph.model import LESSONS_FOLDER, HealthCheck, LessonStatus, Origin, is_subagent
from contextgraph.model.values import replace
from contextgraph.service.records import record_of
from contextgraph.system.processes import start_detached, written_at
from contextgraph.text import gives_instructions, mask_secrets, number_of, one_line

if TYPE_CHECKING:
    from rich.text import Text

    from contextgraph.advising.freshness import Stale
    from contextgraph.agents.install import Agent, SettingsFile
    from contextgraph.config import Settings
    from contextgraph.learning.statistics import Friction
    from contextgraph.memory.agent_memory import AgentMemory
    from contextgraph.model import Json, Lesson
    from contextgraph.readers import Discovered
    from contextgraph.store.memory_store import RunStore, Store


# The local model: its extra, its size, and how many passages it embeds on one core of a busy
# machine.
_LOCAL, _MODEL_SIZE, _EMBEDDED_IN_A_MINUTE = "local", "22 MB, with its runtime 112", 3_000
LIBRARIES = "click neo4j networkx numpy orjson pydantic rich scikit-learn zstandard".split()
EXTRAS = {
    "client": "httpx2",
    "litellm": "litellm",
    "local": "onnxruntime",
    "mcp": "mcp",
    "openai": "openai",
    "otel": "opentelemetry-sdk",
    "parquet": "pyarrow",
    "plot": "matplotlib",
    "postgres": "psycopg",
    "qdrant": "qdrant-client",
    "ray": "ray",
    "server": "fastapi",
}
OLDEST_PYTHON = (3, 11)
_NAMED, _NAME_WIDTH = 10, 46
_LINUX, _WINDOWS = "Linux", "Windows"
_GONE = "installed, but the program is gone or fails"


@common_options()
def doctor(
    common: Common,
    secrets: Annotated[bool, flag("Also look for secrets in all stored runs (slower).")] = False,
    stale: Annotated[
        bool, flag("Also list what of the playbook the checkout lacks or has changed.")
    ] = False,
    workdir: Annotated[
        Path,
        option(
            "FOLDER",
            "The checkout for --stale.",
            "the current folder",
            exists=True,
            file_okay=False,
        ),
    ] = Path(),
) -> None:
    """Check the memory and the installation, and suggest fixes. Changes nothing.

    --secrets also checks whether runs stored by an older version hold secrets that this version
    recognises; `rebuild` masks them. --stale also lists files, symbols, commands and tests of the
    playbook that the checkout does not have: agents in that checkout are not shown them. Files
    whose content changed since the runs are listed apart: what names them counts less.

    \b
    Example:
      contextgraph doctor
      contextgraph doctor --stale --workdir ~/checkouts/shop
    """
    checkup = check_up(common, secrets=secrets)
    gone = _stale(common, workdir) if stale else []
    listed: list[Json] = [{**stale._asdict()} for stale in gone]
    record = record_of(checkup, ok=checkup.ok, **({"stale": listed} if stale else {}))
    common.answer(record, partial(_show_checkup, checkup))
    if stale and not common.as_json:
        named = [(entry, (entry.kind, one_line(entry.name, _NAME_WIDTH))) for entry in gone]
        lost = [(*name, entry.gone) for entry, name in named if entry.gone]
        print_table("Gone: named by the playbook", ("", "name", "gone"), lost)
        if not lost:
            print("stale: nothing that the playbook names is gone")
        changed = [(*name, entry.changed) for entry, name in named if entry.changed]
        print_table("Changed since the runs", ("", "name", "file"), changed)
    raise click.exceptions.Exit(DONE if checkup.ok else FAILED)


class Checkup(Struct, frozen=True):
    """The results of all checks; *extras* says which optional dependencies are installed."""

    store: str
    checks: "tuple[HealthCheck, ...]"
    versions: dict[str, str]
    extras: dict[str, bool]

    @property
    def ok(self) -> bool:
        """Return True where no check failed."""
        return all(check.ok for check in self.checks)


def check_up(common: Common, *, secrets: bool = False) -> Checkup:
    """Check the installation and the memory that the options name; *secrets*: all runs, too."""
    import sqlite3

    settings = common.settings()
    checks = (
        *_installation(),
        *_folders(settings),
        *_memory(common, secrets),
        *_keyed(common),
        *_hooks(settings),
    )
    versions = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    versions |= {name: version(name) for name in ("contextgraph-memory", *LIBRARIES)}
    extras = {extra: _installed(name) for extra, name in EXTRAS.items()}
    return Checkup(settings.address, checks, versions, extras)


def _check(name: str, ok: bool, detail: str, remedy: str = "") -> "HealthCheck":
    return HealthCheck(name, ok, detail, remedy)


def _installation() -> "list[HealthCheck]":
    import sqlite3

    running, database = platform.python_version(), f"sqlite {sqlite3.sqlite_version}"
    remedy, has_full_text = "use a Python whose sqlite3 has FTS5", False
    with closing(sqlite3.connect(":memory:")) as connection, suppress(sqlite3.OperationalError):
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(words)")
        has_full_text = True
    return [
        _check("system", _system() != _WINDOWS, _tested(), "use WSL"),
        _check("python", sys.version_info >= OLDEST_PYTHON, running, "install Python 3.11"),
        _check("full text search", has_full_text, database, remedy),
        _reading(),
    ]


def _folders(settings: "Settings") -> "Iterator[HealthCheck]":
    """Name folders of memories and of what hooks run that other users may change."""
    kept = [Path(data_folder())]
    if not settings.is_in_memory and (file := settings.local_file):
        kept.append(Path(file).absolute().parent)
    for folder in dict.fromkeys(kept):
        if folder.is_dir() and _may_be_changed_by_others(folder):
            remedy = f"run: chmod go-w {shlex.quote(str(folder))}"
            yield _check("folders", False, f"other users may write {folder}", remedy)


def _may_be_changed_by_others(folder: Path) -> bool:
    """Return whether another user may replace files in *folder*; a group may have no other."""
    import grp
    import os
    import pwd
    import stat

    found = folder.stat()
    if found.st_mode & stat.S_ISVTX or not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    groups = (group for group in grp.getgrall() if group.gr_gid == found.st_gid)
    named = {name for group in groups for name in group.gr_mem}
    members = {
        user.pw_uid
        for user in pwd.getpwall()
        if user.pw_gid == found.st_gid or user.pw_name in named
    }
    return bool(found.st_mode & stat.S_IWOTH or members - {0, os.getuid()})


def _system() -> str:
    return {"Darwin": "macOS"}.get(platform.system(), platform.system())


def _tested() -> str:
    """Return the name of this system, and that nothing was tested there where nothing was."""
    return _system() if _system() == _LINUX else f"{_system()}: ContextGraph is not tested there"


def _reading() -> "HealthCheck":
    """Check on three texts that this Python matches patterns as the package expects."""
    from contextgraph.text import fence, strip_fenced
    from contextgraph.trace import is_hazardous_command, signature_of

    error = signature_of("ModuleNotFoundError: No module named 'yaml'")
    commands = {'pytest -k "a or b"': False, 'rm -rf "/"': True}
    read = {
        "a fence is stripped": strip_fenced(f"a{fence('advice', 'id')}b") == ("ab", ("id",)),
        "an error is recognised": error is not None and error.error_type == "ModuleNotFoundError",
        "a command is judged": all(
            is_hazardous_command(line) is hazard for line, hazard in commands.items()
        ),
    }
    wrong = [name for name, is_right in read.items() if not is_right]
    detail = f"not so: {', '.join(wrong)}" if wrong else ", ".join(read)
    return _check("reading", not wrong, detail, "use another release of Python")


def _memory(common: Common, secrets: bool) -> "list[HealthCheck]":
    with common.open(read_only=True) as memory:
        checks = [*memory.health()]
        if all(check.ok for check in checks):
            checks.append(_gate(memory.store))
        return [*checks, _secrets(memory.store.runs)] if secrets else checks


def _gate(store: "Store") -> "HealthCheck":
    """Describe the gate that says how probable remedies are."""
    gate = store.exposures.gate()
    detail = (
        f"fitted on {number_of(gate.errors, 'error')} of {number_of(gate.runs, 'run')}"
        if gate and gate.errors
        else "the shipped one: too few errors of this memory were cleared to fit it"
    )
    return _check("gate", True, detail)


def _keyed(common: Common) -> "list[HealthCheck]":
    """Check that index and state of the keyed files follow from their log."""
    settings = common.settings()
    if settings.is_in_memory and not settings.keyed_root:
        return []
    memory = common.keyed()
    if not memory.root.exists():
        return []
    wrong = memory.check()
    detail = "; ".join(wrong[:_NAMED]) or number_of(len(memory.keys()), "key")
    return [_check("keyed files", not wrong, detail, "run: contextgraph call compact")]


def _hooks(settings: "Settings") -> "list[HealthCheck]":
    """Check that hooks of agents did not fail; nothing where none uses the memory."""
    files = HookFiles(settings)
    if not files.are_used:
        return []
    checks = [*files.health()]
    in_hooks = load_settings(environment_of_hooks(), store=settings.address, tenant=settings.tenant)
    if ignored := ignored_by_hooks(in_hooks):
        remedy = f"set this in {user_settings_file()}"
        checks.append(_check("settings of hooks", False, f"ignored: {', '.join(ignored)}", remedy))
    return [*checks, *_installed_hooks()]


def _installed_hooks() -> "Iterator[HealthCheck]":
    """Run the hooks of each agent once."""
    from contextgraph.agents.install import chosen_agents

    for agent in chosen_agents([], all_known=True):
        try:
            works, answer = _tried(hooks_of(agent))
        except (SettingsError, OSError) as error:
            yield _check(f"hooks of {agent.name}", False, str(error), "contextgraph setup")
            continue
        if works is not None:
            again = "install contextgraph-memory where it stays, then run: contextgraph setup"
            yield _check(f"hooks of {agent.name}", works, answer, again)


def _tried(file: "SettingsFile") -> tuple[bool | None, str]:
    """Run the hooks in *file* once each, with an event that asks for the version alone.

    Return whether all work, None where there is none, and what the first has answered.
    """
    from contextgraph.agents.install import answer_of

    try:
        answers = [answer_of(command) for command in file.commands()]
    except subprocess.SubprocessError as error:
        return False, str(error)
    if not answers:
        return None, ""
    wrong = [answer for answer in answers if "ContextGraph" not in answer]
    if not wrong:
        return True, json.loads(answers[0])["systemMessage"]
    printed = next(filter(None, wrong), "")
    return False, f"{_GONE}: {printed}" if printed else _GONE


def _secrets(runs: "RunStore") -> "HealthCheck":
    """Check that stored runs hold no secret that this version recognises."""
    from contextgraph.learning import unmasked_values

    known = runs.ids()
    affected = [
        identity for identity in known if (raw := runs.raw(identity)) and unmasked_values(raw)
    ]
    named = f": {', '.join(affected[:_NAMED])}" if affected else ""
    detail = f"{len(affected)} of {number_of(len(known), 'run')} hold secrets{named}"
    return _check("secrets", not affected, detail, "run: contextgraph call rebuild")


def _stale(common: Common, workdir: Path) -> "list[Stale]":
    """Return what the playbook names and the repository in *workdir* lacks or changed."""
    from contextgraph.advising.freshness import stale_in
    from contextgraph.readers import repository_name
    from contextgraph.system.working_tree import WorkingTree

    tree = WorkingTree.around(workdir)
    with common.open(read_only=True) as memory:
        repo = repository_name(str(tree.root))
        tree = replace(tree, recorded=memory.retriever.playbooks.content_hashes(repo))
        return [*stale_in(memory.playbook(repo), tree)]


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def _show_checkup(checkup: Checkup) -> None:
    """Print every check, with the remedy where it failed."""
    rows = [
        ("ok" if check.ok else "FAILED", check.name, check.detail, "" if check.ok else check.remedy)
        for check in checkup.checks
    ]
    print_table(f"Memory {checkup.store}", ("", "check", "found", "remedy"), rows)
    versions = " · ".join(f"{name} {version}" for name, version in checkup.versions.items())
    extras = " · ".join(
        f"{name}: {'installed' if installed else 'not installed'}"
        for name, installed in checkup.extras.items()
    )
    print_text((f"versions: {versions}\nextras: {extras}", "dim"))
    if not checkup.ok:
        print_text(("unhealthy: see the failed checks", "bold red"))


@common_options()
def trust(
    common: Common,
    folders: Annotated[
        list[Path] | None,
        argument("[FOLDER]...", "The folder (default: this one).", file_okay=False),
    ] = None,
    *,
    histories: Annotated[
        bool, flag("Take histories of agents in these folders, in checkouts, too, for yours.")
    ] = False,
    listed: Annotated[bool, described("--list", help="List the trusted folders instead.")] = False,
    revoke: Annotated[bool, flag("Trust the folder no longer.")] = False,
    yes: Yes = False,
) -> None:
    """Let a folder set everything, and take over its lessons.

    Without this its contextgraph.toml, which may come with a clone, sets nothing, and its lessons
    are not read. What the file changes is shown and confirmed; after a change of it it has to be
    trusted again. Tokens and passwords are only sent to servers that you named
    yourself. Lessons count as those of the repository, for it alone, as long as it is trusted.

    With --histories it is about what agents kept in the folders and below: in a checkout, which
    others may have written, it is learned for that repository alone, as one source, and not by
    `setup`. Where these are your own sessions, this lets them count as such. It is for checkouts
    that are there now: one that comes later, or in the place of another, is asked about again.

    \b
    Example:
      contextgraph trust .
      contextgraph trust --histories ~/src
      contextgraph trust . --revoke
      contextgraph trust --list
    """
    for one in folders or ():
        if not (revoke or one.is_dir()):
            raise click.BadParameter(f"there is no folder {one}", param_hint="'[FOLDER]...'")
    if histories:
        _trust_histories(common, folders or [Path()], listed=listed, revoke=revoke, yes=yes)
        return
    if len(folders or ()) > 1:
        raise click.BadParameter("one folder at a time: what its file sets is shown")
    folder = next(iter(folders or ()), Path())
    if listed:
        _list_trusted(common)
        return
    if revoke:
        _revoke(common, folder)
        return
    _trust(common, folder, yes=yes)


def _revoke(common: Common, folder: Path) -> None:
    """Trust *folder* and what is below no longer, and take back what came from lessons there."""
    named = LESSONS.contents()
    with_settings, with_lessons = TRUSTED_SETTINGS.revoke(folder), LESSONS.revoke(folder)
    forgotten, changed, failed = 0, list[str](), list[SettingsError]()
    for place in map(Path, with_lessons):
        if not place.is_dir():
            # Another folder of the same repository may be trusted.
            if named[str(place)] not in LESSONS.contents().values():
                forgotten += forget_team(common, named[str(place)])
            continue
        forgotten += learn_team(common, place).removed
        written = rules_written(str(place), Entries((), {}), on_error=failed.append)
        changed += (str(place / file) for file in written)
    name = str(folder.resolve())
    text = f"{name}: {'no longer' if with_settings or with_lessons else 'was not'} trusted"
    if forgotten:
        text += f"; {number_of(forgotten, 'lesson')} forgotten"
    if changed:
        text += f"; its rules are no longer in {', '.join(changed)}"
    for error in failed:
        warn(f"its rules may stay: {error}")
    listed: list[Json] = [*changed]
    record: dict[str, Json] = {"folder": name, "trusted": False, "settings": []}
    common.answer({**record, "forgotten": forgotten, "changed": listed}, text)
    if failed:
        raise click.exceptions.Exit(PARTLY_DONE)


def _trust(common: Common, folder: Path, *, yes: bool) -> None:
    """Trust the settings file and the lessons of *folder*, once the user has confirmed it."""
    name = str(folder.resolve())
    file, entries = ProjectFile.in_folder(folder), len(entries_in(name).listed)
    if file is None and not entries:
        fail(f"{name} has no {SETTINGS_FILE} and no lessons in {LESSONS_FOLDER}")
    before = {setting.name: setting.value for setting in settings_in_force(folder=folder)}
    given = file.settings() if file else {}
    changes = {key: mask_secrets(str(value)) for key, value in given.items()}
    if not yes:
        if file:
            warn(f"{file.path} sets:")
            rows = ((key, str(before.get(key) or ""), value) for key, value in changes.items())
            print_table("", ("setting", "now", "then"), rows, on_stderr=True)
        if entries:
            warn(f"{name} has {number_of(entries, 'lesson')} that agents there will be shown")
        confirm("Trust it, until it changes?", "nothing was trusted")
    if file:
        file.trust()
    listed: list[Json] = [
        {"name": key, "value": value, "before": before.get(key)} for key, value in changes.items()
    ]
    record: dict[str, Json] = {"folder": name, "trusted": True, "settings": listed}
    text = f"{name}: trusted"
    if entries:
        trust_lessons(folder)
        taken = learn_team(common, folder)
        record["lessons"] = record_of(taken)
        text += f"; {taken_line(taken)}"
    common.answer(record, text)


def _learned_below(common: Common, folders: "Sequence[str]") -> list[str]:
    """Return the ids of the owner's runs that were read below *folders*."""
    places = tuple(f"{folder}/" for folder in folders)
    try:
        with common.open(read_only=True) as memory:
            runs = memory.store.runs.trajectories(memory.store.runs.ids()).values()
            return [run.id for run in runs if not run.contributor and run.source.startswith(places)]
    except MemoryNotFoundError:
        return []


def _list_trusted(common: Common) -> None:
    """List the folders whose file or whose lessons are trusted."""
    trusted, lessons = trusted_folders(), LESSONS.contents()
    records: list[dict[str, Json]] = [
        {"folder": name, "trusted": same} for name, same in trusted.items()
    ]
    records += [{"folder": name, "trusted": True, "lessons": True} for name in lessons]
    listing = [(name, "yes" if same else "changed since") for name, same in trusted.items()]
    listing += [(name, "its lessons") for name in lessons]
    common.answer_rows(records, "Trusted folders", ("folder", "trusted"), listing)


def _trust_histories(
    common: Common, folders: "Sequence[Path]", *, listed: bool, revoke: bool, yes: bool
) -> None:
    from contextgraph.readers import to_trust, trust_histories

    names = [str(folder.resolve()) for folder in folders]
    if listed:
        names = [*HISTORIES.contents()]
        records: list[dict[str, Json]] = [{"folder": name, "trusted": True} for name in names]
        rows = [(name,) for name in names]
        common.answer_rows(records, "Trusted histories", ("folder",), rows)
        return
    if revoke:
        for folder in folders:
            HISTORIES.revoke(folder)
        if left := _learned_below(common, names):
            some = shlex.join(left[:_NAMED]) + (" …" if len(left) > _NAMED else "")
            count = number_of(len(left), "run")
            warn(f"{count} learned there stay yours; to remove: contextgraph forget {some}")
    else:
        found = to_trust(folders)
        names = [str(folder.resolve()) for folder in found]
        if not yes:
            warn("histories of agents in these folders will count as your own words:")
            for name in names:
                warn(f"  {name}")
            confirm("Trust them?", "nothing was trusted")
        trust_histories(found)
    listing: list[Json] = [*names]
    text = "no longer trusted" if revoke else "trusted"
    common.answer({"histories": listing, "trusted": not revoke}, f"{', '.join(names)}: {text}")


@common_options(without=("as_json",))
def hook(common: Common) -> None:
    """Answer an agent's hook event.

    The event is one JSON object on standard input, as Claude Code, Codex CLI or OpenHands writes
    it; the answer on standard output is what that agent expects, or nothing. The exit code is 0.
    `contextgraph integrations install` makes an agent call this.

    \b
    Example:
      echo '{"hook_event_name": "SessionStart", "cwd": "."}' | contextgraph hook
    """
    from contextgraph.agents.hook import main

    main(common.store, common.tenant)


@common_options()
def integrations(
    common: Common,
    action: Annotated[
        Literal["list", "install", "uninstall", "export"],
        argument("[ACTION]", "list, install, uninstall or export."),
    ] = "list",
    agents: Annotated[
        list[str] | None,
        argument(
            "[AGENT]...",
            "Those that the list names; or --auto. To uninstall: else all. Of export: a folder.",
        ),
    ] = None,
    *,
    auto: Annotated[bool, flag("All agents that are found on this machine.")] = False,
    project: Annotated[
        bool, flag("Settings of the project in this folder, not of the user.")
    ] = False,
) -> None:
    """Connect coding agents to the memory.

    install adds hooks to the settings of an agent and leaves all other entries as they are;
    uninstall removes them again. The agent then gets advice at the start of a session, at prompts,
    before commands and after failures, and its finished sessions are learned. See docs/hooks.md.
    export writes a plug-in of Claude Code into a folder: the hooks, the MCP server and a skill.
    mini-swe-agent, SWE-agent, the OpenAI Agents SDK and LangGraph need no settings: docs/ has a
    page on each.

    \b
    Example:
      contextgraph integrations install claude-code
      contextgraph integrations install --auto
      contextgraph integrations uninstall claude-code
      contextgraph integrations export my-plugins/contextgraph
    """
    from contextgraph.agents.install import chosen_agents

    if action == "export":
        _export_plugin(common, agents or [])
        return
    if action == "uninstall" and not agents and not auto:
        nothing = "no agent has hooks of ContextGraph here; `integrations` lists them"
        agents = connected(Path.cwd() if project else None) or fail(nothing)
    if action != "list" and bool(agents) == auto:
        raise click.BadParameter("name an agent, or give --auto")
    settings = common.settings()
    shared = None if project else Path(data_folder())
    store = None if project and not common.store else _lasting(settings)
    command = _hooks_here(store, shared, settings.tenant) if action == "install" else ""
    for agent in chosen_agents(agents or [], all_known=action == "list"):
        file = hooks_of(agent, Path.cwd() if project else None)
        if action == "install":
            changed = file.install(agent, command)
        else:
            changed = action == "uninstall" and _remove(agent, file, has_tools=not project)
        is_there, path = file.has_hooks(), str(file.path)
        record: dict[str, Json] = {"agent": agent.name, "path": path, "installed": is_there}
        record["changed"] = changed
        state = "installed" if is_there else "removed" if changed else "not installed"
        if action == "list" and not project:  # a folder may name any program
            record["works"], record["answer"] = works, answer = _tried(file)
            state = answer if works is False else state
            path += f": {answer}" if works else ""
        common.answer(record, f"{agent.name}: {state}, {path}")
        if is_there and changed and agent.note and not common.as_json:
            warn(agent.note)
    if action == "install":
        HookFiles(settings).mark_used()
    if action == "uninstall" and not (project or common.as_json):
        _show_what_stays()


def _show_what_stays() -> None:
    """Print that the memory stays, and how to delete it where no agent uses it any more."""
    if left := connected():
        print_text((f"the memory stays: {', '.join(left)} still uses it", "dim"))
    else:
        print_command("the memory stays; to delete it:", shlex.join(["rm", "-r", data_folder()]))


def _export_plugin(common: Common, folders: Sequence[str]) -> None:
    """Write a plug-in of Claude Code into the folder that *folders* name."""
    from contextgraph.agents.install import write_plugin

    if len(folders) != 1:
        raise click.BadParameter("name the folder that the plug-in is written into")
    (folder,) = map(Path, folders)
    files = write_plugin(folder, version("contextgraph-memory"), common.store)
    add = f"claude plugin marketplace add {shlex.quote(str(folder.absolute()))}"
    names: list[Json] = [str(path) for path in files]
    exported: dict[str, Json] = {"folder": str(folder), "files": names, "add": add}
    install = "claude plugin install contextgraph@contextgraph"
    common.answer(exported, f"{folder}: a plug-in of Claude Code. Add it:\n  {add}\n  {install}")


def _remove(agent: "Agent", file: "SettingsFile", *, has_tools: bool) -> bool:
    """Take hooks out of the *file* of *agent*, and its tools; return whether anything changed."""
    changed = file.uninstall()
    return (has_tools and agent.has_tools() and _remove_tools(agent)) or changed


def _remove_tools(agent: "Agent") -> bool:
    """Take the tools of the memory away from *agent*; return False where a person has to."""
    if settings_of(agent.tools_path()).undo():
        return True
    remove = agent.tools_removal()
    if not remove or which(remove[0]) is None:
        path = agent.tools_path()
        warn(f"{agent.name}: remove the server of tools (MCP) contextgraph from {path}")
        return False
    done = subprocess.run(remove, capture_output=True, text=True, check=False)
    if done.returncode:
        warn(f"{shlex.join(remove)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.returncode == 0


def connected(project: Path | None = None) -> list[str]:
    """Return the agents with hooks or tools, of the user or of the folder *project*."""
    from contextgraph.agents.install import chosen_agents

    return [
        agent.name
        for agent in chosen_agents([], all_known=True)
        if hooks_of(agent, project).has_hooks() or (project is None and agent.has_tools())
    ]


def hooks_of(agent: "Agent", project: Path | None = None) -> "SettingsFile":
    """Return the settings of *agent*: those of the user, or of the *project* in that folder."""
    return settings_of(agent.settings_file(project))


def settings_of(path: Path) -> "SettingsFile":
    """Return the settings file at *path*, with what is kept of it."""
    from contextgraph.agents.install import SettingsFile

    return SettingsFile(path, Path(data_folder(), "integrations"))


def install_hooks(common: Common, settings: "Settings", agents: "Iterable[Agent]") -> None:
    """Add hooks to the user's settings of *agents*."""
    command = _hooks_here(_lasting(settings), Path(data_folder()), settings.tenant)
    for agent in agents:
        hooks_of(agent).install(agent, command)
    HookFiles(settings).mark_used()


def _hooks_here(store: str | None, shared: Path | None, tenant: str) -> str:
    """Return the command line of hooks as `hook_command`; warn where it may not work or last.

    Raises `SettingsError` on Windows, whose shell does not read it.
    """
    from contextgraph.agents.install import hook_command, is_in_cache

    if _system() == _WINDOWS:
        raise SettingsError("hooks are written for POSIX shells, and Windows has none: use WSL")
    if _system() != _LINUX:
        warn(_tested())
    if shared and is_in_cache():
        warn(
            "this program lies in the cache of uv, and hooks end with it: "
            "`uv tool install contextgraph-memory`, then `contextgraph setup`, keeps both"
        )
    return hook_command(store, shared, tenant)


def _lasting(settings: "Settings") -> str:
    """Return the address of the memory as hooks name it, whatever folder they run in."""
    # A file contextgraph.toml in a checkout must not choose another memory.
    return settings.address if settings.is_remote else str(Path(settings.address).absolute())


# Most errors on the card.
_ERRORS = 3
_WIDTH = 72


@common_options()
def setup(
    common: Common,
    yes: Yes = False,
    exclude: Annotated[
        list[str] | None, option("PATTERN", "Leave these files out (repeatable).")
    ] = None,
    no_agents: Annotated[bool, flag("Connect no agent.")] = False,
    local_model: Annotated[bool, flag("Search by meaning, too, with the local model.")] = False,
) -> None:
    """Find the histories on this machine, learn them, connect agents.

    Asks before each step; nothing is written without a yes, and nothing leaves this machine. The
    newest sessions are learned first: Ctrl-C ends learning, and what is learned stays. Run it
    again at any time: only what is new is learned. Histories in projects are left out and
    named: others may have written them.

    \b
    Example:
      contextgraph setup
      contextgraph setup --yes --json
    """
    from contextgraph.readers import discover, trusted_histories

    settings = common.settings()
    discovered = discover(exclude=exclude or (), trusted=trusted_histories())
    histories = discovered.histories
    asked = _Questions(yes=yes, as_json=common.as_json)
    _learn(common, settings, discovered, asked)
    card, by_meaning = None, None
    with suppress(MemoryNotFoundError), common.open(read_only=True) as memory:
        card = _card_of(memory)
        by_meaning = None if memory.is_service else _meaning_of(memory)
    if card and not common.as_json:
        _show_card(card)
    connected = [] if no_agents or settings.is_service else [*_connect(common, settings, asked)]
    steps = _next_steps(card, connected, has_histories=bool(histories))
    # Vectors take a core for a while: a yes to all the rest does not say so.
    if (
        by_meaning
        and by_meaning.is_installed
        and (local_model or (not yes and asked.agreed(by_meaning.offer())))
    ):
        named = ("--store", settings.address, "--tenant", settings.tenant)
        start_detached("contextgraph", "call", "embed", f"embedder={_LOCAL}", *named)
        by_meaning = replace(by_meaning, is_started=True)
    if by_meaning and not by_meaning.is_started:
        steps = [*steps[:-1], by_meaning.step(), steps[-1]]
    if common.as_json:
        found: list[Json] = [
            {
                "agent": one.agent,
                "sessions": one.runs,
                "bytes": one.bytes,
                "folder": str(one.folder),
            }
            for one in histories
        ]
        emit(
            {
                "store": settings.address,
                "histories": found,
                "left_out": [
                    {"folder": str(folder), "files": files}
                    for folder, files in discovered.in_projects.items()
                ],
                "card": card.record() if card else None,
                "by_meaning": record_of(by_meaning) if by_meaning else None,
                "agents": [{**one} for one in connected],
                "try": [*steps],
            }
        )
        return
    print_text(("Try:", "bold"))
    for step in steps:
        print(f"  {step}")


def _extra(name: str) -> str:
    """Return the command that installs *name*, an extra of this package, in its clone."""
    return f"pip install '.[{name}]'"


class _Meaning(Struct, frozen=True):
    """An offer to search by meaning: *passages* would get vectors, in about so many *minutes*."""

    is_installed: bool
    passages: int
    minutes: int
    is_started: bool = False

    def offer(self) -> str:
        """Return what is offered, in sentences."""
        return (
            f"To search by meaning, too, with the local model ({_MODEL_SIZE}), vectors of "
            f"{number_of(self.passages, 'passage')} are made in the background: about "
            f"{number_of(self.minutes, 'minute')} of one core. Make them?"
        )

    def step(self) -> str:
        """Return the command that begins it, with what it takes."""
        if not self.is_installed:
            return f"{_extra(_LOCAL)}  # in the clone: search by meaning, too ({_MODEL_SIZE})"
        takes = f"search by meaning, too: about {number_of(self.minutes, 'minute')} of one core"
        return f"contextgraph call embed embedder={_LOCAL}  # {takes}"


def _meaning_of(memory: "AgentMemory") -> _Meaning | None:
    """Return the offer for *memory*; None where it has it already, or nothing to search."""
    from contextgraph.model import is_fitted

    active = memory.store.vectors.active_space()
    passages = memory.store.passages.counts().passages
    if not passages or (active is not None and not is_fitted(active.name)):
        return None
    is_installed = find_spec(EXTRAS[_LOCAL]) is not None
    return _Meaning(is_installed, passages, -(-passages // _EMBEDDED_IN_A_MINUTE))


class _Questions(Struct, frozen=True):
    """Asks the person; *yes* answers all, and without a terminal the answer is no."""

    yes: bool
    as_json: bool

    def agreed(self, question: str) -> bool:
        if self.yes:
            return True
        if self.as_json or not sys.stdin.isatty():
            warn(f"{question} no: without a terminal, use --yes")
            return False
        return click.confirm(question, default=True, err=True)


def _learn(common: Common, settings: "Settings", found: "Discovered", asked: _Questions) -> None:
    """Learn the sessions that are new, the newest first."""
    from contextgraph.cli.learn import (
        Intake,
        Learning,
        Selection,
        known_line,
        learned_in,
        read_files,
        warn_of_projects,
    )

    known = read_files(settings)
    files = [file for history in found.histories for file in history.files]
    new = known.new(files, learned=partial(learned_in, common))
    if not common.as_json:
        for history in found.histories:
            print_text(f"{history.agent}: {number_of(history.runs, 'session')} in {history.folder}")
    warn_of_projects(found)
    if new and len(new) < len(files):
        warn(known_line(files, new))
    if not files:
        warn("no history of a coding agent found; `contextgraph learn PATH` learns runs")
    elif not new:
        warn(f"nothing new in {number_of(len(files), 'file')}")
    elif asked.agreed(f"Learn {number_of(len(new), 'new file')} into {settings.address}?"):
        newest = sorted(new, key=written_at, reverse=True)
        selection = Selection(never=settings.never_learned)
        intake = partial(Intake, discovered=True, is_quiet=True, selection=selection)
        learning = Learning(common, intake, known=known, is_quiet=True)
        try:
            learning.learn([str(file) for file in newest])
        except KeyboardInterrupt:
            with common.open() as memory:  # what is learned is shown next
                memory.consolidate()


class _Card(Struct, frozen=True):
    """Summary of a memory, in a few lines; *message* is an error to ask about, costliest first.

    *sessions* are counted without their *helpers*, the sub-agents. *decided* is the lesson that was
    said in most sessions, of several one that two lines hold.
    """

    sessions: int
    helpers: int
    steps: int
    repositories: "Mapping[str, int]"
    errors: "Sequence[Friction]"
    message: str
    decided: "Lesson | None"

    def record(self) -> "dict[str, Json]":
        """Return its JSON form."""
        return {
            "sessions": self.sessions,
            "sub_agents": self.helpers,
            "steps": self.steps,
            "repositories": {**self.repositories},
            "errors": [
                {
                    "error": error.error,
                    "tasks": error.tasks,
                    "steps_lost": error.steps_lost,
                    "remedy": error.remedies[0].text if error.remedies else None,
                }
                for error in self.errors
            ],
            "decided": self.decided.text if self.decided else None,
        }


def _card_of(memory: "AgentMemory") -> _Card | None:
    from collections import Counter

    from contextgraph.store.memory_store import id_pages

    repositories, helpers, steps = Counter[str](), 0, 0
    for ids in id_pages(memory.store.runs, 256):
        for run in memory.store.runs.trajectories(ids).values():
            if is_subagent(run.agent):
                helpers += 1
            else:
                repositories[run.repo] += 1
            steps += run.total_steps
    if not repositories:
        return None
    friction = memory.stats.get_friction("", _ERRORS * 4)
    costly = [error for error in friction if error.remedies and error.remedies[0].tasks > 1]
    return _Card(
        sessions=repositories.total(),
        helpers=helpers,
        steps=steps,
        repositories=dict(repositories.most_common()),
        # What takes one step agents are not interrupted for.
        errors=[error for error in costly if (error.steps_lost or 0) > 1][:_ERRORS],
        message=next(filter(_is_recognised, (_message(memory, one) for one in costly)), ""),
        decided=_decided(memory),
    )


def _decided(memory: "AgentMemory") -> "Lesson | None":
    """Return the lesson that people said in most sessions; None where none was said.

    Of several the surest that two lines hold.
    """
    said = [
        lesson
        for lesson in memory.lessons.of(None)
        if (lesson.status is LessonStatus.ACTIVE or lesson.sessions > 1)
        and lesson.evidence
        and lesson.origin is not Origin.COUNTED
        and not gives_instructions(lesson.text)
    ]
    return max(
        said,
        key=lambda one: (one.sessions, len(one.text) <= 2 * _WIDTH, one.probability, one.id),
        default=None,
    )


def _message(memory: "AgentMemory", friction: "Friction") -> str:
    """Return *friction* as a run met it, with names where its template has placeholders.

    Empty where it is not whole within two lines: a part of a message is another question.
    """
    (history,) = memory.store.recoveries.histories([friction.error_id], 1)
    error = history.error
    head = f"{error.error_type}: "
    message = " ".join((head + error.context.removeprefix(head)).split())
    return message if len(message) <= 2 * _WIDTH and "…" not in message else ""


def _is_recognised(message: str) -> bool:
    from contextgraph.model import State
    from contextgraph.trace import error_of

    return error_of(State(current_error=message)) is not None


def _show_card(card: _Card) -> None:
    from rich.padding import Padding

    helpers = f" with {number_of(card.helpers, 'sub-agent')}" if card.helpers else ""
    counts = (
        f"{number_of(card.sessions, 'session')}{helpers}",
        number_of(len(card.repositories.keys() - {""}), "repository"),
        number_of(card.steps, "step"),
    )
    lines: list[Text | Padding] = [styled((", ".join(counts), "bold"))]

    def add(text: str, more: str = "") -> None:
        """Add *text* whole, with a margin."""
        lines.append(Padding(styled((" ".join(text.split()), "green"), more), (0, 0, 0, 2)))

    for error in card.errors[:1]:
        steps = number_of(round(error.cost), "step")
        lost = f"Costliest: {number_of(error.tasks, 'task')} lost {steps} to "
        lines.append(styled(lost, (one_line(error.error, _WIDTH), "yellow")))
        add(error.remedies[0].text, f" ({error.remedies[0].agreement})")
    if card.decided:
        times = card.decided.sessions
        often = f"Said most, in {number_of(times, 'session')}" if times > 1 else "Decided"
        said = f"{often}, in {card.decided.repo}:" if card.decided.repo else f"{often}:"
        lines.append(styled(said))
        add(card.decided.text)
    lines.append(styled("From now on agents will see such things where they surely apply, and you"))
    lines.append(
        styled("  read one line each time; `query` has the rest. Nothing leaves this machine.")
    )
    print_box("What the memory knows", *lines)


def _connect(
    common: Common, settings: "Settings", asked: _Questions
) -> "Iterator[dict[str, Json]]":
    """Offer hooks and tools for each agent on this machine; yield what is connected then."""
    from contextgraph.agents.install import chosen_agents
    from contextgraph.cli.service import server_command

    agents = chosen_agents([])
    if not agents:
        warn("no agent with hooks found here: Claude Code, Codex CLI, OpenHands")
    files = {agent.name: hooks_of(agent) for agent in agents}
    chosen = [
        agent
        for agent in agents
        if not files[agent.name].has_hooks()
        and asked.agreed(f"Advise {agent.name} by hooks in {files[agent.name].path}?")
    ]
    if chosen:
        install_hooks(common, settings, chosen)
    for agent in agents:
        file = files[agent.name]
        add = agent.tools_command(server_command(common.settings()))
        tools = _tools(agent, add, asked)
        if not common.as_json:
            hooks = "hooks installed" if file.has_hooks() else "no hooks"
            print(f"{agent.name}: {hooks}; tools (MCP): {tools}")  # commands stay whole
        yield {"agent": agent.name, "hooks": file.has_hooks(), "tools": tools}


def _tools(agent: "Agent", add: Sequence[str], asked: _Questions) -> str:
    """Offer the tools of the memory over MCP; return whether the agent has them, or what to do."""
    if agent.has_tools():
        return "installed"
    if not add:
        return "not offered"
    if find_spec("mcp") is None:
        return f"run in the clone: {_extra('mcp')}; then setup again"
    if which(add[0]) is None:
        return f"run: {shlex.join(add)}"
    if not asked.agreed(f"Give {agent.name} the tools of the memory ({' '.join(add[:3])})?"):
        return "not installed"

    def added() -> bool:
        done = subprocess.run(add, capture_output=True, text=True, check=False)
        if done.returncode:
            warn(f"{add[0]}: {done.stderr.strip() or done.stdout.strip()}")
        return not done.returncode

    is_added = settings_of(agent.tools_path()).follow(added)
    return "installed" if is_added else f"run: {shlex.join(add)}"


def _next_steps(
    card: _Card | None, connected: "Sequence[Mapping[str, Json]]", *, has_histories: bool
) -> list[str]:
    """Return the commands to try next."""
    if card is None and has_histories:
        return ["contextgraph learn PATH      # files of runs", "contextgraph --help"]
    if card is None:
        error = "ModuleNotFoundError: No module named 'parcelkit'"
        return [
            "scripts/demo                               # in the clone: an agent without, and with",
            "contextgraph learn examples/trajectories   # in the clone: recorded runs",
            f'contextgraph query "{error}" --repo fernway/parcelkit',
            "contextgraph setup                         # again, after a session of your agent",
        ]
    steps = []
    if card.message:
        is_plain = card.message.isprintable() and not {*card.message} & {*'"$`\\!'}
        quoted = f'"{card.message}"' if is_plain else shlex.quote(card.message)
        steps.append(f"contextgraph query --error {quoted}")
    steps.append("contextgraph last all        # where you were")
    if any(one["hooks"] for one in connected):
        steps.append("contextgraph receipt         # after your next session")
    return [*steps, "contextgraph --help"]
