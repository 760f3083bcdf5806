"""Finds what was written down as decided: in files for agents, decision records and commits.

People read and keep these, so that no model is needed: `CLAUDE.md`, `AGENTS.md`, rules, an agent's
own memory files, lists of decisions, and the history of a repository. Each line stands alone.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from datetime import datetime

from contextgraph.knowledge.broken import files_at
from contextgraph.knowledge.counted import Commit, checklists
from contextgraph.knowledge.extraction import paths_in, sentences_in
from contextgraph.knowledge.sentences import is_whole
from contextgraph.model import (
    About,
    LessonFacts,
    LessonKind,
    Origin,
    Quotation,
    RawTrajectory,
    Step,
)
from contextgraph.readers.repository import GitFolder
from contextgraph.text import gives_instructions, regex
from contextgraph.trace.actions import new_text, read_action

# A file that agents read at their start, and one that lists decisions.
_RULES = regex(
    r"(?i:(?:^|/)(?:claude|agents?|gemini|memory|conventions)(?:\.local)?\.md$"
    r"|(?:^|/)(?:rules|memory)/[^/]+\.mdc?$)"
)
_DECISIONS = regex(r"(?i:(?:^|/)(?:[\w-]*decisions?[\w-]*\.md|(?:adrs?|decisions)/[^/]+\.md)$)")
_MENTIONED = regex(r"(?i:\.mdc?\b)")
# A point of a list or a sentence in a line of its own; "D9:" and "**D9**" name a decision.
_POINT = regex(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ x]\]\s+)?(?P<text>\S.*)$")
_NUMBERED = regex(r"^[\s*_#|]*\[?[A-Z]{1,5}-?\d{1,4}[\s*_:.)\]|–—-]+(?P<text>\S.*)$")
_RECORDED = regex(r"\*\*[A-Z]{1,5}-?\d{1,4}\*\*[\s:–—-]+(?P<text>\S.*)$")
_MARKS = regex(r"\*\*|__|^#+\s+")
_FEWEST_WORDS, _MOST_CHARACTERS = 5, 320

# Commits that are read, the newest first, and lessons that are taken of them. One that changes
# more files is about no file; a reason of fewer words is none.
_COMMITS, _MOST_REASONS, _MOST_FILES, _FEWEST_OF_REASON = 2_000, 300, 3, 8
_LOG = ("log", "--no-merges", "--no-renames", f"--max-count={_COMMITS}", "--name-status")
_FORMAT = "--format=%x01%H%x02%an%x02%cI%x02%B%x02"
_REVERTS, _BOT = regex(r"^This reverts commit ([0-9a-f]{7,64})", re.MULTILINE), "[bot]"
_BREAK, _NO_PROSE = regex(r"\n\s*\n"), regex(r"[-*+>|\s#`\d(]|[\w-]+: \S|\S+$")
_MOST_RECORDS = 100
# Names without a file for which the log is read: that costs as much as all changes since.
_MOST_GONE, _SPECIAL = 50, regex(r"[][.*^$+?(){}|\\]")
_CHANGES = regex(r"(?i:(?:^|/)(?:changelog|changes|history|news)\.(?:md|rst|txt)$)")
_MOST_CHANGES = 60
# The parts of a decision record in its usual form.
_HEADING = regex(r"^(?P<marks>#{1,4})\s+(?P<title>.+?)\s*#*$", re.MULTILINE)
_NUMBER = regex(r"^(?:adr[- ]?)?\d+[.:)]?\s*[-–—:]?\s*", re.IGNORECASE)
_DROPPED = regex(r"\b(?:superseded|deprecated|rejected|proposed|draft)\b", re.IGNORECASE)


def is_read_at_start(path: str) -> bool:
    """Return True for a file that agents read by themselves when they start."""
    return bool(_RULES.search(path))


def written_in(run: RawTrajectory, run_id: str, now: datetime) -> Iterator[tuple[str, LessonFacts]]:
    """Yield the lessons that *run*, which has the id *run_id*, wrote into such files.

    And, as proposed, what its agent says to have recorded under a name: "**D9** …". *now* is the
    time of steps without one.
    """
    for step in run.steps:
        yield from _recorded(step, run.instance_id, run_id, step.timestamp or now)
        if _MENTIONED.search(step.action.text) and not step.is_error:
            yield from _written_at(step, run.instance_id, run_id, step.timestamp or now)


def _recorded(
    step: Step, session: str, run_id: str, at: datetime
) -> Iterator[tuple[str, LessonFacts]]:
    for line in step.thought.splitlines():
        named = _RECORDED.search(line)
        text = _standing_alone(named["text"]) if named else ""
        if text:
            said = Quotation(line.strip(), run_id, session, step.index, at, "agent")
            about = About(paths=paths_in(text))
            yield text, LessonFacts(LessonKind.DECISION, Origin.WRITTEN, about, (said,))


def _written_at(
    step: Step, session: str, run_id: str, at: datetime
) -> Iterator[tuple[str, LessonFacts]]:
    reading = read_action(step.action, step.cwd, None)
    for path in reading.changed:
        if _RULES.search(path):
            kind = LessonKind.RULE
        elif _DECISIONS.search(path):
            kind = LessonKind.DECISION
        else:
            continue
        for line in _unwrapped(new_text(step.action, reading)):
            if text := _lesson_in(line):
                said = Quotation(line.strip(), run_id, session, step.index, at, path)
                about = About(paths=paths_in(text))
                yield text, LessonFacts(kind, Origin.WRITTEN, about, (said,), is_active=True)


def _unwrapped(lines: Iterable[str]) -> Iterator[str]:
    """Yield *lines*, with those that go on with a point of a list joined to it."""
    point = ""
    for line in lines:
        if point and line[:1].isspace() and line.strip() and not _POINT.match(line):
            point += f" {line.strip()}"
            continue
        if point:
            yield point
        point = line if _POINT.match(line) else ""
        if not point:
            yield line
    if point:
        yield point


def _lesson_in(line: str) -> str:
    """Return the lesson that a *line* holds; empty for a heading, a fragment, an instruction."""
    point = _POINT.match(line)
    numbered = _NUMBERED.match(point["text"] if point else line)
    found = numbered or point
    return _standing_alone(found["text"]) if found else ""


def _standing_alone(text: str) -> str:
    """Return *text* without marks; empty for a fragment or an instruction."""
    text = _MARKS.sub("", text).strip()
    is_long = len(text.split()) >= _FEWEST_WORDS and len(text) <= _MOST_CHARACTERS
    return text if is_long and is_whole(text) and not gives_instructions(text) else ""


def history_of(repository: GitFolder) -> Iterator[tuple[str, LessonFacts]]:
    """Yield the lessons in what is checked out of *repository*: its records, reasons of commits.

    Decision records hold as long as they are there. What a commit or an entry of the changelog says
    may have changed since, and is proposed.
    """
    head = repository.head()
    commits = [*_commits(repository, head)] if head else []
    written_at = {name: one.at for one in reversed(commits) for name in one.files}
    there = {*repository.output("ls-tree", "-r", "-z", "--name-only", head).split("\0")}
    yield from _records(repository, head, written_at, there)
    yield from checklists(commits, there)
    undone = {name for one in commits for name in _REVERTS.findall(one.message)}
    count = 0
    for one in commits:
        is_undone = bool(_REVERTS.search(one.message)) or any(map(one.id.startswith, undone))
        files = tuple(name for name in one.files if name in there)
        if is_undone or one.author.endswith(_BOT) or not files or len(one.files) > _MOST_FILES:
            continue
        if (text := _reason_in(one.message)) and count < _MOST_REASONS:
            count += 1
            # Nobody said it in a run: the evidence is the commit.
            said = Quotation(text, "", one.id[:12], -1, one.at, "commit")
            about = About(paths=files)
            yield text, LessonFacts(LessonKind.DECISION, Origin.WRITTEN, about, (said,))


def gone_names(
    repository: GitFolder, named: Iterable[tuple[Iterable[str], datetime]]
) -> dict[str, datetime]:
    """Return names that no file of *repository* has, with the time of the last commit about each.

    *named* are names with the time since when a commit has to have removed them: those that never
    were there are not gone. Empty where git gives no answer.
    """
    since = dict[str, datetime]()
    for names, at in named:
        since |= {name: min(at, since.get(name, at)) for name in names if "\n" not in name}
    head = repository.head() if since else ""
    asked = ("grep", "-I", "-F", "-w", "-h", "-o", "-f", "given", head)
    found = {*repository.output(*asked, given="\n".join(since)).splitlines()} if head else set()
    # Without any match git fails: it has to find something else.
    if not head or not (found or repository.output("grep", "-I", "-l", "-e", ".", head)):
        return {}
    missing = [name for name in since if name not in found][:_MOST_GONE]
    if not missing:
        return {}
    begin = min(since[name] for name in missing).isoformat()
    changed = "|".join(_SPECIAL.sub(r"\\\g<0>", name) for name in missing)
    # One pass for all names: one for each takes 20 times as long.
    log = ("log", "-p", "-U0", "--no-renames", "--format=%x01%cI", f"--since={begin}")
    plain = ("--no-textconv", "--no-ext-diff")
    printed = repository.output(*log, f"-G({changed})", *plain, head)
    words = {name: regex(rf"^-.*(?<!\w){re.escape(name)}(?!\w)", re.MULTILINE) for name in missing}
    gone = dict[str, datetime]()
    for entry in printed.split("\x01")[1:]:  # the newest first
        time, _, changes = entry.partition("\n")
        for name, word in words.items():
            if name not in gone and name in changes and word.search(changes):
                gone[name] = datetime.fromisoformat(time)
    return gone


def gone_paths(
    repository: GitFolder, named: Iterable[tuple[Iterable[str], datetime]]
) -> dict[str, datetime]:
    """Return paths at which *repository* has no file, with the time of the last deletion.

    *named* are paths, each with the time from which deletions count.
    """
    since = [(set(paths), at) for paths, at in named]
    paths = set[str]().union(*(some for some, _ in since))
    head = repository.head() if paths else ""
    there = repository.output("ls-tree", "-r", "-z", "--name-only", head) if head else ""
    missing = paths - files_at(paths, there.split("\0")).keys()
    if not (there and missing):
        return {}
    begin = min(at for some, at in since if not some.isdisjoint(missing))
    log = ("log", "--no-renames", "--diff-filter=D", "--name-only", "--format=%x01%cI")
    printed = repository.output(*log, f"--since={begin.isoformat()}", head)
    deleted = dict[str, datetime]()
    for entry in printed.split("\x01")[1:]:
        at, *names = entry.split("\n")
        deleted = dict.fromkeys(filter(None, names), datetime.fromisoformat(at)) | deleted
    found = files_at(missing, deleted)
    return {path: max(map(deleted.__getitem__, files)) for path, files in found.items()}


def _commits(repository: GitFolder, head: str) -> Iterator[Commit]:
    printed = repository.output(*_LOG, _FORMAT, head)
    for entry in printed.split("\x01")[1:]:
        id_, author, at, message, files = entry.split("\x02", 4)
        changes = [line.partition("\t")[::2] for line in files.split("\n") if "\t" in line]
        names = tuple(name for _, name in changes)
        added = tuple(name for status, name in changes if status == "A")
        yield Commit(id_, author, datetime.fromisoformat(at), message.strip(), names, added)


def _reason_in(message: str) -> str:
    """Return the subject of a commit and the first sentence of its body; empty without prose."""
    subject, _, body = message.partition("\n")
    for paragraph in _BREAK.split(body.strip()):
        if not paragraph or _NO_PROSE.match(paragraph):
            continue
        reason = next(sentences_in(" ".join(paragraph.split())), "")
        text = f"{subject.rstrip('. ')}: {reason}"
        is_long = len(reason.split()) >= _FEWEST_OF_REASON and len(text) <= _MOST_CHARACTERS
        return text if is_long and is_whole(text) and not gives_instructions(text) else ""
    return ""


def _records(
    repository: GitFolder,
    head: str,
    written_at: Mapping[str, datetime],
    there: AbstractSet[str],
) -> Iterator[tuple[str, LessonFacts]]:
    """Yield what the decision records and the changelog say that a commit of the log changed."""
    names = sorted(there & written_at.keys())
    wanted = [name for name in names if _DECISIONS.search(name) or _CHANGES.search(name)]
    for path in wanted[-_MOST_RECORDS:]:
        text = repository.output("cat-file", "blob", f"{head}:{path}")
        is_record = bool(_DECISIONS.search(path))
        kind = LessonKind.DECISION if is_record else LessonKind.FACT
        lines = [found for line in _unwrapped(text.splitlines()) if (found := _lesson_in(line))]
        if is_record and (decided := _decided_in(text)) is not None:
            lines = [decided] if decided else []
        for line in lines[: None if is_record else _MOST_CHANGES]:
            said = Quotation(line, "", path, -1, written_at[path], path)
            about = About(paths=paths_in(line))
            yield line, LessonFacts(kind, Origin.WRITTEN, about, (said,), is_active=is_record)


def _decided_in(text: str) -> str | None:
    """Return the decision of a record in its usual form, empty where it was dropped; or None.

    That has a title, and parts "Status" and "Decision" in any order.
    """
    headings = [*_HEADING.finditer(text)]
    if not headings:
        return None
    ends = [match.start() for match in headings[1:]] + [len(text)]
    parts = {
        match["title"].casefold(): text[match.end() : end].strip()
        for match, end in zip(headings, ends, strict=True)
    }
    decision = next((parts[name] for name in parts if name.startswith("decision")), "")
    if not decision:
        return None
    if _DROPPED.search(parts.get("status", "")):
        return ""
    title = _NUMBER.sub("", headings[0]["title"])
    said = " ".join(_MARKS.sub("", _BREAK.split(decision)[0]).split())
    decided = f"{title}: {next(sentences_in(said), '')}"
    is_lesson = len(decided) <= _MOST_CHARACTERS and is_whole(decided)
    return decided if is_lesson and not gives_instructions(decided) else title
