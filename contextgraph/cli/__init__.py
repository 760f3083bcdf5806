"""The command line: parse, call one method of `AgentMemory`, print."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, cast

import typer

from contextgraph.cli import (
    consolidate,
    evaluate,
    experiment,
    inspect,
    installation,
    learn,
    maintenance,
    notes,
    pages,
    query,
    runs,
    service,
    stats,
)
from contextgraph.cli.output import (
    FAILED,
    STORE_UNAVAILABLE,
    accept_any_text,
    warn,
)
from contextgraph.errors import ContextGraphError, StoreUnavailableError
from contextgraph.text import mask_secrets

app = typer.Typer(
    name="contextgraph",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich would double the time of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    learn.learn,
    query.query,
    runs.report,
    runs.playbook,
    runs.how,
    inspect.inspect,
    inspect.loops,
    experiment.replay,
    evaluate.evaluate,
    runs.runs,
    runs.outcome,
    stats.stats,
    stats.friction,
    stats.explain,
    runs.quarantine,
    runs.release,
    inspect.formats,
    installation.doctor,
    notes.remember,
    notes.recall,
    notes.snapshot,
    notes.maintain,
    pages.set_,
    pages.brief,
    maintenance.compact,
    consolidate.consolidate,
    consolidate.reembed,
    consolidate.rebuild,
    consolidate.migrate,
    maintenance.forget,
    maintenance.export,
    maintenance.import_,
    maintenance.backup,
    installation.integrations,
    installation.trust,
    installation.hook,
    stats.log,
    service.serve,
):
    app.command(command.__name__.rstrip("_"))(command)
app.add_typer(installation.config, name="config")
app.add_typer(experiment.experiment, name="experiment")
app.add_typer(service.mcp, name="mcp")
app.add_typer(notes.app, name="notes")
app.add_typer(service.token, name="token")
app.add_typer(pages.pages, name="pages")
app.add_typer(pages.entities, name="entities")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, on *arguments* or those of the process.

    Always raises `SystemExit`: 0 done, 1 failed, 2 wrong usage, 3 partly done, 4 store
    unavailable, 5 another process holds the lease, 130 interrupted.
    """
    accept_any_text()
    code = _run(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has exited; Python would report that again at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    try:
        # What is returned is a number where the command exits early.
        return app(args=[*given], prog_name="contextgraph", standalone_mode=False) or 0
    except typer.TyperException as error:
        # An argument in the wrong place is quoted.
        for argument in given:
            error.message = error.message.replace(argument, mask_secrets(argument))
        error.message = mask_secrets(error.message)
        cast(Any, error).show()
        return error.exit_code
    except typer.Abort:
        warn("aborted")
        return FAILED
    except StoreUnavailableError as error:
        warn(str(error))
        return STORE_UNAVAILABLE
    except ContextGraphError as error:
        warn(str(error))
        return FAILED
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else FAILED


def _print_version(wanted: bool) -> None:
    if wanted:
        from contextgraph.cli.installation import own_version

        print(f"contextgraph {own_version()}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """The long-term memory of coding agents: learns from finished runs, advises the next one.

    \b
    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 partly done (some inputs
    failed, each reported), 4 store unavailable, 5 another process holds the
    lease, 130 interrupted.
    """
