"""``contextgraph doctor``, ``config`` and ``formats``: the memory and the installation."""

import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import SETTINGS, Common, common_options, flag
from contextgraph.cli.output import DONE, FAILED, emit, print_table, print_text
from contextgraph.records import record_of
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from contextgraph.config import Settings
    from contextgraph.model import HealthCheck, Json
    from contextgraph.ports import RunStore, Store
    from contextgraph.readers import Format
    from contextgraph.retrieval import Stale


DISTRIBUTION = "contextgraph-memory"
LIBRARIES = "neo4j networkx numpy orjson rich scikit-learn typer zstandard".split()
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
        typer.Option(
            "--workdir",
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="The checkout for --stale.",
            show_default="the current folder",
        ),
    ] = Path(),
) -> None:
    """Check the memory and the installation, and suggest fixes. Changes nothing.

    --secrets also checks whether runs stored by an older version hold secrets that this version
    recognises; `migrate` masks them. --stale also lists files, symbols, commands and tests of the
    playbook that the checkout does not have: agents in that checkout are not shown them. Files
    whose content changed since the runs are listed apart: what names them counts less.

    \b
    With --json one object: "ok", "store", "checks" [{"name", "ok", "detail",
    "remedy"}], "versions" {name: version}, "extras" {name: installed}, "stale"
    [{"kind", "name", "gone", "changed"}]. Exit code 1 when a check failed.

    \b
    Example:
      contextgraph doctor
      contextgraph doctor --stale --workdir ~/checkouts/shop
    """
    checkup = check_up(common, secrets=secrets)
    gone = _stale(common, workdir) if stale else []
    if common.as_json:
        listed: list[Json] = [{**stale._asdict()} for stale in gone]
        emit({**checkup_record(checkup), **({"stale": listed} if stale else {})})
    else:
        _show_checkup(checkup)
        if stale:
            _show_stale(gone)
    raise typer.Exit(DONE if checkup.ok else FAILED)


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
    return Checkup(
        store=settings.address,
        checks=(
            *_installation(),
            *_memory(common, secrets),
            *_keyed(common),
            *_hooks(settings),
        ),
        versions=_versions(),
        extras={extra: _installed(name) for extra, name in EXTRAS.items()},
    )


def _installation() -> "list[HealthCheck]":
    import sqlite3

    from contextgraph.model import HealthCheck

    running = platform.python_version()
    return [
        HealthCheck("python", sys.version_info >= OLDEST_PYTHON, running, "install Python 3.11"),
        HealthCheck(
            "full text search",
            _has_full_text(),
            f"sqlite {sqlite3.sqlite_version}",
            "use a Python whose sqlite3 has FTS5",
        ),
    ]


def _has_full_text() -> bool:
    import sqlite3

    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(words)")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def _memory(common: Common, secrets: bool) -> "list[HealthCheck]":
    with common.open(read_only=True) as memory:
        checks = [*memory.health()]
        if all(check.ok for check in checks):
            checks.append(_gate(memory.store))
        return [*checks, _secrets(memory.store.runs)] if secrets else checks


def _gate(store: "Store") -> "HealthCheck":
    """Which gate says how probable remedies are."""
    from contextgraph.model import HealthCheck

    gate = store.admin.gate()
    detail = (
        f"fitted on {number_of(gate.errors, 'error')} of {number_of(gate.runs, 'run')}"
        if gate and gate.errors
        else "the shipped one: too few errors of this memory were cleared to fit it"
    )
    return HealthCheck("gate", True, detail)


def _keyed(common: Common) -> "list[HealthCheck]":
    """Whether index and state of the keyed files follow from their log; nothing without files."""
    from contextgraph.model import HealthCheck

    settings = common.settings()
    if settings.address == ":memory:" and not settings.keyed_root:
        return []
    memory = common.keyed()
    if not memory.root.exists():
        return []
    wrong = memory.check()
    detail = "; ".join(wrong[:_NAMED]) or number_of(len(memory.keys()), "key")
    return [HealthCheck("keyed files", not wrong, detail, "run: contextgraph compact")]


def _hooks(settings: "Settings") -> "list[HealthCheck]":
    """Whether hooks of agents failed; nothing where none uses the memory."""
    from contextgraph.integrations.sessions import HookFiles
    from contextgraph.model import HealthCheck

    files = HookFiles(settings)
    if not files.are_used:
        return []
    failed = files.failed()
    detail = f"{number_of(len(failed), 'failure')}" + "".join(
        f", the last: {one}" for one in failed[-1:]
    )
    return [HealthCheck("hooks", not failed, detail, f"see {files.failures}, then remove it")]


def _secrets(runs: "RunStore") -> "HealthCheck":
    """Whether stored runs hold secrets that this version recognises."""
    from contextgraph.learning import unmasked_values
    from contextgraph.model import HealthCheck

    known = runs.ids()
    found = [one for one in known if (raw := runs.raw(one)) and unmasked_values(raw)]
    named = f": {', '.join(found[:_NAMED])}" if found else ""
    detail = f"{len(found)} of {number_of(len(known), 'run')} hold secrets{named}"
    return HealthCheck("secrets", not found, detail, "run: contextgraph migrate")


def _stale(common: Common, workdir: Path) -> "list[Stale]":
    """What the playbook of the repository in *workdir* names and that does not have, or changed."""
    from dataclasses import replace

    from contextgraph.readers import repository_name
    from contextgraph.retrieval import stale_in
    from contextgraph.working_tree import WorkingTree

    tree = WorkingTree.around(workdir)
    with common.open(read_only=True) as memory:
        repo = repository_name(str(tree.root))
        tree = replace(tree, recorded=memory.retriever.playbooks.content_hashes(repo))
        return [*stale_in(memory.playbook(repo), tree)]


def _show_stale(stale: "list[Stale]") -> None:
    rows = [(one.kind, one_line(one.name, _NAME_WIDTH), one.gone, one.changed) for one in stale]
    gone = [(kind, name, path) for kind, name, path, _ in rows if path]
    changed = [(kind, name, path) for kind, name, _, path in rows if path]
    if gone:
        print_table("Gone: named by the playbook", ("", "name", "gone"), gone)
    else:
        print("stale: nothing that the playbook names is gone")
    if changed:
        print_table("Changed since the runs", ("", "name", "file"), changed)


def _versions() -> dict[str, str]:
    import sqlite3
    from importlib.metadata import version

    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    return found | {name: version(name) for name in (DISTRIBUTION, *LIBRARIES)}


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


def checkup_record(checkup: Checkup) -> "dict[str, Json]":
    """The JSON object of *checkup*."""
    from contextgraph.codec import encoded

    return {
        "ok": checkup.ok,
        "store": checkup.store,
        "checks": [encoded(check, complete=True) for check in checkup.checks],
        "versions": dict(checkup.versions),
        "extras": dict(checkup.extras),
    }


@common_options(without=("store", "tenant"))
def formats(common: Common) -> None:
    """List the log formats that can be read.

    Shows how each is recognised and what is read from it. A format is recognised by content, not
    by file name. Experimental ones follow published descriptions and were not tested on logs of
    real runs.

    \b
    With --json one line per format: "name", "recognised_by", "keeps",
    "experimental".

    \b
    Example:
      contextgraph formats
    """
    from contextgraph.readers import all_formats

    for log_format in all_formats().values():
        if common.as_json:
            emit(
                {
                    "name": log_format.name,
                    "recognised_by": log_format.description,
                    "keeps": log_format.keeps,
                    "experimental": log_format.experimental,
                }
            )
        else:
            _show_format(log_format)


def _show_format(log_format: "Format") -> None:
    mark = (" (experimental)", "yellow") if log_format.experimental else ""
    print_text((log_format.name, "bold"), mark)
    for label, text in (("recognised by", log_format.description), ("keeps", log_format.keeps)):
        print_text((f"{label}: ", "dim"), text, indent=2)


config = typer.Typer(no_args_is_help=True, help="The settings in force.")


@config.command()
@common_options(*SETTINGS)
def show(common: Common) -> None:
    """List the settings in force, and where each is set.

    That is an option, an environment variable, contextgraph.toml in the current folder, a
    configuration in it, or a default. Secrets are masked.

    \b
    With --json one line per setting: "name", "value" (null where it is not set;
    "set" for a secret), "origin".

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
