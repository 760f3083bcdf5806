"""``contextgraph distil``: lessons of sessions, written by a language model and checked."""

import os
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.commands import Common, common_options, flag, option, time_option
from contextgraph.cli.output import FAILED, LEASE_HELD, PARTLY_DONE, emit, warn
from contextgraph.config import Settings
from contextgraph.exported import Exports
from contextgraph.service.records import record_of
from contextgraph.text import count_tokens, number_of, one_line

if TYPE_CHECKING:
    from contextgraph.agents.distilling import Distilled, Distiller
    from contextgraph.model import Json

_NICE = 10
_WIDTH = 150


@common_options()
def distil(  # noqa: PLR0913  (where the answers come from, and which sessions)
    common: Common,
    *,
    by: Annotated[str, option("MODEL", "claude, codex, openai/MODEL, or a command.")] = "",
    repo: Annotated[str | None, option("OWNER/REPO", "Only its sessions.")] = None,
    since: Annotated[
        datetime | None, time_option("Only sessions from then (ISO 8601, UTC).")
    ] = None,
    limit: Annotated[int | None, option("N", "At most N sessions.", min=1)] = None,
    dry_run: Annotated[bool, flag("Print what would be sent, and send nothing.")] = False,
    write_requests: Annotated[
        Path | None, option("FOLDER", "Write a file for each request, and send nothing.")
    ] = None,
    read_answers: Annotated[
        Path | None, option("FOLDER", "Read answers beside the requests (NAME.json).")
    ] = None,
    queued: Annotated[bool, flag("In the background: quiet, and not after a failure.")] = False,
) -> None:
    """Let a language model write down the lessons of finished sessions.

    The model gets what people said, masked, and the end of what the agent said before. What it
    answers is checked: quotes have to stand in the session, names and absolute words, too. A lesson
    is proposed until it is accepted (`contextgraph lessons`) or said again. Each session is asked
    about once. Off until a model is chosen by --by or the setting distil; bounded by distil_tokens
    a day and --max-cost.

    \b
    Example:
      contextgraph distil --dry-run
      contextgraph distil --by claude --since 2026-11-01
      contextgraph distil --write-requests requests/
      contextgraph distil --read-answers requests/
    """
    from contextgraph.agents.distilling import Distiller, DistilLog, answerer_of

    settings = common.settings()
    if settings.is_service:
        raise click.BadParameter(
            f"--store: {settings.address} is a service; run it beside its memory"
        )
    if sum(map(bool, (by, dry_run, write_requests, read_answers, queued))) > 1:
        raise click.BadParameter(
            "give one of --by, --dry-run, --write-requests, --read-answers, --queued"
        )
    chosen, log = by or settings.distil, DistilLog(settings)
    with log.alone() as is_alone:
        if not is_alone:
            if queued:
                return
            warn("another process distils this memory")
            raise click.exceptions.Exit(LEASE_HELD)
        with common.open(create=False) as memory:
            distiller = Distiller(memory, log, settings.distil_tokens)
            if dry_run or write_requests:
                _write(common, distiller, write_requests, repo, since, limit)
            elif read_answers:
                _report(common, _read(distiller, read_answers, repo), settings, quiet=False)
            elif queued:
                os.nice(_NICE)
                if not distiller.is_paused():
                    receipts = distiller.distil_all(answerer_of(chosen, memory))
                    _report(common, receipts, settings, quiet=True)
            else:
                receipts = distiller.distil_all(answerer_of(chosen, memory), repo, since, limit)
                _report(common, receipts, settings, quiet=False)


def _write(
    common: Common,
    distiller: "Distiller",
    folder: Path | None,
    repo: str | None,
    since: datetime | None,
    limit: int | None,
) -> None:
    """Write each request into *folder*, or print it."""
    sessions, requests, tokens = 0, 0, 0
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        Exports(common.settings()).add(folder, "requests")
    for _, session in islice(distiller.waiting(repo, since), limit):
        sessions += 1
        for part in range(len(session.parts)):
            request = distiller.request(session, part)
            requests, tokens = requests + 1, tokens + count_tokens(request.text)
            if folder is not None:
                (folder / f"{request.name}.txt").write_text(request.text, "utf-8")
            elif common.as_json:
                emit({"name": request.name, "run": session.run_id, "text": request.text})
            else:
                print(request.text, end="\n\n")
    summary: dict[str, Json] = {"sessions": sessions, "requests": requests, "tokens": tokens}
    if common.as_json:
        emit({"summary": summary})
    else:
        sizes = f"{number_of(sessions, 'session')}, {number_of(requests, 'request')}"
        warn(f"{sizes}, about {tokens:,} tokens; nothing was sent")


def _read(distiller: "Distiller", folder: Path, repo: str | None) -> "Iterator[Distilled]":
    """Keep the answers in *folder* to the requests that lie there."""
    from contextgraph.knowledge.distil import given_in

    for run, session in distiller.waiting(repo):
        for part in range(len(session.parts)):
            name = distiller.request(session, part).name
            asked, answer = folder / f"{name}.txt", folder / f"{name}.json"
            if not (asked.is_file() and answer.is_file()):
                continue
            text = asked.read_text("utf-8")
            request = distiller.request(session, part, given_in(text))
            if request.text != text:
                warn(f"{asked}: the session or its lessons have changed since; write it again")
                continue
            yield distiller.take(answer.read_text("utf-8"), run, request)


def _report(
    common: Common, receipts: "Iterator[Distilled]", settings: Settings, *, quiet: bool
) -> None:
    """Print each of *receipts*, and their sum."""
    from contextgraph.agents.hook_files import HookFiles

    totals = dict.fromkeys(
        ("done", "failed", "stopped", "kept", "confirmed", "refused", "tokens"), 0
    )
    for one in receipts:
        totals[one.status] += 1
        totals["kept"] += one.kept
        totals["confirmed"] += one.confirmed
        totals["refused"] += len(one.refused)
        totals["tokens"] += one.tokens
        if common.as_json:
            emit(record_of(one))
        elif not quiet:
            found = f"{number_of(one.kept, 'lesson')}, {one.confirmed} confirmed"
            print(f"{one.run}  {found}, {len(one.refused)} refused, {one.tokens:,} tokens")
            for refused in one.refused:
                print(one_line(f"  refused: {refused.reason}: {refused.text}", _WIDTH))
        if one.reason:
            if quiet:
                HookFiles(settings).fail(f"distil: {one.reason}")
            else:
                warn(one.reason)
    if common.as_json:
        emit({"summary": {**totals}})
    elif not quiet:
        asked = totals["done"] + totals["failed"]
        print(
            f"{number_of(asked, 'session')}: {number_of(totals['kept'], 'lesson')} proposed, "
            f"{totals['confirmed']} confirmed, {totals['refused']} refused, "
            f"{totals['tokens']:,} tokens; review them: contextgraph lessons --review"
        )
    if totals["failed"] or totals["stopped"]:
        raise click.exceptions.Exit(PARTLY_DONE if totals["done"] else FAILED)
