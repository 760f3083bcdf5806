"""Logs of jobs of GitHub Actions as runs: each command with its output and exit code.

A job that failed and the next one of the same name that did not are one run, with the commits
between them as its edits: so it shows what cleared the failure.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from contextgraph.model import NEVER, Action, RawTrajectory, Step
from contextgraph.model.values import replace
from contextgraph.readers.repository import GitFolder
from contextgraph.readers.tool_calls import edits_of
from contextgraph.system.intake import lines
from contextgraph.text import clean, clip, regex

FORMAT, AGENT = "github-actions", "ci"
_STAMP = regex(r"(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z (?P<text>.*)")
_RUN = regex(r"##\[group\]Run (?P<line>.*)")
_ACTION = regex(r"[\w.-]+/[\w./-]+@\S+|\./\S*")
_SCRIPT = regex(r"\x1b\[36;1m(?P<line>.*?)\x1b\[0m")
_EXIT = regex(r"##\[error\]Process completed with exit code (?P<code>\d+)\.?")
_ENDED = regex(r"##\[group\]|Post job cleanup\.|Cleaning up orphan processes")
_HEAD = regex(
    r"(?:HEAD is now at [0-9a-f]+ )?Merge (?P<merged>[0-9a-f]{40}) into [0-9a-f]{40}"
    r"|'?(?P<plain>[0-9a-f]{40})'?$|HEAD is now at (?P<short>[0-9a-f]{7,40})\b"
)
_NUMBERED = regex(r"^\d+_")
_MARK = regex(r"##\[(?:error|warning|notice|debug|command|section)\]")
_MOST_LINE, _MOST_OUTPUT = 1 << 20, 200_000


class Job(NamedTuple):
    """The log of a job: its *name*, the *commit* it ran on, and its *steps*."""

    name: str
    commit: str
    started_at: datetime | None
    steps: tuple[Step, ...]
    source: str

    @property
    def failed(self) -> bool:
        """True if a command of it failed."""
        return any(step.exit_code for step in self.steps)


class JobRun(NamedTuple):
    """The *run* of a job; *failed*: no later log of a job of its *name* shows that it passed."""

    run: RawTrajectory
    name: str
    failed: bool = False


def runs_of_jobs(
    paths: Sequence[Path], repo: str, git: GitFolder | None = None
) -> Iterator[JobRun]:
    """Yield the runs of *repo* that the logs *paths* hold, with the commits that *git* has.

    Raises `ReadError` for a file that cannot be read.
    """
    named = defaultdict[str, list[Job]](list)
    for path in paths:
        for job in _jobs(path):
            named[job.name].append(job)
    for name, jobs in named.items():
        jobs.sort(key=lambda job: job.started_at or NEVER)
        failed: Job | None = None
        for job in jobs:
            if failed and not job.failed:
                yield JobRun(_cleared(failed, job, repo, git), name)
                failed = None
                continue
            if failed:
                yield JobRun(_run(failed, repo), name)
            failed = job if job.failed else None
            if not job.failed:
                yield JobRun(_run(job, repo), name)
        if failed:
            yield JobRun(_run(failed, repo), name, failed=True)


def _run(job: Job, repo: str) -> RawTrajectory:
    return RawTrajectory(
        FORMAT,
        f"{job.name}@{job.commit[:12]}" if job.commit else job.name,
        repo,
        f"CI job {job.name}",
        tuple(replace(step, index=at) for at, step in enumerate(job.steps)),
        AGENT,
        started_at=job.started_at,
        source=job.source,
    )


def _cleared(failed: Job, job: Job, repo: str, git: GitFolder | None) -> RawTrajectory:
    """Return the run of *failed* and of *job*, which cleared it, with what changed between them.

    What *failed* ran already without an error, as an installation, cleared nothing.
    """
    patch, edits = "", tuple[Step, ...]()
    if git and failed.commit and job.commit:
        asked = ("diff-tree", "-p", "--no-renames", "--no-ext-diff", "--no-textconv")
        patch = git.output(*asked, failed.commit, job.commit)
        edits = tuple(Step(0, "", action, "", exit_code=0) for action in edits_of(patch))
    before = {step.action.text for step in failed.steps if not step.exit_code}
    later = [step for step in job.steps if step.action.text not in before]
    joined = _run(failed._replace(steps=(*failed.steps, *edits, *later)), repo)
    return replace(joined, patch=patch or None)


def _jobs(path: Path) -> Iterator[Job]:
    """Yield the jobs in the log at *path*; `gh run view --log` prints all of a run in one file."""
    own = _NUMBERED.sub("", path.stem)
    texts = defaultdict[str, list[tuple[str, str]]](list)
    for raw in lines(path, _MOST_LINE):
        line = raw.decode("utf-8", "replace").lstrip("\ufeff").rstrip("\r\n")
        name, _, rest = line.partition("\t")
        _, _, last = rest.partition("\t")
        stamped = _STAMP.fullmatch(last.lstrip("\ufeff")) if rest else None
        job = name if stamped else own
        stamped = stamped or _STAMP.fullmatch(line)
        texts[job].append((stamped["at"], stamped["text"]) if stamped else ("", line))
    for name, said in texts.items():
        yield _job(name, said, str(path))


def _job(name: str, said: Sequence[tuple[str, str]], source: str) -> Job:
    steps, commits = list[Step](), dict[str, str]()
    current: _Command | None = None
    for at, line in said:
        if head := _HEAD.match(line):
            commits |= {kind: value for kind, value in head.groupdict().items() if value}
        if started := _RUN.match(line):
            steps += current.steps() if current else ()
            is_action = bool(_ACTION.match(started["line"]))
            current = None if is_action else _Command(started["line"], at)
        elif current and _ENDED.match(line):
            steps += current.steps()
            current = None
        elif current:
            current.push(line)
    steps += current.steps() if current else ()
    commit = commits.get("merged") or commits.get("plain") or commits.get("short") or ""
    first = next((datetime.fromisoformat(f"{at}+00:00") for at, _ in said if at), None)
    return Job(name, commit, first, tuple(steps), source)


class _Command:
    """A command of a log: its script, and what it printed so far."""

    def __init__(self, line: str, at: str) -> None:
        self._line, self._at, self._script = line, at, list[str]()
        self._output, self._code, self._is_head = list[str](), 0, True

    def push(self, line: str) -> None:
        if self._is_head:
            if script := _SCRIPT.search(line):
                self._script.append(script["line"])
            self._is_head = line != "##[endgroup]"
        elif ended := _EXIT.match(line):
            self._code = int(ended["code"])
        else:
            self._output.append(_MARK.sub("", line))

    def steps(self) -> tuple[Step, ...]:
        text = "\n".join(self._script) or self._line
        at = datetime.fromisoformat(f"{self._at}+00:00") if self._at else None
        output = clip(clean("\n".join(self._output)), _MOST_OUTPUT)
        action = Action("bash", text, {"command": text})
        return (Step(0, "", action, output, exit_code=self._code, timestamp=at),)
