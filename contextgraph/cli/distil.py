"""``contextgraph distil``: lessons and methodologies by a language model, which are checked."""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.commands import Common, common_options, flag, option, time_option
from contextgraph.cli.output import FAILED, LEASE_HELD, PARTLY_DONE, emit, warn
from contextgraph.config import Settings
from contextgraph.service.records import record_of
from contextgraph.system.processes import replacing
from contextgraph.text import count_tokens, number_of, one_line

if TYPE_CHECKING:
    from contextgraph.knowledge.distil import Session
    from contextgraph.learning.distilling import Distilled, Distiller, Worded
    from contextgraph.memory.agent_memory import AgentMemory

_NICE = 10
_WIDTH = 150


@common_options("max_cost")
def distil(  # noqa: PLR0913  (where the answers come from, and which sessions)
    common: Common,
    *,
    by: Annotated[
        str, option("MODEL", "claude, codex, gemini, opencode, openai/MODEL, or a command.")
    ] = "",
    repo: Annotated[str | None, option("OWNER/REPO", "Only its sessions.")] = None,
    since: Annotated[
        datetime | None, time_option("Only sessions from then on: 12h, 7d, 4w or ISO.")
    ] = None,
    limit: Annotated[int | None, option("N", "At most N sessions or methodologies.", min=1)] = None,
    methodologies: Annotated[
        bool, flag("Summaries of how cases of one error were solved, not lessons.")
    ] = False,
    reviews: Annotated[
        list[Path] | None,
        option("FILE", "Comments of reviews, as for learn --reviews, not sessions (repeatable)."),
    ] = None,
    dry_run: Annotated[bool, flag("Print what would be sent, and send nothing.")] = False,
    write_requests: Annotated[
        Path | None, option("FOLDER", "Write a file for each request, and send nothing.")
    ] = None,
    read_answers: Annotated[
        Path | None,
        option(
            "FOLDER", "Read answers beside the requests (NAME.json).", exists=True, file_okay=False
        ),
    ] = None,
    queued: Annotated[bool, flag("In the background: quiet, and not after a failure.")] = False,
) -> None:
    """Let a language model write down the lessons of finished sessions.

    The model gets what people said, masked, and the end of what the agent said before. What it
    answers is checked: quotes have to stand in the session, names and absolute words, too. A lesson
    is proposed until it is accepted (`contextgraph lessons`) or repeated. Each session is asked
    about once. Off until a model is chosen by --by or the setting distil; bounded by distil_tokens
    a day and --max-cost. With --methodologies it summarises what the cases of one error have in
    common, beside the words of the template.

    \b
    Example:
      contextgraph distil --dry-run
      contextgraph distil --by claude --since 2026-11-01
      contextgraph distil --write-requests requests/
      contextgraph distil --read-answers requests/
    """
    from contextgraph.inference.answering import answerer_of
    from contextgraph.learning.distilling import DistilLog

    settings = common.settings()
    misuses = {
        f"--store: {settings.address} is a service; run it beside its memory": settings.is_service,
        "give one of --by, --dry-run, --write-requests, --read-answers, --queued": sum(
            map(bool, (by, dry_run, write_requests, read_answers, queued))
        )
        > 1,
        "--reviews takes neither --since nor --methodologies": reviews and (since or methodologies),
    }
    for misuse in (reason for reason, is_given in misuses.items() if is_given):
        raise click.BadParameter(misuse)
    chosen, log = by or settings.distil, DistilLog(settings)
    with log.alone() as is_alone:
        if not is_alone:
            if queued:
                return
            warn("another process distils this memory")
            raise click.exceptions.Exit(LEASE_HELD)
        with common.open(create=bool(reviews)) as memory:
            distiller = memory.distiller()
            sessions = islice(_sessions(distiller, repo, since, reviews or []), limit)
            if methodologies:
                _word(
                    common,
                    memory,
                    distiller,
                    chosen,
                    (dry_run, write_requests, read_answers),
                    limit,
                )
            elif dry_run or write_requests:
                asked = _requests(distiller, sessions, following=not write_requests)
                _write(common, asked, write_requests, "session", "sessions")
            elif read_answers:
                _report(common, _read(distiller, read_answers, sessions), settings, quiet=False)
            elif queued:
                os.nice(_NICE)
                if not distiller.is_paused():
                    receipts = distiller.distil_all(answerer_of(chosen, memory.chat_of), sessions)
                    _report(common, receipts, settings, quiet=True)
            else:
                receipts = distiller.distil_all(answerer_of(chosen, memory.chat_of), sessions)
                _report(common, receipts, settings, quiet=False)


def _sessions(
    distiller: "Distiller", repo: str | None, since: datetime | None, reviews: list[Path]
) -> "Iterator[Session]":
    """Return the sessions that wait; of *reviews* what each reviewer wrote."""
    from contextgraph.cli.commands import repository_here
    from contextgraph.knowledge.reviews import sessions_of_reviews
    from contextgraph.readers.repository import GitFolder

    if not reviews:
        return distiller.waiting(repo, since)
    git = GitFolder.around(str(Path.cwd()))
    found = sessions_of_reviews(reviews, git, repository_here())
    return distiller.not_asked(one for one in found if repo in (None, one.repo))


def _write(
    common: Common,
    asked: Iterable[tuple[str, str, str]],
    folder: Path | None,
    what: str,
    several: str,
) -> None:
    """Write requests into *folder*, or print them: each a name, the id of *what*, and a text.

    *several* is its plural.
    """
    ids, requests, tokens = set[str](), 0, 0
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        common.exported(folder, "requests")
    for name, id_, text in asked:
        ids.add(id_)
        requests, tokens = requests + 1, tokens + count_tokens(text)
        if folder is not None:
            with replacing(folder / f"{name}.txt") as part:  # for its owner alone
                part.write_text(text, "utf-8")
        elif common.as_json:
            emit({"name": name, "run": id_, "text": text})
        else:
            print(text, end="\n\n")
    if common.as_json:
        emit({"summary": {several: len(ids), "requests": requests, "tokens": tokens}})
    else:
        sizes = f"{number_of(len(ids), what)}, {number_of(requests, 'request')}"
        warn(f"{sizes}, about {tokens:,} tokens; nothing was sent")


def _requests(
    distiller: "Distiller", sessions: "Iterable[Session]", *, following: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield the requests about the first parts, and about the *following* ones as they are now.

    Once the parts before are answered, those about later parts also show their lessons.
    """
    for session in sessions:
        for part in islice(distiller.parts(session), None if following else 1):
            request = distiller.request(session, part)
            yield request.name, session.run_id, request.text


def _word(
    common: Common,
    memory: "AgentMemory",
    distiller: "Distiller",
    chosen: str,
    files: tuple[bool, Path | None, Path | None],
    limit: int | None,
) -> None:
    """Have methodologies worded, or write the requests, or read the answers."""
    from contextgraph.inference.answering import answerer_of
    from contextgraph.inference.summarizer import request_about, template_summary
    from contextgraph.learning.distilling import FILE

    is_dry, written, answered = files
    if is_dry or written:
        waiting = distiller.methodologies(FILE, limit)
        asked = ((derived[1].id, derived[1].id, request_about(derived[0])) for derived in waiting)
        _write(common, asked, written, "methodology", "methodologies")
        return
    found = (
        _read_words(distiller, answered)
        if answered
        else distiller.word_all(answerer_of(chosen, memory.chat_of), limit)
    )
    count, failed = 0, 0
    for one in found:
        receipt = one.receipt
        count += receipt.kept
        failed += not receipt.kept
        template = template_summary(one.group)
        if receipt.reason:
            warn(receipt.reason)
        if common.as_json:
            words = record_of(one.words) if one.words else None
            emit({**record_of(receipt), "template": record_of(template), "words": words})
            continue
        print(f"{receipt.run}  {receipt.tokens:,} tokens")
        for by, said in (("template", template), (receipt.by, one.words)):
            print(f"  {by}: {said.situation}: {said.strategy}" if said.strategy else f"  {by}: -")
        for refused in receipt.refused:
            print(one_line(f"  refused: {refused.reason}", _WIDTH))
    if common.as_json:
        emit({"summary": {"worded": count, "failed": failed}})
    else:
        print(f"{number_of(count, 'methodology')} worded")
    if failed:
        raise click.exceptions.Exit(PARTLY_DONE if count else FAILED)


def _read_words(distiller: "Distiller", folder: Path) -> "Iterator[Worded]":
    """Keep the answers in *folder* to the requests about methodologies that lie there."""
    from contextgraph.inference.summarizer import request_about
    from contextgraph.learning.distilling import FILE

    for derived in distiller.methodologies(FILE):
        id_ = derived[1].id
        if not (answered := _answered(folder, id_)):
            continue
        text, answer = answered
        if text != request_about(derived[0]):
            warn(f"{folder / id_}.txt: its cases have changed since; write it again")
            continue
        yield distiller.take_words(answer, derived)


def _read(
    distiller: "Distiller", folder: Path, sessions: "Iterable[Session]"
) -> "Iterator[Distilled]":
    """Keep the answers in *folder* to the requests there, of each session to that on its next part.

    The turns up to a part count as asked about, and its lessons are given with the next one.
    """
    from contextgraph.knowledge.distil import given_in

    longer = 0
    for session in sessions:
        part, *following = distiller.parts(session)
        name = distiller.request(session, part).name
        if not (answered := _answered(folder, name)):
            continue
        text, answer = answered
        request = distiller.request(session, part, given_in(text))
        if request.text != text:
            asked = folder / f"{name}.txt"
            warn(f"{asked}: the session or its lessons have changed since; write it again")
            continue
        receipt = distiller.take(answer, request)
        longer += bool(following) and receipt.status == "done"
        yield receipt
    if longer:
        warn(f"{number_of(longer, 'session')} with a next part: --write-requests writes it now")


def _answered(folder: Path, name: str) -> tuple[str, str] | None:
    """Return the request *name* in *folder* and its answer; None unless both can be read."""
    files = folder / f"{name}.txt", folder / f"{name}.json"
    if not all(file.is_file() for file in files):
        return None
    texts = []
    for file in files:
        try:
            texts.append(file.read_text("utf-8"))
        except UnicodeDecodeError as error:
            warn(f"{file}: not UTF-8 at byte {error.start}; it is not read")
            return None
    asked, answer = texts
    return asked, answer


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
                HookFiles(settings).fail_to_distil(one.reason)
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
