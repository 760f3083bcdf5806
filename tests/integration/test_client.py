"""The client of the service, against the service itself and against servers that fail."""

import asyncio
import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import Parameter, iscoroutinefunction, isfunction, signature
from itertools import product
from operator import attrgetter
from pathlib import Path
from threading import Thread
from typing import Any, get_origin

import networkx as nx
import numpy as np
import pytest
from anyio.from_thread import start_blocking_portal

from contextgraph import AgentMemory, Outcome, State
from contextgraph.config import Settings
from contextgraph.errors import (
    AlreadyExistsError,
    ContextGraphError,
    InvalidArgumentError,
    NeedsStoreError,
    NeverLearnedError,
    NotFoundError,
    ReadError,
    SettingsError,
    StoreError,
    StoreUnavailableError,
)
from contextgraph.knowledge import Entity, Page
from contextgraph.model import LearnStatus, NoteScope, RawTrajectory, SessionFilter
from contextgraph.model.codec import decoded, encoded
from contextgraph.model.values import replace
from contextgraph.service.app import create_app
from contextgraph.service.client import AsyncClient, Client
from contextgraph.service.mcp_server import server_of
from contextgraph.service.methods import METHODS, OverHttp
from contextgraph.service.operations import TokenScope, operations
from contextgraph.service.service import Limits
from contextgraph.service.tokens import TokenFile
from contextgraph.system.remote import RetryPolicy
from tests.builders import NO_MODULE, detouring_run, run
from tests.listening import listening
from tests.unit.test_lessons import LATER, SHOP, export_talk, session

AT_ERROR = State(repo="acme/shop", current_error=NO_MODULE)


@dataclass(frozen=True, slots=True)
class Running:
    """A service on a port, its token, the file of its tokens, and its memory, opened beside it."""

    url: str
    token: str
    tokens: TokenFile
    memory: AgentMemory


@contextmanager
def service(folder: Path, port: int = 0) -> Iterator[Running]:
    tokens, settings = TokenFile(folder / "tokens.json"), Settings(store=str(folder / "memory.db"))
    _, token = tokens.create([TokenScope.READ, TokenScope.WRITE], "default", "ci")
    app = create_app(settings, tokens, Limits())
    with AgentMemory.open(settings.store) as memory, listening(app, port) as url:
        yield Running(url, token, tokens, memory)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with service(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A memory of three runs, a note, a page and an entity, for calls that may change it."""
    with service(tmp_path_factory.mktemp("compared")) as compared:
        compared.memory.learn(runs(1))
        compared.memory.remember("The shop runs on CI", repo="acme/shop")
        compared.memory.pages.add_page(Page("a", "Start", repo="acme/shop"))
        compared.memory.entities.add_entity(Entity("a"))
        yield compared


@pytest.fixture
def client(running: Running) -> Iterator[Client]:
    with Client(running.url, running.token) as client:
        yield client


def runs(first: int, count: int = 3) -> list[RawTrajectory]:
    return [
        detouring_run(number, instance_id=f"acme__shop-{number}")
        for number in range(first, first + count)
    ]


def test_answers_are_the_values_that_the_memory_gives(client: Client, running: Running) -> None:
    receipts = [*client.learn_many(runs(1))]
    memory = running.memory

    assert [one.status for one in receipts] == [LearnStatus.CREATED] * 3
    assert client.learn(runs(1)[0]).status is LearnStatus.UNCHANGED
    assert client.query(AT_ERROR).ranked == memory.query(AT_ERROR).ranked != ()
    assert client.playbook("acme/shop") == memory.playbook("acme/shop")
    assert client.how("acme/shop", "python reproduce.py") == memory.how(
        "acme/shop", "python reproduce.py"
    )
    assert replace(client.get_stats(), common_mistakes=None) == replace(
        memory.get_stats(),
        common_mistakes=None,
    )
    assert client.stats.get_common_mistakes() == memory.stats.get_common_mistakes()
    assert client.stats.get_solve_rates() == memory.stats.get_solve_rates()


def test_texts_that_are_no_unicode_are_taken_as_by_the_memory(
    client: Client, running: Running
) -> None:
    """As Python reads the output of a program that is not UTF-8."""
    text = "KeyError: 'caf\udce9'"
    state = State(repo="acme/cafe", current_error=text)
    read = run([("cat a", text, 1)], instance_id="acme__cafe-1", repo="acme/cafe")
    action = replace(read.steps[0].action, arguments={text: text})
    read = replace(read, steps=(replace(read.steps[0], action=action),))
    for memory in (client, running.memory):
        assert memory.learn(read).trajectory_id
        assert memory.query(state).degraded == ()
        assert memory.how("acme/cafe", text).command == text.replace("\udce9", "\ufffd")
        with memory.live(repo="acme/cafe", task=text, instance_id="acme__cafe-2") as live:
            live.observe("cat b", text, exit_code=1)
    with pytest.raises(InvalidArgumentError, match="too long"):
        client.notes.of("a" * 100_000)


def test_no_items_and_times_without_a_zone_are_as_for_the_memory(
    client: Client, running: Running
) -> None:
    [*client.learn_many(runs(1))]
    entity = Entity("Redis", "service", "the cache of the shop")
    client.entities.add_entity(entity)
    for memory in (client, running.memory):
        assert not memory.search("python", limit=0)
        assert not memory.notes.recall("python", limit=0)
        assert not memory.entities.get_related("Redis", 0)
        with pytest.raises(InvalidArgumentError, match="Expected datetime with a timezone"):
            memory.playbook("acme/shop", as_of=datetime(2026, 11, 30))  # noqa: DTZ001
        with pytest.raises(InvalidArgumentError, match="Expected datetime with a timezone"):
            memory.search("python", since=datetime(2026, 11, 30))  # noqa: DTZ001


WANTED: Any = SessionFilter
PAGE: Any = Page
STATE: Any = State


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda memory: memory.sessions(WANTED(outcome="won")),
            "outcome: Expected 'solved', ",
        ),
        (
            lambda memory: memory.sessions(WANTED(order="worst")),
            "order: Expected 'newest', ",
        ),
        (
            lambda memory: memory.sessions(WANTED(since="7d")),
            "since: Invalid RFC3339 encoded datetime, got '7d'",
        ),
        (lambda memory: memory.sessions(limit=-1), "limit: Expected int >= 0, got -1"),
        (lambda memory: memory.sessions(skip=-1), "skip: Expected int >= 0, got -1"),
        (lambda memory: memory.session_facets("acme/shop"), "wanted: Expected SessionFilter"),
        (lambda memory: memory.session_facets(limit=-1), "limit: "),
        (lambda memory: memory.query(NO_MODULE, limit=-1), "limit: "),
        (lambda memory: memory.query(NO_MODULE, limit="5"), "limit: Expected int, got '5'"),
        (lambda memory: memory.query(None), "current_state: Expected str | State, "),
        (lambda memory: memory.sessions(WANTED(agent=5)), "agent: Expected str, got "),
        (lambda memory: memory.search(5), "question: Expected str, got "),
        (lambda memory: memory.search("python", None, file=5), "file: Expected str, got "),
        (lambda memory: memory.explain(5), "identity: Expected str, got "),
        (lambda memory: memory.playbook(None), "repo: Expected str, got "),
        (lambda memory: memory.remember(None), "content: Expected str, got "),
        (lambda memory: memory.remember("CI", pinned=1), "pinned: Expected bool, got 1"),
        (lambda memory: memory.notes.pin([1]), "ids[0]: Expected str, got 1"),
        (lambda memory: memory.notes.prune(max_recalls=True), "max_recalls: Expected int | None, "),
        (lambda memory: memory.lessons.for_command(5), "line: Expected str, got "),
        (lambda memory: memory.pages.add_page("CI"), "page: Expected Page, got 'CI'"),
        (lambda memory: memory.pages.add_page(PAGE("a", 5)), "page.title: Expected str, got 5"),
        (lambda memory: memory.pages.update_page(PAGE("a", "A", tags=[1])), "page.tags[0]: Exp"),
        (
            lambda memory: memory.query(STATE(failed_actions=("a", 1))),
            "current_state.failed_actions[1]: Expected str, got 1",
        ),
        (lambda memory: memory.check_loop([STATE(tools=5)]), "state_history[0].tools: Expected li"),
        (lambda memory: memory.entities.get_entity(5), "name: Expected str, got "),
        (lambda memory: memory.stats.get_friction(limit=None), "limit: Expected int, got None"),
        (lambda memory: memory.retriever.by_error(5), "error_type: Expected str, got "),
        (lambda memory: memory.set_outcome("acme__shop-1", 1), "solved: Expected bool, got 1"),
        (lambda memory: memory.query(NO_MODULE, as_of="7d"), "as_of: "),
        (lambda memory: memory.query(NO_MODULE, exclude_instances="a"), "exclude_instances: "),
        (lambda memory: memory.playbook("acme/shop", as_of="7d"), "as_of: "),
        (lambda memory: memory.search("python", limit=-1), "limit: "),
        (lambda memory: memory.search("python", strategy="magic"), "strategy: Expected 'hybrid', "),
        (lambda memory: memory.notes.recall("python", min_probability=7), "min_probability: "),
        (lambda memory: memory.notes.recall("python", tags="ci"), "tags: Expected list, got 'ci'"),
        (lambda memory: memory.notes.prune(max_recalls=-1), "max_recalls: "),
        (
            lambda memory: memory.remember("CI", importance=7),
            "importance: Expected float <= ",
        ),
        (lambda memory: memory.snapshot("python", max_tokens=-1), "max_tokens: "),
        (lambda memory: memory.lessons.of(status=["won"]), "status[0]: Expected 'proposed', "),
        (lambda memory: memory.lessons.of(status="active"), "status: Expected list, got 'active'"),
        (lambda memory: memory.lessons.about("python", limit=-1), "limit: "),
        (lambda memory: memory.pages.search("python", limit=-1), "limit: "),
        (lambda memory: memory.entities.get_related("Redis", -1), "depth: "),
        (lambda memory: memory.entities.add_relation("a", "b", "uses", 7), "weight: "),
        (lambda memory: memory.stats.get_friction(limit=-1), "limit: "),
        (lambda memory: memory.stats.get_advice("7d"), "since: "),
        (lambda memory: memory.report_outcome("ctx_1", helped=True, item=-1), "item: "),
        (lambda memory: memory.forget("trj_1"), "trajectory_ids: Expected Iterable"),
        (lambda memory: memory.retire("mth_1"), "methodology_ids: Expected Iterable"),
    ],
)
def test_a_wrong_argument_is_named_as_by_the_memory(
    running: Running, call: Any, message: str
) -> None:
    _, admin = running.tokens.create([TokenScope.ADMIN], "default", "owner")
    with Client(running.url, admin) as client:
        for memory in (client, running.memory):
            with pytest.raises(InvalidArgumentError, match=f"^{re.escape(message)}"):
                call(memory)


def test_a_refused_argument_is_quoted_without_its_secrets(client: Client, running: Running) -> None:
    token = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0"
    given: Any = f'a\npsk="{"vT4!" + "kQ9zLm2xR"}"\n{"-" * 100}{token} cut here'
    calls: tuple[Any, ...] = (
        lambda memory: memory.search("python", limit=given),
        lambda memory: memory.search("python", strategy=given),
        lambda memory: memory.notes.recall("python", tags={"note": given}),
    )
    for call, memory in (
        *product(calls, (client, running.memory)),
        (lambda memory: memory.learn([given]), running.memory),
    ):
        with pytest.raises(InvalidArgumentError, match=r"got .*<secret:password>") as raised:
            call(memory)
        assert not any(part in str(raised.value) for part in ("kQ9zLm2xR", token[-8:]))


@pytest.mark.parametrize("given", [{"a/b-1": 1}.keys(), {1: "a/b-1"}.values(), {"a/b-1"}])
def test_a_collection_may_be_a_set_or_of_a_mapping(
    client: Client, running: Running, given: Any
) -> None:
    for memory in (client, running.memory):
        assert not memory.query("ZeroDivisionError: x", exclude_instances=given)


def test_a_number_may_be_of_numpy(client: Client, running: Running) -> None:
    limit: Any = np.int64(1)
    for memory in (client, running.memory):
        memory.remember("the shop runs on CI", importance=np.float64(0.5))
        assert len(memory.recall("where does the shop run?", limit=limit)) == 1
        assert len(memory.sessions(limit=limit, skip=limit)) <= 1


def test_errors_of_the_memory_are_those_of_the_client(running: Running) -> None:
    _, admin = running.tokens.create([TokenScope.ADMIN], "default", "owner")
    calls: tuple[Any, ...] = (
        lambda memory: memory.pages.get_page("no such page"),
        lambda memory: memory.pages.add_page(Page("", "", "", "")),
        lambda memory: memory.entities.get_entity("Nobody"),
        lambda memory: memory.remember(""),
        lambda memory: memory.notes.prune(),
        lambda memory: memory.notes.reset(),
    )
    with Client(running.url, admin) as client:
        for call in calls:
            with pytest.raises(ContextGraphError) as here:
                call(running.memory)
            with pytest.raises(here.type, match=f"^{re.escape(str(here.value))}$"):
                call(client)


def test_a_client_names_what_was_meant(client: Client, running: Running) -> None:
    unknown: Any = client
    here: Any = running.memory
    for call, meant in (
        (lambda: unknown.search("python", repository="acme/shop"), "repo"),
        (lambda: unknown.sessions(limt=5), "limit"),
        (lambda: unknown.remember("CI", importnace=1), "importance"),
        (lambda: here.remember("CI", importnace=1), "importance"),
    ):
        with pytest.raises(TypeError, match=f"unexpected keyword argument .* mean '{meant}'"):
            call()
    for part, name, meant in ((client, "serach", "search"), (client.notes, "recal", "recall")):
        with pytest.raises(AttributeError, match=f"no operation '{name}' .* mean '{meant}'"):
            getattr(part, name)
    with pytest.raises(AttributeError, match=r"no operation 'zzz' of Client$"):
        getattr(client, "zzz")  # noqa: B009
    with pytest.raises(NeedsStoreError, match="needs the store itself"):
        client.keyed.check_exists()
    for needs_store in (lambda: client.store.recoveries, lambda: client.store.runs.add([])):
        with pytest.raises(NeedsStoreError, match="needs the store itself"):
            needs_store()


def test_runs_can_be_excluded(client: Client) -> None:
    given = [*client.learn_many(runs(20, 1))]

    assert given
    excluded = ["acme__shop-20", *(f"acme__shop-{number}" for number in range(1, 4))]
    assert not client.query(AT_ERROR, exclude_instances=excluded).ranked
    assert not client.playbook("acme/shop", exclude_instances=excluded)


def test_what_is_shown_is_credited(client: Client, running: Running) -> None:
    [*client.learn_many(runs(1))]
    context = client.query(AT_ERROR)

    assert "set `PYTHONPATH=lib`" in client.render(context)
    assert client.report_outcome(context.id, helped=True)
    assert not client.report_outcome(context.id, helped=True)
    assert running.memory.explain(context.id) is not None


def test_outcomes_are_set_by_instance(client: Client, running: Running) -> None:
    client.learn(run([("ls", "", 0)], instance_id="acme__shop-50"))

    (changed,) = client.set_outcome("acme__shop-50", solved=True)

    known = running.memory.store.runs.trajectories([changed])[changed]
    assert known.outcome is Outcome.SOLVED
    assert not client.set_outcome("acme__shop-unknown", solved=True)


def test_notes_are_kept_by_the_service(client: Client, running: Running) -> None:
    text = "CI of the shop uses Python 3.11"
    receipt = client.notes.remember(text, repo="acme/shop", tags=["ci"], security="public")
    client.notes.remember("the vault is in room 7", repo="acme/shop", security="restricted")

    (found,) = client.notes.recall("which python does CI use", repo="acme/shop", tags=["ci"])
    (stored,) = running.memory.notes.recall("which python does CI use", tags=["ci"])
    snapshot = client.snapshot("CI fails", repo="acme/shop")
    assert found.note == stored.note
    assert found.score == pytest.approx(stored.score, abs=1e-3)
    assert (found.note.id, found.note.source) == (receipt.id, "agent:ci")
    context = client.query(State(repo="acme/shop", task_description="CI uses Python"))
    assert [one.note for one in context.notes] == [found.note]
    assert "What people said:" in client.render(context)
    assert client.notes.rank("CI of the shop", receipt.id, repo="acme/shop") == 1
    assert text in snapshot.text
    stored_notes = client.store.notes.newest(NoteScope(), 10)
    assert "room 7" not in f"{snapshot} {client.notes.of('acme/shop')} {stored_notes}"
    with pytest.raises(SettingsError, match="source"):
        client.notes.remember(text, source="file:tox.ini")
    with pytest.raises(SettingsError, match="scope admin"):
        client.notes.remember(text, pinned=True)
    with pytest.raises(SettingsError, match="scope admin"):
        client.notes.pin([receipt.id])


def test_a_history_of_a_clone_stays_one(client: Client, running: Running) -> None:
    origin = "clone:evil.example/acme/shop"
    receipt = client.learn(replace(detouring_run(60), origin=origin))
    (known,) = running.memory.store.runs.trajectories([receipt.trajectory_id]).values()
    assert (known.contributor, known.repo) == (origin, "evil.example/acme/shop")
    running.memory.forget([receipt.trajectory_id])  # other tests have one source


def test_what_is_known_is_explained_and_withdrawn(running: Running) -> None:
    _, token = running.tokens.create([TokenScope.ADMIN], "default", "admin")
    with Client(running.url, token) as client:
        learned = [*client.learn_many(runs(70))]
        client.consolidate()
        assert client.consolidate().changed == 0
        methodology, *_ = running.memory.store.methodologies.ids("acme/shop")
        assert client.explain(methodology) == running.memory.explain(methodology)
        assert client.explain("mth_unknown") is None
        assert [client.quarantine(methodology), client.release(methodology)] == [True, True]
        assert not client.quarantine("mth_unknown")
        assert client.retire([methodology, "mth_unknown"]) == 1
        many = [f"trj_unknown{number}" for number in range(1_500)]
        assert client.retire(many) == 0
        assert client.forget([*many, learned[0].trajectory_id], notes=many) == 1
        receipt = client.notes.remember("a note to forget")
        assert client.notes.forget([receipt.id, "note_unknown"]) == 1
    assert not running.memory.store.runs.ids(instance="acme__shop-70")


def test_pages_entities_and_graph_are_those_of_the_memory(running: Running, tmp_path: Path) -> None:
    _, token = running.tokens.create([TokenScope.ADMIN], "default", "admin")
    memory = running.memory
    with Client(running.url, token) as client:
        [*client.learn_many(runs(80))]
        client.pages.add_page(Page("tariffs", "Tariffs", mentions=("Shop",)))
        client.entities.add_entity(Entity("Shop", tags=("retail",)))
        client.entities.add_entity(Entity("Cart"))
        client.entities.add_relation("Shop", "Cart", "has")
        restricted = client.notes.remember("the vault is in room 8", security="restricted").id
        client.notes.link(restricted, client.notes.remember("use tox").id, "near")
        # The service may consolidate now, which would change the answers between two calls.
        while not client.consolidate().started:
            time.sleep(0.05)

        assert client.pages.search("tariffs") == memory.pages.search("tariffs") != ()
        assert client.search("tariffs") == memory.search("tariffs") != ()
        assert client.search("tariffs", limit=501) == memory.search("tariffs", limit=501)
        assert client.entities.get_related("Shop", 2, "has") == memory.entities.get_related("Shop")
        assert client.entities.find_tags("ret") == {"retail": 1}
        assert client.stats.get_friction() == memory.stats.get_friction() != ()
        assert nx.utils.graphs_equal(client.graph(), memory.graph())
        assert client.export(tmp_path / "all.jsonl.zst").runs == len(memory.store.runs.ids())
        assert client.notes.pin([restricted]) == 1
        assert "room 8" not in f"{client.snapshot('vault')} {client.explain(restricted)}"
        with pytest.raises(AlreadyExistsError, match="tariffs"):
            client.pages.add_page(Page("tariffs", "Tariffs"))
        with pytest.raises(NotFoundError, match="Basket"):
            client.entities.get_entity("Basket")
    with AgentMemory.open(str(tmp_path / "new.db")) as copy:
        assert copy.import_archive(tmp_path / "all.jsonl.zst", as_owner=True).created
        assert copy.pages.get_index() == memory.pages.get_index()


def of_client() -> Iterator[tuple[str, Any]]:
    """Yield the methods of a client that ask the service, by name."""
    with Client("http://127.0.0.1:9") as client:
        for part in sorted({one.part for one in METHODS.values()} | {"notes", "writer"}):
            kinds = type(attrgetter(part)(client) if part else client).__mro__
            for kind in (one for one in kinds if one.__module__.startswith("contextgraph.service")):
                for name, method in vars(kind).items():
                    if hasattr(method, "__wrapped__") and not name.startswith("_"):
                        yield f"{part}.{name}".lstrip("."), method


ASKED = dict(of_client())

# Of the methods of a memory and its parts, those that a client does not have, and why.
OF_ONE_MACHINE = "keeps what is of one run in a file of the machine that the agent runs on"
OF_THE_STORE = "changes the store as a whole: run where the store is"
OF_READING = "reads runs in this process; `learn` sends them"
OF_EVALUATION = "measures advice, in the process that has the memory"
MISSING = {
    "keyed": "plain files, for ls, grep and jq on the machine that has them; MCP has set_memory",
    "conversation": OF_ONE_MACHINE,
    "items": OF_ONE_MACHINE,
    "back_up": "copies a file; `export` is for other machines",
    "import_archive": OF_THE_STORE,
    "rebuild": OF_THE_STORE,
    "reembed": OF_THE_STORE,
    **dict.fromkeys(("writer.rewrite", "writer.rewrite_all"), OF_THE_STORE),
    **dict.fromkeys(("lessons.move", "lessons.take_over"), OF_THE_STORE),
    "lessons.sharing_words": "a part of `check`, which reads a copy of the repository",
    **dict.fromkeys(("join_repository", "split_repository"), OF_THE_STORE),
    **dict.fromkeys(("writer.prepared", "writer.take"), OF_READING),
    "retriever.retrieve_under": OF_EVALUATION,
    "retriever.only": OF_EVALUATION,
    "retriever.by_semantic": "embeds nodes in the process that has the memory",
    "retriever.playbooks.runs": OF_EVALUATION,
    "retriever.playbooks.commands": "search, on the service, lists them",
    **dict.fromkeys(("consolidator", "embedder", "spaces"), OF_THE_STORE),
    "health": "names the file and the size of the store, which tenants share: `doctor`, beside it",
    "stats.update_from_batch": "counts nothing: learning a run does",
    "writer.correct": "a part of `forget`",
    "lessons.add": "the service adds them when it learns a run",
    "lessons.keep": "the service keeps what it finds itself",
    "notes.count_recalls": "the service counts them when it answers",
    "notes.without_counts": "the service uses it for tokens that may only read",
    **dict.fromkeys(
        ("notes.answers", "notes.known", "notes.vector_of"), "recall and search use it"
    ),
    "embed": OF_THE_STORE,
    **dict.fromkeys(
        ("learn_history", "lessons.add_history"),
        "reads a checkout in the process that has the memory",
    ),
    "file_history": "reads the checkout and sessions in the process that has the memory",
    "last_session": "reads sessions in the process that has the memory",
    **dict.fromkeys(
        ("age_lessons", "lessons.age"), "reads a checkout in the process that has the memory"
    ),
    **dict.fromkeys(
        ("checker", "learn_team"), "reads a checkout on the machine that has it: `check`, `learn`"
    ),
    **dict.fromkeys(
        ("chat_of", "distiller"), "a language model of the machine that has the memory"
    ),
    "notes.judge_waiting": "a part of `maintain`",
    **dict.fromkeys(
        ("writer.supplier", "writer.forgotten_names"), "the service finds it out when it learns"
    ),
    "learn_again": "for the owner, beside the memory: `learn --again`",
}
# Send nothing, use other methods, or have requests of their own.
OWN = {
    *("query", "playbook", "how", "before", "check_loop", "render", "withholds", "report_outcome"),
    *("remember", "recall"),
    *("note_exposures", "learn", "learn_many", "batch", "set_outcome", "get_stats"),
    *("close", "inspect", "is_service", "live", "of", "of_settings", "open", "working"),
    *(
        "entities",
        "export",
        "export_graph",
        "graph",
        "has_keyed",
        "records_shown",
        "warning_before",
        "notes",
        "pages",
        "snapshot",
        "lessons",
        "distil_queue",
    ),
    *("search", "sources", "consolidate", "notes.remember"),
    *("retriever.retrieve", "retriever.playbooks.content_hashes"),  # empty without an answer
    *("loop_detector.detect", "loop_detector.detect_all", "stats.get_stats"),
    *("loop_detector.is_same_predicament", "loop_detector.min_repeat"),
    *("loop_detector.get_escape_suggestions",),
    *("writer.write", "writer.write_all", "writer.write_trajectory"),
}


def test_a_client_warns_before_a_command_that_never_ran(client: Client, running: Running) -> None:
    tests = "python -m pytest tests"
    steps = [
        (tests, "/usr/bin/python: No module named pytest", 1),
        ("python tests/runtests.py lamp", "Ran 4 tests in 0.1s\n\nOK", 0),
    ]
    for number in (1, 2, 3):
        running.memory.learn(run(steps, instance_id=f"acme__lamp-{number}", repo="acme/lamp"))

    warning = running.memory.before("acme/lamp", tests)

    assert warning
    assert client.before("acme/lamp", tests) == warning


def test_a_client_has_every_method_of_a_memory_or_a_reason() -> None:
    parts = {name.rpartition(".")[0] for name in ASKED}
    with AgentMemory.open(":memory:") as memory:
        paths = {
            f"{part}.{name}".lstrip(".")
            for part in parts
            if not part.startswith("store")
            for name in dir(type(attrgetter(part)(memory) if part else memory))
            if not name.startswith("_")
        }

    parts |= {part.split(".")[0] for part in parts}
    assert paths - ASKED.keys() - OWN - parts == MISSING.keys()


@pytest.mark.parametrize("name", ASKED)
def test_the_result_of_every_operation_has_a_type_that_can_be_read(name: str) -> None:
    """One that is imported for the type checker alone raises TypeError."""
    with suppress(ReadError):
        decoded(ASKED[name].__annotations__["return"], "nothing of the kind")


@pytest.mark.parametrize("name", ASKED)
def test_every_method_of_a_client_asks_for_an_operation_with_its_parameters(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each argument is its name here, whatever its type.
    monkeypatch.setattr("contextgraph.service.methods.argument", lambda name, kind, given: given)
    sent: list[tuple[str, Any]] = []

    class Part(OverHttp):
        def send(self, method: str, path: str, **content: Any) -> Any:
            sent.append((f"{method} {path}", content.get("json", content.get("params"))))
            return {"value": None}

    required = [
        one.name if get_origin(one.annotation) is None else [one.name]
        for one in signature(ASKED[name]).parameters.values()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    with suppress(ReadError):
        ASKED[name](Part(), *required[1:])
    (route, given), *_ = sent
    known = {one.route: one for one in (*operations().values(), *METHODS.values())}
    fields = known[route].requested().model_fields
    assert given.keys() <= fields.keys()
    for one in signature(ASKED[name]).parameters.values():
        if one.default and one.name in fields and not callable(one.default):
            assert encoded(fields[one.name].default) == encoded(one.default)


def test_asyncio_awaits_every_operation() -> None:
    async def awaited() -> dict[str, bool]:
        async with AsyncClient("http://127.0.0.1:9") as client:
            names = [*ASKED, "query", "learn", "learn_many", "set_outcome", "export"]
            return {
                name: iscoroutinefunction(getattr(client, name))
                for name in names
                if "." not in name
            }

    assert {name for name, is_awaited in asyncio.run(awaited()).items() if not is_awaited} == set()


def test_what_is_never_learned_here_is_not_sent(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NEVER_LEARN", "acme/shop")
    with Client(client.store_id, "wrong") as other, pytest.raises(NeverLearnedError):
        other.learn(runs(1)[0])


@pytest.mark.parametrize("request_", ["/review 13", "Rewrite ../shop/prices.py", LATER])
def test_a_live_run_of_a_client_says_at_a_prompt_what_that_of_the_memory_says(
    client: Client, running: Running, request_: str
) -> None:
    running.memory.learn(export_talk())
    reviewed = session("Let's round only at the end in src/tax.py.", instance="review")
    running.memory.learn(replace(reviewed, task="/review 12"))
    said = []
    for memory in (client, running.memory):
        run = memory.live(repo=SHOP, task="", session=f"{request_} {memory.is_service}")
        said.append(re.sub(r"ctx_[\w-]+", "", run.prompt(request_) or ""))
    assert said[0] == said[1]
    assert ("640 rows" in said[0]) is (request_ == LATER)


def test_a_live_run_is_advised_and_learned(client: Client, running: Running) -> None:
    [*client.learn_many(runs(1))]

    with client.live(repo="acme/shop", instance_id="acme__shop-60", task="Totals") as live:
        assert live.observe("ls", "README.md", exit_code=0) is None
        advice = live.observe("python reproduce.py", NO_MODULE, exit_code=1)
        live.check_submit()
        for _ in range(4):
            live.observe("python other.py", "KeyError: 'x'", exit_code=1)

    assert advice is not None
    assert "set `PYTHONPATH=lib`" in advice
    assert len(running.memory.store.runs.ids(instance="acme__shop-60")) == 1


def test_a_run_is_learned_by_a_service_that_was_restarted_in_the_middle(tmp_path: Path) -> None:
    """Also where a query has just given up, and what the agent was shown still waits."""
    with service(tmp_path) as first:
        client = Client(first.url, first.token, deadline=0.5)
        client.learn(runs(1))
        live = client.live(repo="acme/shop", instance_id="acme__shop-62", task="Totals")
        advice = live.observe("python reproduce.py", NO_MODULE, exit_code=1)
        client.live(repo="acme/shop", task="A run beside it").start()
    live.observe("python other.py", "KeyError: 'x'", exit_code=1)
    assert client.query(AT_ERROR).degraded

    with service(tmp_path, int(first.url.rpartition(":")[2])) as again, client:
        live.finish(Outcome.SOLVED)
        ids = again.memory.store.runs.ids(instance="acme__shop-62")
        shown = [one.context_id for one in again.memory.store.exposures.all()]

    assert len(ids) == 1
    assert advice is not None
    assert shown[0] in advice


def test_a_service_that_knows_less_does_not_end_a_live_run(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs an earlier version; then the agent is warned once its loop is stuck."""
    send = client.loop_detector.send  # type: ignore[attr-defined]
    unknown = partial(send, "POST", "/v1/loop_detector/not_yet")
    monkeypatch.setattr(client.loop_detector, "alarm_after", lambda agent: unknown(json=[agent]))
    with client.live(repo="acme/shop", instance_id="acme__shop-61", task="Totals") as live:
        said = [live.observe("python x.py", "KeyError: 'x'", exit_code=1) or "" for _ in range(6)]
    assert ["Loop" in text for text in said] == [False] * 5 + [True]


def test_a_live_run_says_that_a_service_does_not_know_what_sessions_were_shown(
    client: Client, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.memory.learn(export_talk())
    exposures: Any = client.store.exposures
    unknown = partial(exposures.send, "POST", "/v1/store/exposures/not_yet")
    monkeypatch.setattr(exposures, "sessions_shown", lambda items: unknown(json=items))
    run = client.live(repo=SHOP, task="", session="a service of an earlier version")
    assert "640 rows" in (run.prompt(LATER) or "")
    assert [type(error) for error in run.session.failures] == [NeedsStoreError]


def test_a_tool_of_an_agent_notes_by_the_token(client: Client) -> None:
    """The server of `contextgraph mcp`, with the address of a service as its memory."""
    with start_blocking_portal() as portal:
        arguments = {"content": "totals are rounded to cents", "repo": "acme/shop"}
        result = portal.call(server_of(lambda: client).call_tool, "remember", arguments)
    assert not result.is_error, result
    (found,) = client.notes.recall("how are totals rounded", repo="acme/shop", limit=1)
    assert (found.note.content, found.note.source) == (arguments["content"], "agent:ci")


def test_asyncio_has_the_same_methods(running: Running) -> None:
    async def use() -> tuple[Any, ...]:
        async with AsyncClient(running.url, running.token) as client:
            receipt, *_ = [await client.learn(run) for run in runs(1)]
            context = await client.query(AT_ERROR)
            async with client.live(repo="acme/shop", instance_id="i-1", task="Totals") as live:
                advice = await live.observe("python reproduce.py", NO_MODULE, exit_code=1)
            note = await client.remember("totals include the tariff", repo="acme/shop")
            assert await client.ask(lambda memory: memory.notes.of("acme/shop"))
            explained = await client.explain(note.id)
            return receipt, client.render(context), advice, explained

    receipt, text, advice, explained = asyncio.run(use())

    assert receipt.trajectory_id
    assert "set `PYTHONPATH=lib`" in text
    assert "set `PYTHONPATH=lib`" in advice
    assert "tariff" in explained.name


def test_an_address_opens_a_client(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_TOKEN", running.token)
    with AgentMemory.open(running.url) as memory:
        assert memory.is_service
        assert memory.query(AT_ERROR).degraded == ()
        with pytest.raises(SettingsError, match="needs the store itself"):
            memory.back_up(Path("copy.db"))
    monkeypatch.delenv("CONTEXTGRAPH_TOKEN")
    with AgentMemory.open(running.url, token=running.token) as memory:
        assert memory.query(AT_ERROR).degraded == ()


def test_a_token_that_does_not_suffice_is_refused(running: Running) -> None:
    place = "argument of Client or AsyncClient, elsewhere CONTEXTGRAPH_TOKEN"
    with Client(running.url, "wrong") as client, pytest.raises(SettingsError, match=place):
        client.query(AT_ERROR)
    _, reading = running.tokens.create([TokenScope.READ], "default", "reader")
    with Client(running.url, reading) as client:
        assert client.query(AT_ERROR).degraded == ()
        with pytest.raises(SettingsError, match="scope write"):
            client.learn(runs(1)[0])


class _Failing(BaseHTTPRequestHandler):
    """A server whose answers are a list of (status, object); the last one is repeated."""

    answers: list[tuple[int, Any]]
    paths: list[str]

    def do_GET(self) -> None:
        self.paths.append(self.path)
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  (its own name)
        """Log nothing."""


@pytest.fixture
def failing() -> Iterator[tuple[type[_Failing], str]]:
    handler = type("_Handler", (_Failing,), {"answers": [], "paths": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield handler, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_query_without_an_answer_in_time_is_empty_and_says_so() -> None:
    with Client("http://127.0.0.1:9", deadline=60) as client:
        context = client.query(AT_ERROR)

    assert not context
    assert context.degraded == ("service: http://127.0.0.1:9: no connection (ConnectError)",)


def test_a_service_that_never_answers_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, deadline=0.4) as client:
            context = client.query(AT_ERROR)

    assert context.degraded == (f"service: {url}: no answer in time",)


def test_a_busy_service_is_asked_again(failing: tuple[type[_Failing], str]) -> None:
    handler, url = failing
    busy = (503, {"detail": "the store is away"})
    handler.answers += [(200, {"version": "0.2.9"}), busy, (200, {"value": True})]
    with Client(url) as client:
        assert client.report_outcome("ctx_1", helped=True)

    assert handler.paths == ["/healthz", "/v1/reports", "/v1/reports"]


def test_a_service_with_another_interface_is_named(failing: tuple[type[_Failing], str]) -> None:
    handler, url = failing
    handler.answers.append((200, {"version": "0.3.1"}))
    with (
        Client(url) as client,
        pytest.raises(StoreError, match=r"version 0\.3\.1 .* client is 0\."),
    ):
        client.query(AT_ERROR)


def test_a_server_that_is_something_else_is_named(failing: tuple[type[_Failing], str]) -> None:
    handler, url = failing
    handler.answers.append((404, {}))
    with Client(url) as client, pytest.raises(StoreError, match="is not a service"):
        client.get_stats()


def test_an_outage_is_the_error_that_lets_runs_be_spooled(
    failing: tuple[type[_Failing], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = RetryPolicy(timeout=5, retries=0)
    monkeypatch.setattr("contextgraph.service.client._WRITING", at_once)
    handler, url = failing
    handler.answers += [(200, {"version": "0.2.0"}), (503, {"detail": "the store is away"})]
    with Client(url) as client, pytest.raises(StoreUnavailableError, match="the store is away"):
        client.learn(runs(1)[0])


@pytest.mark.parametrize("address", ["http://user:secret@host", "http://", "https:///path"])
def test_an_address_without_a_host_or_with_a_user_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="CONTEXTGRAPH_TOKEN") as raised:
        Client(address)
    assert "secret" not in str(raised.value)


GIVEN: Mapping[str, Any] = {
    "repo": "acme/shop",
    "question": "why does python reproduce.py fail?",
    "state": AT_ERROR,
    "states": [AT_ERROR],
    "task_type": "bug_fix",
    "wanted": SessionFilter("acme/shop"),
    "page": Page("tariffs", "Tariffs"),
    "entity": Entity("Redis"),
    "as_of": datetime(2026, 11, 30, tzinfo=UTC),
}
"""Arguments by name; others are a text, a number or a list, by their type."""
WRONG: tuple[Any, ...] = (
    None, 5, -1, True, 7.5, "x", "", [1], ["a"], {"a": 1}, b"x", STATE(tools=(1,)), PAGE(3, None),
    Page, datetime(2026, 1, 1),  # noqa: DTZ001
)  # fmt: skip
# What a token decides, and a policy, which is in the settings of the service.
OF_THE_SERVICE = {"only_of", "source", "credibility", "policy"}
VOLATILE = re.compile(r'"(id|at)": *"[^"]*"|\d\d:\d\d:[\d.]+Z|ctx_[\w-]+|http://[\w.]+:\d+: ')


def given(one: Parameter) -> Any:
    kind = f"{one.annotation}"
    for part, value in (("[str", ["a"]), ("int", 1), ("float", 0.5), ("bool", False)):
        if part in kind:
            return GIVEN.get(one.name, value)
    return GIVEN.get(one.name, "a")


def outcome(memory: AgentMemory, name: str, arguments: Mapping[str, Any]) -> str:
    part, _, method = name.rpartition(".")
    try:
        answer = getattr(attrgetter(part)(memory) if part else memory, method)(**arguments)
    except (ContextGraphError, TypeError, ValueError) as error:
        return VOLATILE.sub("", f"{type(error).__name__}: {error}")
    text = VOLATILE.sub("", json.dumps(encoded(answer)))
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.6g}", text)


# The store is the port below the library; a reset would leave nothing for what follows.
@pytest.mark.parametrize(
    "name", [one for one in ASKED if not one.startswith("store.") and one != "notes.reset"]
)
def test_every_argument_right_or_wrong_is_answered_as_by_the_memory(
    compared: Running, name: str
) -> None:
    _, admin = compared.tokens.create([TokenScope.ADMIN], "default", "owner")
    _, *parameters = signature(ASKED[name]).parameters.values()
    named = [
        one
        for one in parameters
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) and not isfunction(one.default)
    ]
    needed = {one.name: given(one) for one in named if one.default is one.empty}
    with Client(compared.url, admin) as client:
        for one in named:
            if one.name in OF_THE_SERVICE:
                continue
            for value in (given(one), *WRONG):
                arguments = needed | {one.name: value}
                outcome(compared.memory, name, arguments)  # a change is made once, then known
                here = outcome(compared.memory, name, arguments)
                assert outcome(client, name, arguments) == here, arguments
        assert outcome(client, name, needed | {"limmit": 1}) == outcome(
            compared.memory, name, needed | {"limmit": 1}
        )
