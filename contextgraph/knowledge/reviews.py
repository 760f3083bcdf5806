"""Lessons in reviews of pull requests, as GitHub's API exports them.

Each reviewer is a source of their own. What they ask for is a lesson where it stands alone; it is
active where the code that they commented on changed afterwards, else it waits until another review
says the same.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from contextgraph.errors import ReadError
from contextgraph.knowledge.extraction import statements_in
from contextgraph.knowledge.lessons import NewLesson
from contextgraph.knowledge.sentences import SURE
from contextgraph.model import (
    Action,
    LessonFacts,
    LessonKind,
    Origin,
    Quotation,
    RawTrajectory,
    Step,
)
from contextgraph.readers.repository import GitFolder, remote_name
from contextgraph.system.intake import content, loads
from contextgraph.text import clip, masked_name, regex

_LONGEST, _CONTEXT = 1 << 26, 300
_PULL = regex(r"(?P<repository>https?://[^/]+/(?:repos/)?[^/]+/[^/]+)/pulls?/(?P<number>\d+)")
_NOT_SAID = regex(r"^[ \t]*>.*$|<!--.*?-->|!\[[^\]]*\]\([^)]*\)", re.MULTILINE | re.DOTALL)
_REPLIES = ("in_reply_to_id", "in_reply_to")
# Who comments without being of the project asks; a member says how it is done.
_STRANGERS = frozenset({"NONE", "FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR", "MANNEQUIN"})


class Comment(NamedTuple):
    """A comment that *reviewer* wrote about *line* of *file* in pull request *number* of *repo*.

    *is_followed*: that line changed afterwards. A review as a whole has no file.
    """

    reviewer: str
    text: str
    repo: str
    number: str
    at: datetime
    file: str = ""
    line: str = ""
    is_followed: bool = False


class Reviewed(NamedTuple):
    """Counts of *comments* read and left out, and the lessons by repo and source."""

    comments: int
    skipped: int
    lessons: Mapping[tuple[str, str], Sequence[NewLesson]]


def lessons_of_reviews(path: Path, git: GitFolder | None = None, here: str = "") -> Reviewed:
    """Return the lessons in the file at *path*: comments, or reviews, of pull requests.

    *git* has the code of the repository *here* as it is now. Raises `ReadError` for a file that
    holds neither.
    """
    records = [*_records(path)]
    comments = [one for record in records if (one := _comment(record, git, here))]
    of_source = defaultdict[tuple[str, str], list[NewLesson]](list)
    of_pull = defaultdict[tuple[str, str, str], list[Comment]](list)
    for one in comments:
        of_pull[one.repo, one.number, one.reviewer].append(one)
    for (repo, _, reviewer), said in of_pull.items():
        of_source[repo, reviewer] += _lessons(said)
    return Reviewed(len(comments), len(records) - len(comments), of_source)


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        text = content(path, _LONGEST).decode("utf-8-sig")
        # Of several pages `gh api --paginate` prints one list after the other.
        pages = loads(re.sub(r"\]\s*\[(?=\s*[{\]])", ",", text) if "][" in text else text)
    except (OSError, ValueError) as error:
        raise ReadError(str(path), "", "unreadable reviews", str(error)) from error
    listed = [pages]
    while listed:
        value = listed.pop()
        if isinstance(value, list):
            listed += reversed(value)
        elif isinstance(value, dict) and isinstance(value.get("user"), dict) and "body" in value:
            yield value
        else:
            reason = "no comment or review of a pull request"
            raise ReadError(str(path), "", reason, "export pulls/N/comments or pulls/N/reviews")


def _comment(record: Mapping[str, Any], git: GitFolder | None, here: str) -> Comment | None:
    user, body = record["user"], record.get("body")
    login = str(user.get("login") or "")
    pull = _PULL.match(str(record.get("html_url") or record.get("pull_request_url") or ""))
    is_bot = user.get("type") == "Bot" or login.endswith("[bot]")
    is_reply = any(record.get(name) for name in _REPLIES)
    is_stranger = record.get("author_association") in _STRANGERS
    said = _NOT_SAID.sub("", body).strip() if isinstance(body, str) else ""
    if not (said and login and pull) or is_bot or is_reply or is_stranger:
        return None
    address = pull["repository"].replace("api.github.com/repos/", "github.com/")
    file, hunk = str(record.get("path") or ""), str(record.get("diff_hunk") or "")
    line = hunk.rpartition("\n")[2]
    line = line[1:].strip() if line[:1] in ("+", " ") else ""
    repo = remote_name(address)
    return Comment(
        masked_name(login),
        said,
        repo,
        pull["number"],
        _time(record.get("created_at") or record.get("submitted_at")),
        file,
        line,
        _is_followed(record, file, line, git if repo == here else None),
    )


def _is_followed(record: Mapping[str, Any], file: str, line: str, git: GitFolder | None) -> bool:
    """Return whether the *line* of *file* that was commented on is another one by now."""
    is_outdated = "position" in record and record["position"] is None
    if not file or is_outdated or not (git and line):
        return bool(file) and is_outdated
    now = git.output("cat-file", "blob", f"{git.head()}:{file}")
    return bool(now) and line not in map(str.strip, now.splitlines())


def _time(value: object) -> datetime:
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        return datetime.now(UTC)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _lessons(comments: Sequence[Comment]) -> Iterator[NewLesson]:
    """Yield the lessons in what one reviewer wrote in one pull request."""
    steps = tuple(
        Step(
            at,
            "",
            Action("review", one.file),
            one.line,
            user_message=one.text,
            timestamp=one.at,
        )
        for at, one in enumerate(comments)
    )
    first = comments[0]
    session = f"{first.repo}#{first.number}"
    said = statements_in(RawTrajectory("github", session, first.repo, "", steps))
    for one in said.statements:
        comment = comments[one.step]
        quote = Quotation(
            quote=one.quote,
            run="",
            session=session,
            step=one.step,
            at=comment.at,
            speaker=comment.reviewer,
            context=clip(comment.line or one.context, _CONTEXT),
        )
        is_sure = one.confidence >= SURE and comment.is_followed
        facts = LessonFacts(
            LessonKind.RULE,
            Origin.SAID,
            one.about,
            (quote,),
            is_active=is_sure,
            probability=one.confidence,
        )
        yield NewLesson(one.text, facts, title=session, importance=one.confidence)
