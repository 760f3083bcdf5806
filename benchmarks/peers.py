"""``python -m benchmarks.peers``: this memory beside others that run on one machine without a key.

Each stores the same texts and answers the same questions, in processes of its own: the steps of
the example runs, asked with the errors of later runs, and with ``--locomo FILE`` the messages of
one conversation, asked with its questions. Peers are found by ``--basic-memory PROGRAM``,
``--server-memory PROGRAM`` (both over MCP) and ``--mem0 PYTHON``; one that is not named is left
out.
"""

import argparse
import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

_LATER = 20  # tasks of the examples from this number on are asked, not learned
_FIRST = 3
_EVIDENCE = 10
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Question:
    """A *text* about *repo*, with the *words* of a right answer, or the numbers of right texts.

    The words of an error are those that its command had besides when it later ran.
    """

    text: str
    repo: str = ""
    words: frozenset[str] = frozenset()
    evidence: frozenset[int] = frozenset()

    @property
    def asked(self) -> str:
        """The text as a search takes it, with the repository."""
        return f"{self.repo}: {self.text}" if self.repo else self.text


@dataclass(slots=True)
class Measured:
    """Answers to each question, best first, and the seconds of each part."""

    answers: list[list[str]] = field(default_factory=list)
    stored: float = 0.0
    asked: list[float] = field(default_factory=list)
    started: float = 0.0


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    for name in ("--basic-memory", "--server-memory", "--mem0"):
        parser.add_argument(name, metavar="PROGRAM")
    parser.add_argument("--locomo", type=Path, metavar="FILE")
    options = parser.parse_args()
    tasks = {"errors of the examples": _examples()}
    if options.locomo:
        tasks["questions of a conversation"] = _conversation(options.locomo)
    for task, (texts, questions) in tasks.items():
        print(f"{task}: {len(texts)} texts, {len(questions)} questions")
        for name, measure in _peers(options, task).items():
            with TemporaryDirectory(prefix="peers-") as folder:
                print(_row(name, texts, questions, measure(Path(folder), texts, questions)))


_Measure = Callable[[Path, Sequence[str], Sequence[Question]], Measured]


def _peers(options: argparse.Namespace, task: str) -> Mapping[str, _Measure]:
    peers: dict[str, _Measure] = {
        "ContextGraph": _contextgraph_runs if "errors" in task else _contextgraph_notes
    }
    if options.basic_memory:
        peers["basic-memory"] = lambda *given: asyncio.run(_basic(options.basic_memory, *given))
    if options.server_memory:
        peers["server-memory"] = lambda *given: asyncio.run(_server(options.server_memory, *given))
    if options.mem0:
        peers["mem0"] = lambda *given: _mem0(options.mem0, *given)
    return peers


def _row(name: str, texts: Sequence[str], questions: Sequence[Question], done: Measured) -> str:
    right = [
        mean(texts[one] in map(_plain, answer[:_EVIDENCE]) for one in asked.evidence)
        if asked.evidence
        else any(asked.words <= {*text.replace("`", " ").split()} for text in answer[:_FIRST])
        for asked, answer in zip(questions, done.answers, strict=True)
    ]
    first = done.stored + done.started
    return (
        f"  {name:14} right {mean(right):.2f}, silent {mean(not one for one in done.answers):.2f}, "
        f"first answer after {first:.1f} s, start {done.started:.2f} s, "
        f"a question {1000 * median(done.asked):.0f} ms"
    )


def _examples() -> tuple[Sequence[str], Sequence[Question]]:
    """The steps of the earlier example runs, and the errors of the later ones that these clear."""
    from contextgraph.trace import read_steps

    texts: dict[str, None] = {}
    asked: list[tuple[str, set[str], str]] = []
    for raw in _example_runs():
        steps = [*read_steps(raw)]
        for number, one in enumerate(steps):
            if _number(raw.instance_id) < _LATER:
                observed = (one.step.observation or "").strip()[-_LONGEST:]
                then = " ; ".join(
                    later.step.action.text for later in steps[number + 1 : number + 3]
                )
                texts[f"{raw.repo}: {one.step.action.text}\n{observed}\nthen: {then}"] = None
            elif one.error:
                failed = {*one.step.action.text.split()}
                again = (later.step.action.text for later in steps[number:] if not later.error)
                worked = next(
                    (words for text in again if failed < (words := {*text.split()})), failed
                )
                asked.append(
                    (f"{one.error.error_type}: {one.error.message}", worked - failed, raw.repo)
                )
    whole = [{*text.split()} for text in texts]
    questions = [
        Question(text, repo, frozenset(new))
        for text, new, repo in asked
        if new and any(new <= one for one in whole)
    ]
    return [*texts], questions


def _example_runs() -> Sequence[Any]:
    from contextgraph.readers import read

    return [*read("examples/trajectories"), *read("examples/unseen")]


def _number(instance: str) -> int:
    return int(instance.rpartition("-")[2])


def _conversation(file: Path) -> tuple[Sequence[str], Sequence[Question]]:
    from benchmarks.notes import conversations_in

    first = conversations_in(file)[0]
    texts = [*dict.fromkeys(_plain(note.content) for note in first.notes)]
    place = {note.id: texts.index(_plain(note.content)) for note in first.notes}
    return texts, [
        Question(one.text, evidence=frozenset(place[id_] for id_ in one.evidence))
        for one in first.questions
    ]


def _plain(text: str) -> str:
    return " ".join(text.split())


def _timed(
    done: Measured, ask: Callable[[Question], list[str]], questions: Sequence[Question]
) -> None:
    for question in questions:
        began = time.perf_counter()
        done.answers.append(ask(question))
        done.asked.append(time.perf_counter() - began)


def _command(arguments: Sequence[str], folder: Path) -> float:
    """Seconds of the command line of this memory with *arguments*."""
    began = time.perf_counter()
    program = [sys.executable, "-m", "contextgraph", *arguments, "--store", str(folder / "m.db")]
    subprocess.run(program, check=True, capture_output=True)
    return time.perf_counter() - began


def _contextgraph_runs(
    folder: Path, _texts: Sequence[str], questions: Sequence[Question]
) -> Measured:
    from contextgraph import AgentMemory
    from contextgraph.readers import write_jsonl

    earlier = [raw for raw in _example_runs() if _number(raw.instance_id) < _LATER]
    with (folder / "runs.jsonl").open("wb") as file:
        write_jsonl(earlier, file)
    done = Measured(stored=_command(["learn", str(folder / "runs.jsonl")], folder))
    done.started = _command(
        ["query", "--error", questions[0].text, "--repo", questions[0].repo], folder
    )
    with AgentMemory.open(str(folder / "m.db")) as memory:
        _timed(
            done,
            lambda asked: [
                item.description for item in memory.query(asked.text, repo=asked.repo).shown
            ],
            questions,
        )
    return done


def _contextgraph_notes(
    folder: Path, texts: Sequence[str], questions: Sequence[Question]
) -> Measured:
    from contextgraph import AgentMemory

    began = time.perf_counter()
    with AgentMemory.open(str(folder / "m.db")) as memory:
        for text in texts:
            memory.notes.remember(text)
        memory.reembed(embedder="local")
    done = Measured(stored=time.perf_counter() - began)
    done.started = _command(["call", "recall", f"question={questions[0].text}"], folder)
    with AgentMemory.open(str(folder / "m.db")) as memory:
        _timed(
            done,
            lambda asked: [
                item.note.content for item in memory.notes.recall(asked.text, limit=_EVIDENCE)
            ],
            questions,
        )
    return done


async def _over_mcp(
    command: str,
    environment: Mapping[str, str],
    store: Callable[[Any], Awaitable[object]],
    ask: Callable[[Any, str], Awaitable[list[str]]],
    questions: Sequence[Question],
) -> Measured:
    """Store and ask over MCP; the answers come from a second process of the server."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    program, *arguments = shlex.split(command)
    server = StdioServerParameters(
        command=program, args=arguments, env={**os.environ, **environment}
    )
    done = Measured()
    began = time.perf_counter()
    with open(os.devnull, "w") as nowhere:
        async with stdio_client(server, nowhere) as pipes, ClientSession(*pipes) as session:
            await session.initialize()
            await store(session)
        done.stored = time.perf_counter() - began
        began = time.perf_counter()
        async with stdio_client(server, nowhere) as pipes, ClientSession(*pipes) as session:
            await session.initialize()
            await ask(session, questions[0].asked)
            done.started = time.perf_counter() - began
            for question in questions:
                began = time.perf_counter()
                done.answers.append(await ask(session, question.asked))
                done.asked.append(time.perf_counter() - began)
    return done


def _text_of(result: Any) -> str:
    if result.is_error:
        raise RuntimeError(str(result.content))
    return "\n".join(part.text for part in result.content if hasattr(part, "text"))


async def _basic(
    command: str, folder: Path, texts: Sequence[str], questions: Sequence[Question]
) -> Measured:
    async def store(session: Any) -> None:
        for number, text in enumerate(texts):
            note = {
                "title": f"note {number}",
                "content": text,
                "folder": "notes",
                "project": "main",
            }
            _text_of(await session.call_tool("write_note", note))

    async def ask(session: Any, text: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(text.replace('"', "").split()))
        given = {"query": words, "page_size": _EVIDENCE, "search_type": "text", "project": "main"}
        found = json.loads(_text_of(await session.call_tool("search_notes", given)))
        titles = [one["title"] for one in found["results"] if one["type"] == "entity"]
        return [texts[int(title.removeprefix("note "))] for title in titles]

    home = {"HOME": str(folder), "BASIC_MEMORY_HOME": str(folder / "notes")}
    return await _over_mcp(f"{command} mcp", home, store, ask, questions)


async def _server(
    command: str, folder: Path, texts: Sequence[str], questions: Sequence[Question]
) -> Measured:
    async def store(session: Any) -> None:
        entities = [
            {"name": f"note {number}", "entityType": "note", "observations": [text]}
            for number, text in enumerate(texts)
        ]
        _text_of(await session.call_tool("create_entities", {"entities": entities}))

    async def ask(session: Any, text: str) -> list[str]:
        found = json.loads(_text_of(await session.call_tool("search_nodes", {"query": text})))
        return [one["observations"][0] for one in found["entities"]][:_EVIDENCE]

    file = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
    return await _over_mcp(command, file, store, ask, questions)


_MEM0 = """
import json, os, sys, time
began = time.perf_counter()
os.environ["MEM0_TELEMETRY"] = "False"
folder, task = sys.argv[1], json.load(sys.stdin)
from langchain_core.embeddings import Embeddings
class Local(Embeddings):
    def embed_query(self, text):
        return task["vectors"][text]
    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]
from mem0 import Memory
config = {
    "embedder": {"provider": "langchain", "config": {"model": Local()}},
    "llm": {"provider": "openai", "config": {"api_key": "unused"}},
    "vector_store": {"provider": "qdrant", "config": {
        "path": folder + "/qdrant", "embedding_model_dims": 384, "on_disk": True}},
    "history_db_path": folder + "/history.db",
}
memory = Memory.from_config(config)
for text in task["texts"]:
    memory.add(text, user_id="one", infer=False)
def ask(text):
    found = memory.search(text, filters={"user_id": "one"}, top_k=10)
    return [one["memory"] for one in found["results"]]
answers, asked = [], []
for text in task["questions"]:
    at = time.perf_counter()
    answers.append(ask(text))
    asked.append(time.perf_counter() - at)
    if len(answers) == 1:
        first = time.perf_counter() - began
json.dump({"answers": answers, "asked": asked, "first": first}, open(folder + "/done.json", "w"))
"""


def _mem0(
    python: str, folder: Path, texts: Sequence[str], questions: Sequence[Question]
) -> Measured:
    from contextgraph.embedding.local import LocalEmbedder

    asked = [one.asked for one in questions]
    began = time.perf_counter()
    made = LocalEmbedder("local/all-MiniLM-L6-v2-int8@384").embed([*texts, *asked])
    embedding = time.perf_counter() - began
    pairs = zip([*texts, *asked], made.vectors, strict=True)
    vectors = {text: [float(x) for x in vector.numbers()] for text, vector in pairs if vector}

    def run(stored: Sequence[str], asked: Sequence[str]) -> dict[str, Any]:
        given = json.dumps({"texts": stored, "questions": asked, "vectors": vectors})
        environment = {**os.environ, "MEM0_DIR": str(folder)}
        program = [python, "-c", _MEM0, str(folder)]
        subprocess.run(program, input=given, text=True, check=True, env=environment)
        return dict(json.loads((folder / "done.json").read_text()))

    stored = run(texts, asked[:1])["first"] + embedding
    again = run((), asked)
    return Measured(again["answers"], stored, again["asked"], again["first"])


if __name__ == "__main__":
    main()
