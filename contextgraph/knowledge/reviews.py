"""Lessons in reviews of pull requests, as GitHub's API exports them.

Each reviewer is a source of their own. Most comments are about the lines beside them: a sentence is
a lesson where it surely is one without these, or where two pull requests have it. It is active
where the code that they commented on changed afterwards, else it waits until another review says
the same. Of replies in a thread what surely is a lesson counts; what changed afterwards says
nothing of a reply to another one.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from contextgraph.errors import ReadError
from contextgraph.knowledge.distil import Session, Turn, fitting, in_parts
from contextgraph.knowledge.extraction import Said, statements_in
from contextgraph.knowledge.lessons import NewLesson
from contextgraph.knowledge.sentences import is_whole
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
from contextgraph.text import clip, digest, folded, iso_time, masked_name, regex

_LONGEST, _CONTEXT = 1 << 26, 300
_PULL = regex(r"(?P<repository>https?://[^/]+/(?:repos/)?[^/]+/[^/]+)/pulls?/(?P<number>\d+)")
_NOT_SAID = regex(
    r"^[ \t]*>[^\n]*|<!--.*?(?:-->|\Z)|!\[[^\[\]]*\]\([^()]*\)", re.MULTILINE | re.DOTALL
)
# To whom it is said, and that it matters little.
_ADDRESSED = regex(r"\A(?:\s*@[\w-]+[,:]?(?=\s))*\s*(?:nit(?:pick)?\s*:)?\s*", re.IGNORECASE)
_LINK = regex(r"<?https?://\S+")
_REPLIES = ("in_reply_to_id", "in_reply_to")
# Who may not write to the project asks; a member says how it is done.
_MEMBERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


class Comment(NamedTuple):
    """A comment that *reviewer* wrote about *line* of *file* in pull request *number* of *repo*.

    *is_followed*: that line changed afterwards. A review as a whole has no file. *answered* is the
    comment of a member that began the thread of a reply; blank where there is none.
    """

    reviewer: str
    text: str
    repo: str
    number: str
    at: datetime
    file: str = ""
    line: str = ""
    is_followed: bool = False
    answered: str | None = None


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
    records, comments = _comments(path, git, here)
    of_source = defaultdict[tuple[str, str], list[NewLesson]](list)
    of_pull = defaultdict[tuple[str, str, str], list[Comment]](list)
    for one in comments:
        of_pull[one.repo, one.number, one.reviewer].append(one)
    statements = {pull: _statements(said) for pull, said in of_pull.items()}
    pulls = {
        (repo, number, folded(one.text))
        for (repo, number, _), said in statements.items()
        for one, comment in said.items()
        if comment.answered is None
    }
    times = Counter((repo, words) for repo, _, words in pulls)
    for (repo, _, reviewer), said in statements.items():
        kept = (one for one in said if one.is_sure or times[repo, folded(one.text)] > 1)
        of_source[repo, _source(reviewer)] += (_lesson(one, said[one]) for one in kept)
    return Reviewed(len(comments), len(records) - len(comments), of_source)


def _source(reviewer: str) -> str:
    """Return the source that *reviewer* is; the login alone may be the name of another one here."""
    return f"github:{reviewer}"


def sessions_of_reviews(
    paths: Iterable[Path], git: GitFolder | None = None, here: str = ""
) -> Iterator[Session]:
    """Yield what each reviewer wrote, in the files at *paths*, on pull requests of a repository.

    As a language model is asked about it: each comment after the line that it is about. *git* and
    errors are as in `lessons_of_reviews`.
    """
    said = defaultdict[tuple[str, str], list[Comment]](list)
    for path in paths:
        for one in _comments(path, git, here)[1]:
            said[one.repo, one.reviewer].append(one)
    for (repo, reviewer), comments in sorted(said.items()):
        comments.sort(key=lambda one: (one.at, one.number))
        # Comments in another file are asked about, too, however few.
        said_here = "\n".join(f"{_session(one)} {one.text}" for one in comments)
        name = digest(said_here)
        turns = [
            Turn(at, at, one.at, fitting(one.text), fitting(_place(one)), _session(one))
            for at, one in enumerate(comments)
        ]
        yield Session(
            f"reviews:{repo}:{reviewer}:{name}",
            repo,
            repo,
            "",
            comments[-1].at,
            tuple(in_parts(turns)),
            _source(reviewer),
            reviewer,
        )


def _place(comment: Comment) -> str:
    """Return where *comment* stands, and whether that line is another one by now."""
    then = "changed afterwards" if comment.is_followed else "not known to have changed"
    line = f", line `{comment.line}`, {then}" if comment.line else ""
    reply = f", in reply to: {comment.answered}" if comment.answered else ""
    return f"{_session(comment)}, {comment.file or 'the whole change'}{line}{reply}"


def _comments(
    path: Path, git: GitFolder | None, here: str
) -> tuple[Sequence[Mapping[str, Any]], list[Comment]]:
    """Return the records in the file at *path*, and the comments that count."""
    records = [*_records(path)]
    begun = {record["id"]: record for record in records if isinstance(record.get("id"), int)}
    return records, [one for record in records if (one := _comment(record, begun, git, here))]


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


def _comment(
    record: Mapping[str, Any],
    begun: Mapping[int, Mapping[str, Any]],
    git: GitFolder | None,
    here: str,
) -> Comment | None:
    login, said = _login(record), _said(record)
    pull = _PULL.match(str(record.get("html_url") or record.get("pull_request_url") or ""))
    if not (said and login and pull and _is_by_member(record)):
        return None
    address = pull["repository"].replace("api.github.com/repos/", "github.com/")
    file, hunk = str(record.get("path") or ""), str(record.get("diff_hunk") or "")
    line = hunk.rpartition("\n")[2]
    line = line[1:].strip() if line[:1] in ("+", " ") else ""
    repo = remote_name(address)
    replied = next(filter(None, map(record.get, _REPLIES)), None)
    first = begun.get(replied) if isinstance(replied, int) else None
    is_own = not replied or bool(first and _login(first) == login)
    return Comment(
        masked_name(login),
        said,
        repo,
        pull["number"],
        _time(record.get("created_at") or record.get("submitted_at")),
        file,
        line,
        is_own and _is_followed(record, file, line, git if repo == here else None),
        (_said(first) if first and _is_by_member(first) else "") if replied else None,
    )


def _is_by_member(record: Mapping[str, Any]) -> bool:
    """Return whether a person who may write to the project wrote *record*."""
    is_bot = record["user"].get("type") == "Bot" or _login(record).endswith("[bot]")
    return not is_bot and record.get("author_association") in _MEMBERS


def _login(record: Mapping[str, Any]) -> str:
    return str(record["user"].get("login") or "")


def _said(record: Mapping[str, Any]) -> str:
    body = record.get("body")
    said = _NOT_SAID.sub("", body).strip() if isinstance(body, str) else ""
    return _ADDRESSED.sub("", said)


def _is_followed(record: Mapping[str, Any], file: str, line: str, git: GitFolder | None) -> bool:
    """Return whether the *line* of *file* that was commented on is another one by now."""
    is_outdated = "position" in record and record["position"] is None
    if not file or is_outdated or not (git and line):
        return bool(file) and is_outdated
    now = git.output("cat-file", "blob", f"{git.head()}:{file}")
    return bool(now) and line not in map(str.strip, now.splitlines())


def _time(value: object) -> datetime:
    try:
        return iso_time(str(value))
    except ValueError:
        return datetime.now(UTC)


def _statements(comments: Sequence[Comment]) -> dict[Said, Comment]:
    """Return what one reviewer says in *comments* on one pull request; no link alone."""
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
    session = _session(first)
    said = statements_in(RawTrajectory("github", session, first.repo, "", steps)).statements
    return {one: comments[one.step] for one in said if is_whole(_LINK.sub("", one.text))}


def _session(comment: Comment) -> str:
    return f"{comment.repo}#{comment.number}"


def _lesson(said: Said, comment: Comment) -> NewLesson:
    session = _session(comment)
    quote = Quotation(
        quote=said.quote,
        run="",
        session=session,
        step=said.step,
        at=comment.at,
        speaker=comment.reviewer,
        context=clip(comment.answered or comment.line or said.context, _CONTEXT),
    )
    facts = LessonFacts(
        LessonKind.RULE,
        Origin.SAID,
        said.about,
        (quote,),
        is_active=said.is_sure and comment.is_followed,
        probability=said.confidence,
    )
    return NewLesson(said.text, facts, title=session, importance=said.confidence)
