"""Lessons of reviews and CI: ``contextgraph learn --reviews`` and ``--ci``."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from contextgraph.cli.commands import Common, repository_here
from contextgraph.cli.output import DONE, FAILED, PARTLY_DONE, emit, warn
from contextgraph.errors import ReadError
from contextgraph.service.records import learned_record, unread_record
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.model import Json
    from contextgraph.readers.repository import GitFolder

_SOURCE = "ci"
_NAMES = "; a log is named after its job: `1_NAME.txt`, or as `gh run view --log` prints it"


def learn_reviews(common: Common, paths: Sequence[Path]) -> None:
    """Keep the lessons in reviews of pull requests; each reviewer is a source."""
    from contextgraph.knowledge.reviews import lessons_of_reviews

    if common.settings().is_service:
        raise click.BadParameter("--reviews are read on the machine of the memory itself")
    counts, read = Counter[str](), 0
    git, here = _git_here(), repository_here()
    with common.open() as memory:
        for path in paths:
            try:
                # Code of another repository says nothing about what followed.
                found = lessons_of_reviews(path, git, here)
            except ReadError as error:
                counts["failed"] += 1
                _report(common, error)
                continue
            read += 1
            counts["comments"] += found.comments
            counts["skipped"] += found.skipped
            for (repo, reviewer), lessons in found.lessons.items():
                new, known = memory.lessons.keep(lessons, repo, reviewer) if lessons else ((), ())
                counts["created"] += len(new)
                counts["unchanged"] += len(known)
    names = ("comments", "skipped", "created", "unchanged", "failed")
    text = (
        f"{number_of(counts['created'], 'lesson')} of {number_of(counts['comments'], 'comment')};"
        " those that nothing followed wait: contextgraph lessons --all"
    )
    common.answer({"summary": {name: counts[name] for name in names}}, text)
    raise click.exceptions.Exit(_code(read, counts["failed"]))


def learn_ci(common: Common, paths: Sequence[Path]) -> None:
    """Learn logs of jobs as runs: what failed, and what cleared it in the next commit."""
    from contextgraph.readers.ci import runs_of_jobs

    source = str(common.flags.get("source") or _SOURCE)
    counts = Counter[str]()
    with common.open() as memory:
        try:
            jobs = [*runs_of_jobs(paths, repository_here(), _git_here())]
        except ReadError as error:
            _report(common, error)
            raise click.exceptions.Exit(FAILED) from error
        runs = [job.run for job in jobs]
        learned = memory.learn_many(runs, source=source)
        for raw, receipt in zip(runs, learned, strict=True):
            counts[str(receipt.status)] += 1
            if common.as_json:
                emit(learned_record(raw, receipt))
    for job in jobs:
        if job.failed:
            warn(f"{job.name} failed, and no later log of a job of this name is here{_NAMES}")
    text = ", ".join(f"{number_of(count, 'run')} {status}" for status, count in counts.items())
    record: dict[str, Json] = {"records": len(runs), **counts}
    common.answer({"summary": record}, text or "no command of a job found")
    raise click.exceptions.Exit(_code(len(runs), 0))


def _git_here() -> "GitFolder | None":
    from contextgraph.readers.repository import GitFolder

    return GitFolder.around(str(Path.cwd()))


def _report(common: Common, error: ReadError) -> None:
    warn(str(error))
    if common.as_json:
        emit(unread_record(error))


def _code(read: int, failed: int) -> int:
    return (PARTLY_DONE if failed else DONE) if read else FAILED
