"""``contextgraph doctor``, ``config``, ``integrations`` and ``hook``: the installation."""

import os
import platform
import shlex
import sys
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from contextgraph.agents.sessions import HookFiles
from contextgraph.cli.options import (
    SETTINGS,
    Common,
    Yes,
    argument,
    common_options,
    flag,
    option,
)
from contextgraph.cli.output import (
    DONE,
    FAILED,
    confirm,
    fail,
    print_table,
    print_text,
    warn,
)
from contextgraph.config import (
    SETTINGS_FILE,
    ProjectFile,
    data_folder,
    revoke_trust,
    settings_in_force,
    trusted_folders,
)
from contextgraph.lazy import dataclass, replace
from contextgraph.records import record_of
from contextgraph.text import (
    mask_secrets,
    number_of,
    one_line,
)

if TYPE_CHECKING:
    from contextgraph.advising.freshness import Stale
    from contextgraph.agents.install import Agent, SettingsFile
    from contextgraph.config import Settings
    from contextgraph.model import HealthCheck, Json
    from contextgraph.ports import RunStore, Store


DISTRIBUTION = "contextgraph-memory"
LIBRARIES = "click neo4j networkx numpy orjson rich scikit-learn zstandard".split()
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


@common_options()
def doctor(
    common: Common,
    secrets: Annotated[
        bool, flag("--secrets", "Also look for secrets in all stored runs (slower).")
    ] = False,
    stale: Annotated[
        bool, flag("--stale", "Also list what of the playbook the checkout lacks or has changed.")
    ] = False,
    workdir: Annotated[
        Path,
        option(
            "--workdir",
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
    recognises; `migrate` masks them. --stale also lists files, symbols, commands and tests of the
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
        _show_stale(gone)
    raise click.exceptions.Exit(DONE if checkup.ok else FAILED)


@dataclass(frozen=True, slots=True)
class Checkup:
    """The results of all checks; *extras* says which optional dependencies are installed."""

    store: str
    checks: "tuple[HealthCheck, ...]"
    versions: dict[str, str]
    extras: dict[str, bool]

    @property
    def ok(self) -> bool:
        """True where no check failed."""
        return all(check.ok for check in self.checks)


def own_version() -> str:
    """The version of this distribution."""
    from importlib.metadata import version

    return version(DISTRIBUTION)


def check_up(common: Common, *, secrets: bool = False) -> Checkup:
    """Check the installation and the memory that the options name; *secrets*: all runs, too."""
    settings = common.settings()
    checks = *_installation(), *_memory(common, secrets), *_keyed(common), *_hooks(settings)
    extras = {extra: _installed(name) for extra, name in EXTRAS.items()}
    return Checkup(settings.address, checks, _versions(), extras)


def _check(name: str, ok: bool, detail: str, remedy: str = "") -> "HealthCheck":
    from contextgraph.model import HealthCheck

    return HealthCheck(name, ok, detail, remedy)


def _installation() -> "list[HealthCheck]":
    import sqlite3

    running, database = platform.python_version(), f"sqlite {sqlite3.sqlite_version}"
    remedy = "use a Python whose sqlite3 has FTS5"
    return [
        _check("python", sys.version_info >= OLDEST_PYTHON, running, "install Python 3.11"),
        _check("full text search", _has_full_text(), database, remedy),
    ]


def _has_full_text() -> bool:
    import sqlite3

    with closing(sqlite3.connect(":memory:")) as connection, suppress(sqlite3.OperationalError):
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(words)")
        return True
    return False


def _memory(common: Common, secrets: bool) -> "list[HealthCheck]":
    with common.open(read_only=True) as memory:
        checks = [*memory.health()]
        if all(check.ok for check in checks):
            checks.append(_gate(memory.store))
        return [*checks, _secrets(memory.store.runs)] if secrets else checks


def _gate(store: "Store") -> "HealthCheck":
    """Describe the gate that says how probable remedies are."""
    gate = store.admin.gate()
    detail = (
        f"fitted on {number_of(gate.errors, 'error')} of {number_of(gate.runs, 'run')}"
        if gate and gate.errors
        else "the shipped one: too few errors of this memory were cleared to fit it"
    )
    return _check("gate", True, detail)


def _keyed(common: Common) -> "list[HealthCheck]":
    """Whether index and state of the keyed files follow from their log; nothing without files."""
    settings = common.settings()
    if settings.is_in_memory and not settings.keyed_root:
        return []
    memory = common.keyed()
    if not memory.root.exists():
        return []
    wrong = memory.check()
    detail = "; ".join(wrong[:_NAMED]) or number_of(len(memory.keys()), "key")
    return [_check("keyed files", not wrong, detail, "run: contextgraph compact")]


def _hooks(settings: "Settings") -> "list[HealthCheck]":
    """Whether hooks of agents failed; nothing where none uses the memory."""
    files = HookFiles(settings)
    if not files.are_used:
        return []
    if not os.path.exists(files.advice):
        detail, remedy = "installed, nothing compiled yet", "run: contextgraph learn --queued"
        return [_check("hooks", not files.is_outdated, detail, remedy)]
    failed = files.failed()
    last = f", the last: {failed[-1]}" if failed else ""
    detail = f"{number_of(len(failed), 'failure')}{last}"
    return [_check("hooks", not failed, detail, f"see {files.failures}, then remove it")]


def _secrets(runs: "RunStore") -> "HealthCheck":
    """Whether stored runs hold secrets that this version recognises."""
    from contextgraph.learning import unmasked_values

    known = runs.ids()
    affected = [
        identity for identity in known if (raw := runs.raw(identity)) and unmasked_values(raw)
    ]
    named = f": {', '.join(affected[:_NAMED])}" if affected else ""
    detail = f"{len(affected)} of {number_of(len(known), 'run')} hold secrets{named}"
    return _check("secrets", not affected, detail, "run: contextgraph migrate")


def _stale(common: Common, workdir: Path) -> "list[Stale]":
    """Return what the playbook names and the repository in *workdir* lacks or changed."""
    from contextgraph.advising.freshness import stale_in
    from contextgraph.readers import repository_name
    from contextgraph.working_tree import WorkingTree

    tree = WorkingTree.around(workdir)
    with common.open(read_only=True) as memory:
        repo = repository_name(str(tree.root))
        tree = replace(tree, recorded=memory.retriever.playbooks.content_hashes(repo))
        return [*stale_in(memory.playbook(repo), tree)]


def _show_stale(stale: "list[Stale]") -> None:
    named = [(entry, (entry.kind, one_line(entry.name, _NAME_WIDTH))) for entry in stale]
    gone = [(*name, entry.gone) for entry, name in named if entry.gone]
    print_table("Gone: named by the playbook", ("", "name", "gone"), gone)
    if not gone:
        print("stale: nothing that the playbook names is gone")
    changed = [(*name, entry.changed) for entry, name in named if entry.changed]
    print_table("Changed since the runs", ("", "name", "file"), changed)


def _versions() -> dict[str, str]:
    import sqlite3
    from importlib.metadata import version

    versions = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    return versions | {name: version(name) for name in (DISTRIBUTION, *LIBRARIES)}


def _installed(name: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

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


GROUPS = {"config": "The settings in force."}


@common_options(*SETTINGS)
def show(common: Common) -> None:
    """List the settings in force, and where each is set.

    That is an option, an environment variable, contextgraph.toml in the current folder, the user's
    file of that name, a configuration in either, or a default. Secrets are masked.

    \b
    Example:
      contextgraph config show
      contextgraph config show --configuration no-semantic --json
    """
    settings = common.settings_in_force()
    rows = (
        (setting.name, "" if setting.value is None else str(setting.value), setting.origin)
        for setting in settings
    )
    columns = ("setting", "value", "set by")
    common.answer_rows(map(record_of, settings), "Settings", columns, rows)


@common_options(without=("store", "tenant"))
def trust(
    common: Common,
    folder: Annotated[
        Path, argument(metavar="FOLDER", help="The folder.", exists=True, file_okay=False)
    ] = Path(),
    *,
    listed: Annotated[bool, flag("--list", "List the trusted folders instead.")] = False,
    revoke: Annotated[bool, flag("--revoke", "Trust the folder no longer.")] = False,
    yes: Yes = False,
) -> None:
    """Let contextgraph.toml of a folder set everything.

    Without this the file, which may come with a clone, can only lower limits (max_cost,
    max_run_size). What it changes is shown and confirmed; after a change of the file it has to be
    trusted again. Tokens and passwords are only sent to servers that you named yourself.

    \b
    Example:
      contextgraph trust .
      contextgraph trust . --revoke
      contextgraph trust --list
    """
    if listed:
        folders = trusted_folders()
        records: list[dict[str, Json]] = [
            {"folder": name, "trusted": same} for name, same in folders.items()
        ]
        listing = ((name, "yes" if same else "changed since") for name, same in folders.items())
        common.answer_rows(records, "Trusted folders", ("folder", "trusted"), listing, empty="none")
        return
    name = str(folder.resolve())
    if revoke:
        text = "no longer trusted" if revoke_trust(folder) else "was not trusted"
        common.answer({"folder": name, "trusted": False, "settings": []}, f"{name}: {text}")
        return
    file = ProjectFile.in_folder(folder)
    if file is None:
        fail(f"{name} has no {SETTINGS_FILE}")
    before = {setting.name: setting.value for setting in settings_in_force(folder=folder)}
    changes = {key: mask_secrets(str(value)) for key, value in file.settings().items()}
    if not yes:
        warn(f"{file.path} sets:")
        rows = ((key, str(before.get(key) or ""), value) for key, value in changes.items())
        print_table("", ("setting", "now", "then"), rows, on_stderr=True)
        confirm("Trust it, until it changes?", "nothing was trusted")
    file.trust()
    listed_changes: list[Json] = [
        {"name": key, "value": value, "before": before.get(key)} for key, value in changes.items()
    ]
    common.answer({"folder": name, "trusted": True, "settings": listed_changes}, f"{name}: trusted")


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
        argument(metavar="[ACTION]", help="list, install, uninstall or export."),
    ] = "list",
    agents: Annotated[
        list[str] | None,
        argument(
            metavar="[AGENT]...",
            help="Those that the list names; or --auto. Of export: a folder.",
            show_default=False,
        ),
    ] = None,
    *,
    auto: Annotated[bool, flag("--auto", "All agents that are found on this machine.")] = False,
    project: Annotated[
        bool, flag("--project", "Settings of the project in this folder, not of the user.")
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
    from contextgraph.agents.install import chosen_agents, hook_command, write_plugin

    if action == "export":
        if len(agents or ()) != 1:
            raise click.BadParameter("name the folder that the plug-in is written into")
        (folder,) = map(Path, agents or ())
        files = write_plugin(folder, version("contextgraph-memory"), common.store)
        add = f"claude plugin marketplace add {shlex.quote(str(folder.absolute()))}"
        names: list[Json] = [str(path) for path in files]
        exported: dict[str, Json] = {"folder": str(folder), "files": names, "add": add}
        install = "claude plugin install contextgraph@contextgraph"
        common.answer(
            exported, f"{folder}: a plug-in of Claude Code. Add it:\n  {add}\n  {install}"
        )
        return
    if action != "list" and bool(agents) == auto:
        raise click.BadParameter("name an agent, or give --auto")
    settings = common.settings()
    if settings.is_service and action == "install":
        raise click.BadParameter(
            f"hooks read a file beside the store, and {settings.address} is a service: give its "
            "agents the tools at /mcp instead"
        )
    command = hook_command(
        None if project and not common.store else _lasting(settings), is_shared=project
    )
    for agent in chosen_agents(agents or [], all_known=action == "list"):
        file = hooks_of(agent, Path.cwd() if project else None)
        if action == "install":
            changed = file.install(agent, command)
        else:
            changed = action == "uninstall" and file.uninstall()
        _report_hooks(common, agent, file, changed)
    if action == "install":
        HookFiles(settings).mark_used()
        _compile_now(common, settings)


def hooks_of(agent: "Agent", project: Path | None = None) -> "SettingsFile":
    """Return the settings of *agent*: those of the user, or of the *project* in that folder."""
    from contextgraph.agents.install import SettingsFile

    return SettingsFile(agent.settings_file(project), Path(data_folder(), "integrations"))


def install_hooks(common: Common, settings: "Settings", agents: "Iterable[Agent]") -> None:
    """Add hooks to the user's settings of *agents*, and compile what they will say."""
    from contextgraph.agents.install import hook_command

    for agent in agents:
        hooks_of(agent).install(agent, hook_command(_lasting(settings)))
    HookFiles(settings).mark_used()
    _compile_now(common, settings)


def _lasting(settings: "Settings") -> str:
    """Return the address of the memory as hooks name it, whatever folder they run in."""
    # A file contextgraph.toml in a checkout must not choose another memory.
    return settings.address if settings.is_remote else str(Path(settings.address).absolute())


def _report_hooks(common: Common, agent: "Agent", file: "SettingsFile", changed: bool) -> None:
    installed, path = file.has_hooks(), str(file.path)
    state = "installed" if installed else "not installed"
    record: dict[str, Json] = {"agent": agent.name, "path": path, "installed": installed}
    common.answer({**record, "changed": changed}, f"{agent.name}: {state}, {path}")
    if installed and changed and agent.note and not common.as_json:
        warn(agent.note)


def _compile_now(common: Common, settings: "Settings") -> None:
    """Compile what the memory knows so far, so that the next session gets it."""
    from contextgraph.agents.compile import compile_advice
    from contextgraph.errors import MemoryNotFoundError

    try:
        with common.open(create=False) as memory:
            warn(f"compiling advice from {number_of(len(memory.store.runs.ids()), 'run')}")
            done = compile_advice(memory, Path(HookFiles(settings).advice))
    except MemoryNotFoundError:
        warn("the memory is empty: contextgraph setup learns the sessions on this machine")
    else:
        warn(f"advice on {number_of(done.errors, 'error')} in {done.path}")


@common_options(without=("as_json", "store", "tenant"))
def completion(
    common: Common,
    shell: Annotated[
        Literal["bash", "zsh", "fish"], argument(metavar="bash|zsh|fish", help="The shell.")
    ],
) -> None:
    """Print what makes a shell complete commands and options.

    \b
    Example:
      contextgraph completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from contextgraph.cli.group import app

    completion = get_completion_class(shell)
    assert completion is not None  # click has these three
    print(completion(app, {}, "contextgraph", "_CONTEXTGRAPH_COMPLETE").source())
