"""``python -m benchmarks board --against grep,bm25,…``: this memory beside others.

Each stores the same texts and answers the same questions: messages of a conversation
(``--locomo FILE``, of LoCoMo), conversations with decisions (``--decisions FOLDER``, of sde-bench),
and errors of the example runs. Questions are split by their hash: to develop with the other half,
``--part all`` shows both. Peers are installed from their registries into ``--environments
FOLDER``; one that cannot be is not run, with the reason. All have the same local model of meaning,
where they use one. Where a peer is better, a line says so.
"""

import argparse
import asyncio
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, NamedTuple

from benchmarks.sde_bench import Document, Message, Provider, corrections
from contextgraph.text import bm25, count_tokens, stems, words

_LATER = 20  # tasks of the examples from this number on are asked, not learned
_FIRST, _EVIDENCE, _LONGEST = 3, 10, 400
_MODEL = "local/all-MiniLM-L6-v2-int8@384"
_OWN = "ContextGraph"


@dataclass(frozen=True, slots=True)
class Question:
    """A *text* about *repo*, with the *words* of a right answer, or the numbers of right texts.

    The words of an error are those that its command had besides when it later ran, *steps* steps
    after it failed. *outdated* are texts that the right one amends. Without words and evidence
    nothing answers it.
    """

    text: str
    repo: str = ""
    words: frozenset[str] = frozenset()
    evidence: frozenset[int] = frozenset()
    outdated: frozenset[int] = frozenset()
    steps: int = 0

    @property
    def asked(self) -> str:
        """The text as a search takes it, with the repository."""
        return f"{self.repo}: {self.text}" if self.repo else self.text

    @property
    def is_answerable(self) -> bool:
        return bool(self.words or self.evidence)

    @property
    def is_held(self) -> bool:
        """True for the half of the questions that is reported."""
        return blake2b(self.text.encode(), digest_size=1).digest()[0] % 2 == 0


@dataclass(frozen=True, slots=True)
class Task:
    """*texts* to store, and *questions* about them; too few of them to split unless *is_split*."""

    name: str
    texts: Sequence[str]
    questions: Sequence[Question]
    is_split: bool = True


@dataclass(slots=True)
class Measured:
    """Answers to each question, best first, and the processor seconds of all."""

    answers: list[list[str]] = field(default_factory=list)
    cpu: float = 0.0


class NotRunError(Exception):
    """Why a peer cannot be run."""


_Measure = Callable[[Path, Task], list[list[str]]]


class Cell(NamedTuple):
    """A figure of one memory; *is_low*: the lower the better."""

    value: float
    is_low: bool = False

    def __str__(self) -> str:
        return f"{self.value:.2f}" if self.value < 10 else f"{self.value:,.0f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table in Markdown."""
    options = _options(arguments)
    names = [_OWN, *filter(None, options.against.split(","))]
    rows, reasons = dict[tuple[str, str], dict[str, Cell]](), dict[str, str]()
    versions = {_OWN: version("contextgraph-memory")}
    for whole in _tasks(options):
        is_whole = options.part == "all" or not whole.is_split
        asked = [one for one in whole.questions if is_whole or one.is_held]
        task = replace(whole, questions=asked)
        for name in names:
            if name in reasons:
                continue
            try:
                measured = _measured(name, task, options.environments, versions)
            except NotRunError as error:
                reasons[name] = str(error)
                continue
            for measure, cell in _cells(task, measured.answers, measured.cpu):
                rows.setdefault((task.name, measure), {})[name] = cell
    _print(names, rows, reasons, versions, arguments)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks board", description=__doc__)
    parser.add_argument("--against", default="grep,bm25", metavar="NAME,…")
    parser.add_argument("--locomo", type=Path, metavar="FILE")
    parser.add_argument("--decisions", type=Path, metavar="FOLDER")
    parser.add_argument("--environments", type=Path, default=Path("build/board"), metavar="FOLDER")
    parser.add_argument("--part", choices=("held", "all"), default="held")
    return parser.parse_args(arguments)


def _tasks(options: argparse.Namespace) -> Iterator[Task]:
    if options.locomo:
        yield _conversation(options.locomo)
    if options.decisions:
        yield _decisions(options.decisions)
    yield _examples()


def _measured(name: str, task: Task, environments: Path, versions: dict[str, str]) -> Measured:
    peers: Mapping[str, Callable[[], _Measure]] = {
        _OWN: lambda: _CONTEXTGRAPH[task.name],
        "grep": lambda: _grep,
        "bm25": lambda: _bm25,
        "basic-memory": lambda: _basic_memory(environments, versions),
        "memsearch": lambda: _memsearch(environments, versions),
        "mem0": lambda: _mem0(environments, versions),
        "deja": lambda: _deja(environments),
    }
    if name not in peers:
        raise NotRunError("unknown")
    measure = peers[name]()
    with TemporaryDirectory(prefix="board-") as folder:
        began = _cpu()
        answers = measure(Path(folder), task)
        return Measured(answers, _cpu() - began)


def _cpu() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _cells(task: Task, answers: Sequence[Sequence[str]], cpu: float) -> Iterator[tuple[str, Cell]]:
    """Yield the measures of *task* by name."""
    pairs = [*zip(task.questions, answers, strict=True)]
    answerable = [(asked, answer) for asked, answer in pairs if asked.is_answerable]
    if task.name == "search":
        shares = [
            mean(task.texts[one] in answer[:_EVIDENCE] for one in asked.evidence)
            for asked, answer in answerable
        ]
        yield f"evidence among the first {_EVIDENCE}, {len(shares)} questions", Cell(mean(shares))
        others = [bool(answer) for asked, answer in pairs if not asked.is_answerable]
        yield (
            f"harm: answered though nothing answers, {len(others)} questions",
            Cell(mean(others), is_low=True),
        )
    else:
        right = [_is_right(task, asked, answer) for asked, answer in answerable]
        yield f"right among the first {_FIRST}, {len(right)} questions", Cell(mean(right))
    if task.name == "decisions":
        amended = [(asked, answer) for asked, answer in answerable if asked.outdated]
        harmed = [_is_outdated(task, asked, answer) for asked, answer in amended]
        yield (
            f"harm: what was amended comes first, {len(harmed)} questions",
            Cell(mean(harmed), is_low=True),
        )
        sent_back = [_sent_back(task, asked, answer) for asked, answer in answerable]
        yield (
            "corrections of a scripted model, at most 5",
            Cell(mean(sent_back), is_low=True),
        )
    if task.name == "errors":
        saved = [_is_right(task, asked, answer) * asked.steps for asked, answer in answerable]
        yield "steps saved an error, at most", Cell(mean(saved))
    shown = [sum(map(count_tokens, answer[:_FIRST])) for _, answer in pairs]
    yield f"tokens of the first {_FIRST}", Cell(mean(shown), is_low=True)
    yield "processor seconds, to store and to ask", Cell(cpu, is_low=True)


def _is_right(task: Task, asked: Question, answer: Sequence[str]) -> bool:
    if asked.evidence:
        return any(task.texts[one] in answer[:_FIRST] for one in asked.evidence)
    return any(asked.words <= {*text.replace("`", " ").split()} for text in answer[:_FIRST])


def _is_outdated(task: Task, asked: Question, answer: Sequence[str]) -> bool:
    both = {task.texts[one]: True for one in asked.outdated}
    both |= {task.texts[one]: False for one in asked.evidence}
    return next((both[text] for text in answer if text in both), False)


def _sent_back(task: Task, asked: Question, answer: Sequence[str]) -> int:
    """Return how often a model is corrected that follows the decisions in its prompt, in order."""
    (right,) = asked.evidence
    decisions = [task.texts[one] for one in (right, *asked.outdated)]

    def follow(messages: Sequence[Message]) -> str:
        prompt = messages[0]["content"]
        there = sorted((text for text in decisions if text in prompt), key=prompt.index)
        return [*there, *[""] * len(messages)][len(messages) // 2]

    def grade(followed: str) -> str:
        return "" if followed == task.texts[right] else "the hidden test fails"

    return corrections(asked.text, answer[:_EVIDENCE], follow, grade)


def _print(
    names: Sequence[str],
    rows: Mapping[tuple[str, str], Mapping[str, Cell]],
    reasons: Mapping[str, str],
    versions: Mapping[str, str],
    arguments: Sequence[str] | None,
) -> None:
    def version_of(name: str) -> str:
        return f"{name} {versions[name]}" if name in versions else name

    given = shlex.join(sys.argv[2:] if arguments is None else arguments)
    print(f"{datetime.now(UTC):%Y-%m-%d}: `python -m benchmarks board {given}`\n")
    print(f"| | | {' | '.join(map(version_of, names))} |")
    print(f"|{'---|' * (len(names) + 2)}")
    defeats = list[str]()
    for (task, measure), cells in rows.items():
        shown = (str(cells[name]) if name in cells else "not run" for name in names)
        print(f"| {task} | {measure} | {' | '.join(shown)} |")
        own = cells[_OWN]
        better = [
            name
            for name, cell in cells.items()
            if (cell.value < own.value if cell.is_low else cell.value > own.value)
        ]
        defeats += [f"- {task}, {measure}: {', '.join(better)}"] if better else []
    print("\nBetter than ContextGraph:\n")
    print("\n".join(defeats) or "none")
    for name, reason in reasons.items():
        print(f"\n{name} was not run: {reason}.")


def _environment(folder: Path, package: str, versions: dict[str, str], least: str = "") -> Path:
    """Return the Python of an environment with the newest *package*; raises `NotRunError`."""
    python = folder / package / "bin" / "python"
    if not python.exists():
        own = _python_of(least) if least else sys.executable
        for command in (
            [own, "-m", "venv", str(folder / package)],
            [str(python), "-m", "pip", "install", "-q", package],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                shutil.rmtree(folder / package, ignore_errors=True)
                reason = (done.stderr.strip() or "cannot be installed").splitlines()[-1]
                raise NotRunError(reason)
    asked = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    versions[package] = done.stdout.strip()
    return python


def _deja(folder: Path) -> _Measure:
    """Install deja with Go; raises `NotRunError` with what Go says, as there is no driver yet."""
    if not (go := shutil.which("go")):
        raise NotRunError("it needs Go")
    environment = {**os.environ, "GOBIN": str((folder / "deja").absolute())}
    command = [go, "install", "github.com/vshulcz/deja-vu/cmd/deja@latest"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines()[-1:] if done.returncode else []
    raise NotRunError(
        f"go install: {said[0].strip().rstrip('.')}" if said else "it has no driver yet"
    )


def _python_of(version_: str) -> str:
    """Return an interpreter of this version; raises `NotRunError` where there is none."""
    # Of pyenv, whose program of this name is there for any version.
    environment = {**os.environ, "PYENV_VERSION": version_}
    command = [f"python{version_}", "-c", "import sys; print(sys.executable)"]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotRunError(f"it needs Python {version_}") from error
    return done.stdout.strip()


def _examples() -> Task:
    """The steps of the earlier example runs, and the errors of the later ones that these clear."""
    from contextgraph.trace import read_steps

    texts: dict[str, None] = {}
    asked: list[tuple[str, set[str], str, int]] = []
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
                again = (later for later in steps[number:] if not later.error)
                cleared = next(
                    (later for later in again if failed < {*later.step.action.text.split()}), one
                )
                new = {*cleared.step.action.text.split()} - failed
                text = f"{one.error.error_type}: {one.error.message}"
                asked.append((text, new, raw.repo, max(0, cleared.index - one.index - 1)))
    whole = [{*text.split()} for text in texts]
    questions = [
        Question(text, repo, frozenset(new), steps=steps_until)
        for text, new, repo, steps_until in asked
        if new and any(new <= one for one in whole)
    ]
    return Task("errors", [*texts], questions)


def _example_runs() -> Sequence[Any]:
    from contextgraph.readers import read

    return [*read("examples/trajectories"), *read("examples/unseen")]


def _number(instance: str) -> int:
    return int(instance.rpartition("-")[2])


def _conversation(file: Path) -> Task:
    from benchmarks.notes import conversations_in

    first = conversations_in(file)[0]
    texts = [*dict.fromkeys(_plain(note.content) for note in first.notes)]
    place = {note.id: texts.index(_plain(note.content)) for note in first.notes}
    asked = [
        Question(one.text, evidence=frozenset(place[id_] for id_ in one.evidence))
        for one in first.questions
    ]
    return Task("search", texts, [*asked, *(Question(one.text) for one in first.unanswerable)])


def _decisions(folder: Path) -> Task:
    """The conversations in *folder* by time, and requests for which one of them decides."""
    from contextgraph.readers import read

    runs = sorted(read(str(folder / "sessions")), key=lambda run: str(run.started_at))
    texts = {run.session or run.instance_id: _text(run) for run in runs}
    place = {session: number for number, session in enumerate(texts)}
    rows = map(json.loads, (folder / "queries.jsonl").read_text("utf-8").splitlines())
    questions = [
        Question(
            row["prompt"],
            evidence=frozenset([place[row["gold"][-1]]]),
            outdated=frozenset(place[one] for one in row["gold"][:-1]),
        )
        for row in rows
    ]
    return Task("decisions", [*texts.values()], questions, is_split=False)


def _text(run: Any) -> str:
    """The conversation *run* as sde-bench gives it to a memory."""
    turns = [f"USER: {run.task}"]
    for step in run.steps:
        turns += [f"ASSISTANT: {step.thought}"] if step.thought else []
        turns += [f"USER: {step.user_message}"] if step.user_message else []
    return "\n".join(turns)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _contextgraph_runs(folder: Path, task: Task) -> list[list[str]]:
    from contextgraph import AgentMemory

    with AgentMemory.open(str(folder / "m.db")) as memory:
        memory.learn([raw for raw in _example_runs() if _number(raw.instance_id) < _LATER])
        return [
            [item.description for item in memory.query(asked.text, repo=asked.repo).shown]
            for asked in task.questions
        ]


def _contextgraph_notes(folder: Path, task: Task) -> list[list[str]]:
    from contextgraph import AgentMemory

    with AgentMemory.open(str(folder / "m.db")) as memory:
        for text in task.texts:
            memory.notes.remember(text)
        memory.reembed(embedder="local")
        return [
            [_plain(item.note.content) for item in memory.notes.recall(asked.text, limit=_EVIDENCE)]
            for asked in task.questions
        ]


def _contextgraph_sessions(folder: Path, task: Task) -> list[list[str]]:
    provider = Provider()
    provider.prepare(folder)
    provider.ingest([Document(f"{at}", text) for at, text in enumerate(task.texts)])
    found = (provider.retrieve(asked.text, k=_EVIDENCE)[0] for asked in task.questions)
    return [[task.texts[int(one.id)] for one in answer] for answer in found]


_CONTEXTGRAPH: Mapping[str, _Measure] = {
    "errors": _contextgraph_runs,
    "search": _contextgraph_notes,
    "decisions": _contextgraph_sessions,
}


def _grep(folder: Path, task: Task) -> list[list[str]]:
    """The lines with most of the words of a question, as grep finds them."""
    lines, asked = folder / "lines", folder / "asked"
    lines.write_text("".join(f"{_plain(text)}\n" for text in task.texts), "utf-8")

    def ask(question: Question) -> list[str]:
        asked.write_text("\n".join(dict.fromkeys(words(question.asked))), "utf-8")
        command = ("grep", "-n", "-i", "-o", "-w", "-F", "-f", str(asked), str(lines))
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        matched = {tuple(line.lower().split(":", 1)) for line in found.splitlines()}
        counts = Counter(int(number) for number, _ in sorted(matched))
        return [task.texts[number - 1] for number, _ in counts.most_common(_EVIDENCE)]

    return [ask(question) for question in task.questions]


def _bm25(_folder: Path, task: Task) -> list[list[str]]:
    counted = [Counter(stems(text)) for text in task.texts]

    def ask(question: Question) -> list[str]:
        scores = bm25({*stems(question.asked)}, counted)
        best = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[:_EVIDENCE]
        return [task.texts[at] for at in best if scores[at] > 0]

    return [ask(question) for question in task.questions]


async def _over_mcp(
    command: Sequence[str],
    environment: Mapping[str, str],
    store: Callable[[Any], Awaitable[object]],
    ask: Callable[[Any, str], Awaitable[list[str]]],
    questions: Sequence[Question],
) -> list[list[str]]:
    """Store and ask over MCP; the answers come from a second process of the server."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    program, *arguments = command
    server = StdioServerParameters(
        command=program, args=arguments, env={**os.environ, **environment}
    )
    with open(os.devnull, "w") as nowhere:
        async with stdio_client(server, nowhere) as pipes, ClientSession(*pipes) as session:
            await session.initialize()
            await store(session)
        async with stdio_client(server, nowhere) as pipes, ClientSession(*pipes) as session:
            await session.initialize()
            return [await ask(session, question.asked) for question in questions]


def _text_of(result: Any) -> str:
    if result.is_error:
        raise RuntimeError(str(result.content))
    return "\n".join(part.text for part in result.content if hasattr(part, "text"))


def _basic_memory(environments: Path, versions: dict[str, str]) -> _Measure:
    python = _environment(environments, "basic-memory", versions, least="3.12")
    program = str(python.with_name("basic-memory").absolute())
    return lambda folder, task: asyncio.run(_basic(program, folder, task.texts, task.questions))


async def _basic(
    program: str, folder: Path, texts: Sequence[str], questions: Sequence[Question]
) -> list[list[str]]:
    async def store(session: Any) -> None:
        for number, text in enumerate(texts):
            note = {
                "title": f"note {number}",
                "content": text,
                "directory": "notes",
                "project": "main",
            }
            _text_of(await session.call_tool("write_note", note))

    async def ask(session: Any, text: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(text.replace('"', "").split()))
        given = {
            "query": words,
            "page_size": _EVIDENCE,
            "search_type": "text",
            "output_format": "json",
            "project": "main",
        }
        found = json.loads(_text_of(await session.call_tool("search_notes", given)))
        titles = [one["title"] for one in found["results"] if one["type"] == "entity"]
        return [texts[int(title.removeprefix("note "))] for title in titles]

    home = {"HOME": str(folder), "BASIC_MEMORY_HOME": str(folder / "notes")}
    return await _over_mcp([program, "mcp"], home, store, ask, questions)


_MEMSEARCH = """
import asyncio, json, pathlib, sys
from memsearch import MemSearch
folder, given = pathlib.Path(sys.argv[1]), json.load(sys.stdin)
notes = folder / "notes"
notes.mkdir()
for number, text in enumerate(given["texts"]):
    (notes / f"{number}.md").write_text(text)
memory = MemSearch(
    [str(notes)], embedding_provider="openai", embedding_base_url=given["url"],
    embedding_api_key="unused", embedding_model="local", milvus_uri=str(folder / "milvus.db"),
)
async def ask(text):
    found = await memory.search(text, top_k=30)
    return [int(pathlib.Path(one["source"]).stem) for one in found]
async def main():
    await memory.index()
    return [await ask(text) for text in given["questions"]]
(folder / "done.json").write_text(json.dumps(asyncio.run(main())))
"""


def _memsearch(environments: Path, versions: dict[str, str]) -> _Measure:
    python = _environment(environments, "memsearch", versions)

    def measure(folder: Path, task: Task) -> list[list[str]]:
        with _embedding_server() as url:
            asked = [question.asked for question in task.questions]
            given = json.dumps({"texts": task.texts, "questions": asked, "url": url})
            done = subprocess.run(
                [python, "-c", _MEMSEARCH, folder],
                input=given, capture_output=True, text=True, check=False,
            )  # fmt: skip
        if done.returncode:
            raise NotRunError((done.stderr.strip() or "it failed").splitlines()[-1])
        found = json.loads((folder / "done.json").read_text())
        return [
            [*dict.fromkeys(task.texts[number] for number in answer)][:_EVIDENCE]
            for answer in found
        ]

    return measure


@contextmanager
def _embedding_server() -> Iterator[str]:
    """Serve the local model as OpenAI's API has it; yields the address."""
    from contextgraph.inference.local import LocalEmbedder

    embedder = LocalEmbedder(_MODEL)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [sent["input"]] if isinstance(sent["input"], str) else sent["input"]
            vectors = embedder.embed(texts).vectors
            data = [
                {"object": "embedding", "index": at, "embedding": _numbers(vector)}
                for at, vector in enumerate(vectors)
            ]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            answer = {"object": "list", "model": "local", "data": data, "usage": usage}
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _numbers(vector: Any) -> list[float]:
    return [float(number) for number in vector.numbers()]


_MEM0 = """
import json, os, sys
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
json.dump([ask(text) for text in task["questions"]], open(folder + "/done.json", "w"))
"""


def _mem0(environments: Path, versions: dict[str, str]) -> _Measure:
    python = _environment(environments, "mem0ai", versions)

    def measure(folder: Path, task: Task) -> list[list[str]]:
        from contextgraph.inference.local import LocalEmbedder

        asked = [one.asked for one in task.questions]
        made = LocalEmbedder(_MODEL).embed([*task.texts, *asked])
        pairs = zip([*task.texts, *asked], made.vectors, strict=True)
        vectors = {text: _numbers(vector) for text, vector in pairs if vector}
        given = json.dumps({"texts": task.texts, "questions": asked, "vectors": vectors})
        environment = {**os.environ, "MEM0_DIR": str(folder)}
        program = [str(python), "-c", _MEM0, str(folder)]
        subprocess.run(program, input=given, text=True, check=True, env=environment)
        return [*json.loads((folder / "done.json").read_text())]

    return measure
