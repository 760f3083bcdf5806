"""``python -m benchmarks.sde_bench run --dataset sdebench …``: this memory in sde-bench.

Runs the command line of the agent memory benchmark, in whose environment it has to be started,
with one more memory provider, ``contextgraph``: what it ingests are conversations and commits of a
project, and what it retrieves for a bug report is written into the prompt of an agent. The agent's
work is graded by a hidden test and sent back, at most five times.

`corrections` is that loop with any model, as the board runs it with a scripted one.
"""

import asyncio
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import structs

from contextgraph import Action, AgentMemory, RawTrajectory, Step
from contextgraph.text import regex

_NAME, _PROJECT, _MOST = "contextgraph", "project", 5
# A turn of a conversation begins with its role.
_TURN = regex(r"^(USER|ASSISTANT): ", re.MULTILINE)
_MEMORY = "Relevant memory, surfaced for you by your memory system:"
_FEEDBACK = "[Feedback #{number}] Your change did not fix it. These tests still fail:"

Message = Mapping[str, str]


@dataclass
class Document:
    """A conversation, commit or page of *user_id*, with the fields of the benchmark's own class."""

    id: str
    content: str
    user_id: str | None = None
    messages: list[dict[str, str]] | None = None
    timestamp: str | None = None
    context: str | None = None


class Provider:
    """The methods of the benchmark's ``MemoryProvider``: a memory for each *user_id*, in a file."""

    name = _NAME
    description = "Sessions, lessons and notes of coding agents in one local file, without a model."
    kind = "local"
    provider = variant = logo = None
    link = "https://pypi.org/project/contextgraph-memory/"
    concurrency = 1

    def initialize(self) -> None:
        """Do nothing: no other program is needed."""

    def cleanup(self) -> None:
        """Do nothing: no memory stays open."""

    def prepare(
        self, store_dir: Path, unit_ids: set[str] | None = None, reset: bool = True
    ) -> None:
        """Keep memories in *store_dir*; with *reset* without what is there."""
        self._folder = Path(store_dir) / self.name
        if reset:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)

    def ingest(self, documents: Sequence[Any]) -> None:
        """Learn each of *documents* as a session; a text without turns is what it began with.

        What has no time of its own is later than what was ingested before it.
        """
        now = datetime.now(UTC)
        of_unit = defaultdict[str | None, list[RawTrajectory]](list)
        for at, one in enumerate(documents):
            of_unit[one.user_id].append(_session(one, now + timedelta(milliseconds=at)))
        for unit, runs in of_unit.items():
            with self._memory(unit) as memory:
                memory.learn(runs)

    def retrieve(
        self,
        query: str,
        k: int = 10,
        user_id: str | None = None,
        query_timestamp: str | None = None,
    ) -> tuple[list[Document], dict[str, Any] | None]:
        """Return the *k* conversations and texts that best answer *query*, each whole."""
        with self._memory(user_id) as memory:
            found = memory.search(query, repo=_PROJECT, limit=k)
            runs = {one.run: memory.store.runs.raw(one.run) for one in found if one.run}
        documents = [_document(run, user_id) for run in runs.values() if run]
        return documents, {"found": [one.text for one in found]}

    async def async_ingest(self, documents: Sequence[Any]) -> None:
        """`ingest`, in a thread."""
        await asyncio.to_thread(self.ingest, documents)

    async def async_retrieve(
        self,
        query: str,
        k: int = 10,
        user_id: str | None = None,
        query_timestamp: str | None = None,
    ) -> tuple[list[Document], dict[str, Any] | None]:
        """`retrieve`, in a thread."""
        return await asyncio.to_thread(self.retrieve, query, k, user_id, query_timestamp)

    def _memory(self, unit: str | None) -> AgentMemory:
        name = blake2b((unit or "").encode(), digest_size=8).hexdigest()
        return AgentMemory.open(self._folder / f"{name}.db")


def _session(document: Any, time: datetime) -> RawTrajectory:
    """The session that *document* is, begun at *time* unless it says when."""
    began = datetime.fromisoformat(document.timestamp) if document.timestamp else time
    said = [*_turns(document)]
    steps = list[Step]()
    for role, text in said[1:]:
        if role == "assistant" or not steps:
            steps.append(Step(len(steps), text, Action("", "")))
        else:
            last = steps[-1]
            more = "\n\n".join(filter(None, (last.user_message, text)))
            steps[-1] = structs.replace(last, user_message=more)
    return RawTrajectory(
        "sde-bench",
        document.id,
        _PROJECT,
        said[0][1],
        tuple(steps),
        agent="developer",
        started_at=began,
        session=document.id,
    )


def _turns(document: Any) -> Iterator[tuple[str, str]]:
    """Yield role and text of each turn; of a text without turns the whole."""
    if document.messages:
        for one in document.messages:
            yield one["role"], one.get("content") or one.get("text", "")
        return
    first, *rest = _TURN.split(document.content)
    if first.strip() or not rest:
        yield "user", first.strip()
    for role, text in zip(rest[::2], rest[1::2], strict=True):
        yield role.lower(), text.strip()


def _document(run: RawTrajectory, unit: str | None) -> Document:
    parts = [f"USER: {run.task}"] if run.steps else [run.task]
    for step in run.steps:
        parts.append(f"ASSISTANT: {step.thought}")
        parts += [f"USER: {step.user_message}"] if step.user_message else []
    time = run.started_at.isoformat() if run.started_at else None
    return Document(run.instance_id, "\n".join(parts), unit, timestamp=time)


def corrections(
    request: str,
    memories: Sequence[str],
    ask: Callable[[Sequence[Message]], str],
    grade: Callable[[str], str],
) -> int:
    """Return how often the work on *request* had to be sent back to the model that *ask* is.

    The first prompt has *memories*, as the benchmark writes them. *grade* takes an answer of the
    model and returns what still fails. After as many corrections as the benchmark allows it ends.
    """
    given = "\n\n---\n\n".join(filter(None, memories))
    prompt = f"{request}\n\n{_MEMORY}\n{given}" if given else request
    messages = [{"role": "user", "content": prompt}]
    for number in range(_MOST):
        answer = ask(messages)
        if not (failing := grade(answer)):
            return number
        feedback = f"{_FEEDBACK.format(number=number + 1)}\n\n```\n{failing}\n```"
        messages += [
            {"role": "assistant", "content": answer},
            {"role": "user", "content": feedback},
        ]
    grade(ask(messages))
    return _MOST


def main() -> None:
    """Run the command line of the agent memory benchmark with this provider."""
    from memory_bench import cli, memory

    memory.REGISTRY[_NAME] = Provider
    cli.app(sys.argv[1:])


if __name__ == "__main__":
    main()
