"""Copies of sessions count once, in whatever order their files are learned."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import given, settings, strategies as st

from contextgraph import AgentMemory
from contextgraph.model import LessonStatus
from tests.profiles import examples

MONDAY = datetime(2026, 10, 5, 9, tzinfo=UTC)
ERROR = "Error: Cannot find module 'wickparser'"
RULES = (
    "From now on always use pnpm, never npm, in this repository",
    "Never commit directly to the release branch of this project",
    "We only support Node 22, so never use older syntax here",
    "Always add an entry to the changelog for every visible change",
    "Never mock the database in the integration tests of lantern",
    "We should always name every migration after the table that it changes",
)


class Turn(NamedTuple):
    """The words of a person, and the commands of the answer with their outputs."""

    said: str
    commands: tuple[tuple[str, str, int], ...]


class Copy(NamedTuple):
    """A session that begins with the first turns of another one."""

    of: int
    turns: int
    own: tuple[Turn, ...]
    agent: str
    days: int


class Talk(NamedTuple):
    """A conversation, and sessions that repeat its beginning or that of each other."""

    first: tuple[Turn, ...]
    copies: tuple[Copy, ...]


@st.composite
def talks(draw: st.DrawFn) -> Sequence[Talk]:
    numbers = count()
    rules = iter(draw(st.permutations(RULES)) * 9)

    def turn(*, says_rule: bool) -> Turn:
        number = next(numbers)
        said = next(rules) if says_rule else f"please look at part {number} of the parser"
        return Turn(said, ((f"cat src/part{number}.ts", f"part {number} of the parser", 0),))

    def made(number: int) -> Talk:
        fix = ("npx vitest run", ERROR, 1), ("pnpm add wickparser", "done", 0)
        begun = Turn(
            f"task {number}: make the wick tests pass", (*fix, ("npx vitest run", "ok", 0))
        )
        first = (
            begun,
            *(turn(says_rule=draw(st.booleans())) for _ in range(draw(st.integers(1, 3)))),
        )
        lengths, copies = [len(first)], list[Copy]()
        for _ in range(draw(st.integers(0, 3))):
            people = [1 + place for place, one in enumerate(copies) if one.agent != "subagent"]
            spoken_to = [0, *people]
            of = draw(st.sampled_from(spoken_to))
            shared = draw(st.integers(1, lengths[of]))
            own = tuple(turn(says_rule=draw(st.booleans())) for _ in range(draw(st.integers(0, 2))))
            agent = draw(st.sampled_from(["claude", "claude", "codex", "subagent", "twice"]))
            copies.append(Copy(of, shared, own, agent, draw(st.integers(0, 3))))
            lengths.append(shared + len(own))
        return Talk(first, tuple(copies))

    return [made(number) for number in range(draw(st.integers(1, 2)))]


def files_of(talks: Sequence[Talk]) -> Iterator[tuple[str, str]]:
    """The name and the text of the log of each session."""
    for number, talk in enumerate(talks):
        sessions = [talk.first]
        yield f"{number}-0.jsonl", claude(talk.first, f"{number}-0", MONDAY)
        for place, copy in enumerate(talk.copies, 1):
            turns = (*sessions[copy.of][: copy.turns], *copy.own)
            sessions.append(turns)
            time = MONDAY + timedelta(days=copy.days, minutes=place)
            name = f"{number}-{place}"
            yield f"{name}.jsonl", WRITERS[copy.agent](turns, name, time)


def claude(
    turns: Sequence[Turn], session: str, time: datetime, *, times: int = 1, agent: str = ""
) -> str:
    ids, rows, parent = count(), list[dict[str, Any]](), ""

    def add(kind: str, content: object, **more: object) -> None:
        nonlocal parent
        number = next(ids)
        side = {"isSidechain": True, "agentId": agent} if agent else {"isSidechain": False}
        rows.append(
            {
                "type": kind, "uuid": f"{session}-{number}", "parentUuid": parent or None,
                "sessionId": session, "cwd": "/home/dana/lantern", "version": "2.1.270",
                "timestamp": (time + timedelta(seconds=number)).isoformat(),
                "message": {"role": kind, "content": content, **more}, **side,
            }
        )  # fmt: skip
        parent = f"{session}-{number}"

    for again in range(times):
        for turn in turns if again == times - 1 else turns[:-1]:
            add("user", turn.said)
            for command, output, code in turn.commands:
                call = f"toolu_{session}_{len(rows)}"
                use = {
                    "type": "tool_use",
                    "id": call,
                    "name": "Bash",
                    "input": {"command": command},
                }
                add("assistant", [use])
                text = f"Exit code {code}\n{output}" if code else output
                result = {"type": "tool_result", "tool_use_id": call, "content": text}
                add("user", [result | {"is_error": bool(code)}])
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def codex(turns: Sequence[Turn], session: str, time: datetime) -> str:
    numbers = count()

    def row(kind: str, **payload: object) -> dict[str, object]:
        moment = time + timedelta(seconds=next(numbers))
        return {"timestamp": moment.isoformat(), "type": kind, "payload": payload}

    rows = [row("session_meta", id=session, cwd="/home/dana/lantern", cli_version="0.155.1")]
    for turn in turns:
        said = [{"type": "input_text", "text": turn.said}]
        rows.append(row("response_item", type="message", role="user", content=said))
        for command, output, code in turn.commands:
            call, given = f"call_{session}_{len(rows)}", json.dumps({"cmd": command})
            rows.append(
                row(
                    "response_item", type="function_call", name="exec_command", arguments=given,
                    call_id=call,
                )
            )  # fmt: skip
            text = f"Wall time: 1.2 seconds\nProcess exited with code {code}\nOutput:\n{output}"
            rows.append(
                row("response_item", type="function_call_output", call_id=call, output=text)
            )
    return "".join(f"{json.dumps(one)}\n" for one in rows)


WRITERS: Mapping[str, Callable[[Sequence[Turn], str, datetime], str]] = {
    "claude": claude,
    "codex": codex,
    "subagent": lambda turns, session, time: claude(turns, session, time, agent=f"a{session}"),
    "twice": lambda turns, session, time: claude(turns, session, time, times=2),
}


def said_once(talks: Sequence[Talk]) -> dict[str, int]:
    """In how many sessions each rule was said, by the trees of the conversations."""
    owners: dict[str, set[str]] = {}
    for number, talk in enumerate(talks):
        sessions = [talk.first]
        for turn in talk.first:
            owners.setdefault(turn.said, set()).add(f"{number}-0")
        for place, copy in enumerate(talk.copies, 1):
            sessions.append((*sessions[copy.of][: copy.turns], *copy.own))
            for turn in copy.own if copy.agent != "subagent" else ():
                owners.setdefault(turn.said, set()).add(f"{number}-{place}")
    return {rule: len(owners[rule]) for rule in RULES if rule in owners}


def learned(files: Sequence[tuple[str, str]]) -> tuple[dict[str, int], tuple[int, int], list[str]]:
    """Return the counts of a memory that learned *files* in order: rules, tasks, runs."""
    with TemporaryDirectory() as folder, AgentMemory.open(":memory:") as memory:
        for name, text in files:
            path = Path(folder, name)
            path.write_text(text)
            memory.learn(path)
        found = memory.lessons.of(status=[*LessonStatus])
        rules = {one.text: one.sessions for one in found}
        context = memory.query(ERROR, repo="local/lantern", limit=5)
        why = context.error_solutions[0].why
        ids = memory.store.runs.ids()
        raws = [memory.store.runs.raw(id_) for id_ in ids]
        runs = sorted(
            f"{raw.agent} {[step.action.text for step in raw.steps]}" for raw in raws if raw
        )
        return rules, (why.instances, why.support), runs


# Each example learns every file twice.
@settings(max_examples=examples(0.3))
@given(st.data(), talks())
def test_a_copy_is_no_second_voice(data: st.DataObject, talks: Sequence[Talk]) -> None:
    files = [*files_of(talks)]
    order = data.draw(st.permutations(files))
    rules, tasks, runs = learned(files)
    assert rules == said_once(talks)
    assert tasks == (len(talks), len(talks))
    assert learned(order) == (rules, tasks, runs)
