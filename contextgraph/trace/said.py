"""Passages of the words of people and agents in a run, without output of programs."""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby, pairwise
from typing import NamedTuple

from contextgraph.model import Passage, PassageKind, RawTrajectory, Step, is_subagent
from contextgraph.text import regex
from contextgraph.trace.shell import simple_commands

# So much is read at a glance, and is about one thing.
PASSAGE = 600
_BLANK_LINES = regex(r"\n\s*\n")
_APART = (PassageKind.TASK, PassageKind.TURN, PassageKind.COMMIT)
_COMMIT = ("git", "commit")
_MESSAGE_OPTIONS = ("-m", "-am", "--message")
# A message that a shell takes from a here-document.
_HEREDOC = regex(r"\$\(cat <<-?\s*'?(?P<tag>\w+)'?\n(?P<text>.*?)\n\s*(?P=tag)\s*\)", re.DOTALL)


class _Said(NamedTuple):
    """A *text* that was said after *step*."""

    kind: PassageKind
    step: int
    at: datetime
    text: str


def passages_of(raw: RawTrajectory, run: str, repo: str, seen_at: datetime) -> list[Passage]:
    """Return what was said in *raw*, masked, which is known as *run*, in order.

    What an agent wrote between two turns of a person stands together. *seen_at* is the time of
    what has none. Equal passages of a run stand once.
    """
    asked_by_agent = is_subagent(raw.agent)
    passages: dict[str, Passage] = {}
    said = groupby(_said(raw, raw.started_at or seen_at), key=lambda one: one.kind)
    for kind, texts in said:
        by_agent = kind not in (PassageKind.TASK, PassageKind.TURN) or asked_by_agent
        for first, text in _parts(texts):
            number = len(passages)
            passage = Passage(run, number, repo, kind, text, first.at, first.step, by_agent)
            passages.setdefault(text, passage)
    return [*passages.values()]


def _said(raw: RawTrajectory, at: datetime) -> Iterator[_Said]:
    inherited = raw.inherited
    if inherited is None:
        yield _Said(PassageKind.TASK, -1, at, raw.task)
    elif not inherited.with_request:
        yield _Said(PassageKind.TURN, -1, at, raw.task)
    for step in raw.steps:
        at = step.timestamp or at
        kind = PassageKind.THOUGHT if step.action.text.strip() else PassageKind.REPLY
        yield _Said(kind, step.index, at, step.thought)
        for message in _commit_messages(step):
            yield _Said(PassageKind.COMMIT, step.index, at, message)
        if step.user_message:
            at = step.messaged_at or at
            yield _Said(PassageKind.TURN, step.index, at, step.user_message)


def _commit_messages(step: Step) -> Iterator[str]:
    if " ".join(_COMMIT) not in step.action.text:
        return
    for command in simple_commands(step.action.text):
        if command.words[:2] == _COMMIT:
            for option, value in pairwise(command.words):
                if option in _MESSAGE_OPTIONS:
                    heredoc = _HEREDOC.fullmatch(value)
                    yield heredoc["text"] if heredoc else value


def _parts(said: Iterator[_Said]) -> Iterator[tuple[_Said, str]]:
    """Yield each passage, of paragraphs that fit into one, with what it is the beginning of.

    Short texts of an agent go into one passage, each text of a person is one.
    """
    first, part, size = None, list[str](), 0
    for one in said:
        for paragraph in _paragraphs(one.text):
            is_apart = one.kind in _APART and first is not one
            if first and part and (is_apart or size + len(paragraph) > PASSAGE):
                yield first, "\n\n".join(part)
                part, size = [], 0
            first = first if part else one
            part.append(paragraph)
            size += len(paragraph) + 2
    if first and part:
        yield first, "\n\n".join(part)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of *text*, long ones cut at the end of a line, sentence or word."""
    for paragraph in _BLANK_LINES.split(text):
        rest = paragraph.strip()
        while len(rest) > PASSAGE:
            ends = (rest.rfind(mark, PASSAGE // 3, PASSAGE) + 1 for mark in ("\n", ". ", " "))
            end = next(filter(None, ends), PASSAGE)
            yield rest[:end].strip()
            rest = rest[end:].strip()
        if rest:
            yield rest
