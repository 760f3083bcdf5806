"""Options and exit codes that several commands share, and how they open a memory."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from contextgraph.config import Settings
    from contextgraph.memory import AgentMemory

DONE, FAILED, PARTLY_DONE, STORE_UNAVAILABLE, LEASE_HELD = 0, 1, 3, 4, 5


def option(flag: str, metavar: str, help_text: str, **details: Any) -> Any:
    """A flag whose default is not shown; Any, because typer types its own options so."""
    return typer.Option(flag, metavar=metavar, help=help_text, show_default=False, **details)


def time_option(flag: str, help_text: str) -> Any:
    """A flag for a time in ISO 8601; one without a zone is UTC."""
    return option(flag, "TIME", help_text, parser=_time_of)


def _time_of(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(
            f"{text!r} is not a time such as 2026-01-31 or 2026-01-31T12:00:00"
        ) from error


Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        help="The memory: a file, :memory:, or an address with neo4j://, bolt:// or http://"
        " (or CONTEXTGRAPH_STORE).",
        show_default="contextgraph/memory.db in the user's data directory",
    ),
]
Tenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        metavar="NAME",
        help="The tenant whose memory it is (or CONTEXTGRAPH_TENANT).",
        show_default="default",
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="tfidf, local, local/FOLDER or openai/MODEL (or CONTEXTGRAPH_EMBEDDER).",
        show_default="that of the memory",
    ),
]
Summarizer = Annotated[
    str | None,
    typer.Option(
        "--summarizer",
        metavar="NAME",
        help="template or openai/MODEL (or CONTEXTGRAPH_SUMMARIZER).",
        show_default="template",
    ),
]
Configuration = Annotated[
    str | None,
    typer.Option(
        "--configuration",
        metavar="NAME",
        help="One of [configurations] in contextgraph.toml (or CONTEXTGRAPH_CONFIGURATION).",
        show_default="default",
    ),
]
MaxCost = Annotated[
    float | None,
    option(
        "--max-cost", "DOLLARS", "The most to spend on models (or CONTEXTGRAPH_MAX_COST).", min=0
    ),
]
MaxRunSize = Annotated[
    float | None,
    typer.Option(
        "--max-run-size",
        metavar="MIB",
        min=1,
        help="The most that one run may have, decompressed (or CONTEXTGRAPH_MAX_RUN_SIZE).",
        show_default="256",
    ),
]
FollowLinks = Annotated[
    bool,
    typer.Option("--follow-links", help="Follow links that lead out of a named folder."),
]
Source = Annotated[
    str | None,
    option("--source", "NAME", "The source to record (or CONTEXTGRAPH_SOURCE)."),
]
Workdir = Annotated[
    Path | None,
    option(
        "--workdir",
        "FOLDER",
        "The checkout; files and symbols that it does not have are left out.",
        exists=True,
        file_okay=False,
    ),
]
Git = Annotated[
    bool,
    typer.Option(
        "--git",
        help="Check in git repositories on this machine whether later commits kept or reverted"
        " the changes of runs.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at a damaged run, instead of skipping it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines for programs.")]
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Trajectory files, folders or globs; - for standard input.",
        show_default=False,
    ),
]


def settings_of(
    store: str | None, tenant: str | None = None, **flags: str | float | None
) -> "Settings":
    """The settings in force with these options; *flags* that are None are as they are set."""
    from contextgraph.config import load_settings

    return load_settings(None, None, store=store or None, tenant=tenant, **flags)


def open_memory(
    store: str | None,
    tenant: str | None,
    *,
    read_only: bool = False,
    create: bool = True,
    **flags: str | float | None,
) -> "AgentMemory":
    """The memory that the options name; with *read_only*, or without *create*, it must exist."""
    from contextgraph.memory import AgentMemory

    settings = settings_of(store, tenant, **flags)
    return AgentMemory.of_settings(settings, read_only=read_only, create=create)
