"""The parts of a memory that are elsewhere: `Client` asks a service for its operations.

`asked` names the operation of a method. One that no other program has a use for is declared by
`requested`, in the class of the client that has it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from inspect import signature
from pathlib import Path
from sys import maxsize
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar, cast

import orjson

from contextgraph import errors, model
from contextgraph.advising.gate import Gate
from contextgraph.advising.loops import LoopDetector
from contextgraph.advising.pipeline import MemoryRetriever
from contextgraph.advising.playbook import Playbooks
from contextgraph.knowledge.lessons import Lessons
from contextgraph.knowledge.notes import Notes
from contextgraph.knowledge.pages import Entities, Pages
from contextgraph.learning import MemoryWriter
from contextgraph.learning.distilling import DistilQueue
from contextgraph.learning.statistics import StatisticsEngine
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import new_context_id
from contextgraph.model.codec import decoded, encoded
from contextgraph.model.values import argument, kinds_of, replace, unknown_argument
from contextgraph.readers import to_record
from contextgraph.service.connection import ServiceConnection
from contextgraph.service.operations import VALUE, Operation, TokenScope
from contextgraph.service.operations.arguments import clipped
from contextgraph.store.graph import read_graph
from contextgraph.store.memory_store import ExposureStore, NoteStore, RunStore, Store
from contextgraph.system.remote import RetryPolicy
from contextgraph.text import meant

if TYPE_CHECKING:
    from contextgraph.store.protocols import Graph

P = ParamSpec("P")
R = TypeVar("R")

READ, WRITE, ADMIN = TokenScope.READ, TokenScope.WRITE, TokenScope.ADMIN
_WAIT_SECONDS = 30  # for a run that is learned; it is not lost where this is not enough


METHODS: dict[str, Operation] = {}
"""The operations that are methods of the library: no other program has a use for them."""


def requested(
    method: Callable[Concatenate[Any, P], R], part: str, scope: TokenScope
) -> Callable[Concatenate[Any, P], R]:
    """Declare *method*, of the *part* of a memory, as an operation; return what asks for it.

    *part* is empty for the memory itself.
    """
    name = f"{part}.{method.__name__}".lstrip(".")
    route = f"POST /v1/{name.replace('.', '/')}"
    # What administrators start may take minutes.
    METHODS[name] = Operation(method, scope, route, part=part, takes_long=scope is ADMIN)
    return asked(method, route)


def asked(
    method: Callable[Concatenate[Any, P], R], route: str, *, of_token: str = ""
) -> Callable[Concatenate[Any, P], R]:
    """Return *method* as a client has it: it asks for the operation with the *route*.

    Each parameter that is given is one of the operation, too; `SettingsError` is raised for those
    that are decided by the token.
    """
    verb, path = route.split()
    place = "params" if verb == "GET" else "json"

    @wraps(method)
    def call(caller: OverHttp, /, *args: P.args, **kwargs: P.kwargs) -> R:
        given = content_of(method, caller, *args, **kwargs)
        if not given.keys().isdisjoint(("only_of", *of_token.split())):
            raise errors.SettingsError(_OF_TOKEN)
        answer = caller.send(verb, path, headers=_AS_VALUE, **{place: given})
        kind = method.__annotations__["return"] or type(None)
        return cast(R, decoded(kind, answer["value"]))

    return call


_AS_VALUE = {"Accept": VALUE}
_OF_TOKEN = "a service takes the source from the token; name none"


def content_of(method: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, model.Json]:
    """Return the arguments of a call by name, but for defaults, functions and the object called.

    Texts are cut after 200,000 characters. Raises TypeError and `InvalidArgumentError` as the call
    would.
    """
    taken = signature(method)
    _, kinds = kinds_of(method)
    for unknown in kwargs.keys() - kinds.keys():
        raise unknown_argument(method.__qualname__, unknown, kinds)
    try:
        _, *given = taken.bind(*args, **kwargs).arguments.items()
    except TypeError as error:
        raise TypeError(f"{method.__qualname__}() {error}") from None
    content: dict[str, model.Json] = {}
    for name, value in given:
        one = taken.parameters[name]
        if one.kind is one.VAR_KEYWORD:
            checked = {key: argument(key, kinds[key], each) for key, each in value.items()}
            content |= {key: json_of(each) for key, each in checked.items()}
        elif isinstance(one.annotation, str) and value is not one.default:
            raise errors.NeedsStoreError(f"{method.__qualname__}: {name} {errors.OF_STORE}")
        elif value is not one.default:
            many = one.kind is one.VAR_POSITIONAL
            taken_as = value if many else argument(name, kinds[name], value)
            if not callable(taken_as):  # a report of progress
                content[name] = json_of(taken_as)
    return content


def json_of(value: Any) -> model.Json:
    """Return an argument as JSON, its texts cut after 200,000 characters."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [*map(json_of, value)]
    return clipped(encoded(value))


class OverHttp:
    """A part of a memory of a service: what the library has besides needs the store itself.

    *elsewhere* are names of the library that its class does not have.
    """

    elsewhere: Collection[str] = ()
    _service: ServiceConnection
    _retries: RetryPolicy

    def send(self, method: str, path: str, **content: Any) -> Any:
        """Return the JSON value of an answer; see `ServiceConnection.send`."""
        return self._service.send(method, path, self._retries, **content)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or name == "_service":
            raise AttributeError(name)
        known = [*(one for one in dir(type(self)) if not one.startswith("_")), *self.elsewhere]
        if name not in known and not name.startswith("_"):
            near = meant(name, known)
            hint = f"; did you mean {near!r}?" if near else ""
            raise AttributeError(f"no operation {name!r} of {type(self).__name__}{hint}")
        raise errors.NeedsStoreError(
            f"{self._service.name} is a service, and this {errors.OF_STORE}"
        )


class Part(OverHttp):
    """A part of a memory whose work is done by a service."""

    def __init__(self, service: ServiceConnection, retries: RetryPolicy) -> None:
        self._service, self._retries = service, retries


class OfService(OverHttp, AgentMemory):
    """A memory of a service, but for its parts."""

    elsewhere = ("configuration", "max_cost")

    consolidate = asked(AgentMemory.consolidate, "POST /v1/consolidate")
    decided = requested(AgentMemory.decided, "", READ)
    explain = asked(AgentMemory.explain, "GET /v1/explain")
    forget = asked(AgentMemory.forget, "POST /v1/forget")
    holdings = requested(AgentMemory.holdings, "", ADMIN)
    maintain = asked(AgentMemory.maintain, "POST /v1/maintain")
    quarantine = asked(AgentMemory.quarantine, "POST /v1/quarantine")
    release = asked(AgentMemory.release, "POST /v1/release")
    retire = asked(AgentMemory.retire, "POST /v1/retire")
    search = asked(AgentMemory.search, "POST /v1/search")
    session = requested(AgentMemory.session, "", READ)
    session_facets = requested(AgentMemory.session_facets, "", READ)
    sessions = requested(AgentMemory.sessions, "", READ)
    sources = asked(AgentMemory.sources, "GET /v1/sources")


class RetrieverOfService(Part, MemoryRetriever):
    """Answers of the service."""

    elsewhere = ("channels", "embedder", "weights")

    by_error = requested(MemoryRetriever.by_error, "retriever", READ)
    by_state = requested(MemoryRetriever.by_state, "retriever", READ)
    by_task = requested(MemoryRetriever.by_task, "retriever", READ)
    warnings_before = requested(MemoryRetriever.warnings_before, "retriever", READ)
    # Not POST /v1/query, which is for a prompt: its text counts as shown or is withheld by chance
    # there. A client decides both beside its agent, and may give the error that it recognised.
    _retrieve = requested(MemoryRetriever.retrieve, "retriever", READ)

    def __init__(self, service: ServiceConnection, policy: RetryPolicy) -> None:
        super().__init__(service, policy)
        self.playbooks = _Playbooks(service, policy)
        self.gate = Gate()  # for what a live run decides beside its agent

    def retrieve(self, *args: Any, **kwargs: Any) -> model.MemoryContext:
        """See `MemoryRetriever.retrieve`; empty where the service does not answer."""
        try:
            return self._retrieve(*args, **kwargs)
        except errors.StoreUnavailableError as failure:
            return model.MemoryContext(new_context_id(), degraded=(f"service: {failure}",))


class _Playbooks(Part, Playbooks):
    """Playbooks of the service."""

    history = asked(Playbooks.history, "POST /v1/how")
    of = asked(Playbooks.of, "POST /v1/playbook")
    _content_hashes = requested(Playbooks.content_hashes, "retriever.playbooks", READ)

    def content_hashes(self, *args: Any, **kwargs: Any) -> Mapping[str, Sequence[str]]:
        """See `Playbooks.content_hashes`; empty where the service does not answer."""
        try:
            return self._content_hashes(*args, **kwargs)
        except errors.StoreUnavailableError:
            return {}


class WriterOfService(Part, MemoryWriter):
    """Learns by the service.

    No operation: the request is a stream of runs, and the answer a job that goes on after it.
    """

    set_outcome = asked(MemoryWriter.set_outcome, "POST /v1/outcomes")

    def write(self, raw: model.RawTrajectory, source: str = "") -> model.LearnReceipt:
        return self.write_all([raw], source)[0]

    def write_all(
        self, raws: Sequence[model.RawTrajectory], source: str = ""
    ) -> Sequence[model.LearnReceipt]:
        if source:
            raise errors.SettingsError(_OF_TOKEN)
        lines = b"\n".join(orjson.dumps(clipped(to_record(raw), maxsize)) for raw in raws)
        params = {"wait": _WAIT_SECONDS, "complete": True}
        headers = {"Content-Type": "application/x-ndjson"}
        job = self.send("POST", "/v1/learn", params=params, content=lines, headers=headers)
        if job["state"] != "done":
            job = self.send("GET", f"/v1/learn/{job['job']}", params=params)
        name = self._service.name
        if job["state"] != "done":
            reason = job["error"] or "it is busy"
            raise errors.StoreUnavailableError(f"{name} has the runs and waits: {reason}")
        receipts = [decoded(model.LearnReceipt, receipt) for receipt in job["receipts"]]
        if len(receipts) != len(raws):
            reasons = [run["error"] for run in job["runs"] if run["error"]]
            raise errors.StoreError(f"{name}: {'; '.join(reasons) or 'a run is missing'}")
        return receipts


class StoreOfService(Part, Store):
    """The store of the service; only its runs, notes and exposures can be reached."""

    elsewhere = Store.__annotations__

    def __init__(
        self, service: ServiceConnection, policy: RetryPolicy, interactive: RetryPolicy
    ) -> None:
        super().__init__(service, policy)
        self.runs = _Runs(service, policy)
        self.exposures = _Exposures(service, interactive)
        self.notes = _NoteStore(service, policy)

    def __call__(self) -> "Graph":
        """Load the graph of the memory, a copy."""
        with TemporaryDirectory(prefix="contextgraph-") as folder:
            path = Path(folder) / "graph.json"
            self._service.save("/v1/export", path, self._retries, params={"format": "json"})
            return read_graph(path)


class _Runs(Part, RunStore):
    """The runs of the service."""

    for_task = requested(RunStore.for_task, "store.runs", READ)
    listed = requested(RunStore.listed, "store.runs", READ)
    ids = requested(RunStore.ids, "store.runs", READ)
    learned = requested(RunStore.learned, "store.runs", READ)
    raw = requested(RunStore.raw, "store.runs", READ)
    trajectories = requested(RunStore.trajectories, "store.runs", READ)


class _NoteStore(Part, NoteStore):
    """The notes of the service as it stores them, to be copied."""

    newest = requested(NoteStore.newest, "store.notes", READ)


def add_exposures(self: ExposureStore, exposures: Sequence[model.Exposure], *, source: str) -> None:
    """Record what was shown to the sender; whether it helped is reported by another request."""
    self.add(
        [
            replace(
                one,
                helped=None,
                source="",
                shown_to=source,
                items=tuple(replace(item, helped=None) for item in one.items),
            )
            for one in exposures
        ]
    )


METHODS["store.exposures.add"] = Operation(
    add_exposures, WRITE, "POST /v1/store/exposures/add", source="{}", part="store.exposures"
)


class _Exposures(Part, ExposureStore):
    """Exposures, recorded by the service for tokens that may write."""

    of_session = requested(ExposureStore.of_session, "store.exposures", READ)
    record = requested(ExposureStore.record, "store.exposures", READ)
    sessions_shown = requested(ExposureStore.sessions_shown, "store.exposures", READ)
    forget_session = requested(ExposureStore.forget_session, "store.exposures", WRITE)
    report = asked(ExposureStore.report, "POST /v1/reports", of_token="source")
    _add = asked(ExposureStore.add, "POST /v1/store/exposures/add")

    def add(self, exposures: Sequence[model.Exposure]) -> None:
        with suppress(errors.SettingsError):
            self._add(exposures)


class NotesOfService(Part, Notes):
    """Notes of the service; the token decides the source and credibility of a new one.

    Confidential texts stay in the service. Its keyed files are in a snapshot.
    """

    causes = requested(Notes.causes, "notes", READ)
    of = asked(Notes.of, "GET /v1/notes")
    rank = requested(Notes.rank, "notes", READ)
    recall = asked(Notes.recall, "POST /v1/notes/recall")
    snapshot = asked(Notes.snapshot, "POST /v1/snapshot")
    link = requested(Notes.link, "notes", ADMIN)
    archive = requested(Notes.archive, "notes", ADMIN)
    forget = requested(Notes.forget, "notes", ADMIN)
    pin = requested(Notes.pin, "notes", ADMIN)
    prune = asked(Notes.prune, "POST /v1/notes/prune")
    reset = asked(Notes.reset, "POST /v1/notes/reset")
    restore = requested(Notes.restore, "notes", ADMIN)
    remember = asked(Notes.remember, "POST /v1/notes", of_token="source credibility")


class LessonsOfService(Part, Lessons):
    """Lessons of runs of the service."""

    about = asked(Lessons.about, "POST /v1/lessons/about")
    for_command = requested(Lessons.for_command, "lessons", READ)
    for_request = requested(Lessons.for_request, "lessons", READ)
    naming = requested(Lessons.naming, "lessons", READ)
    of = asked(Lessons.of, "GET /v1/lessons")
    standing = requested(Lessons.standing, "lessons", READ)
    subjects = requested(Lessons.subjects, "lessons", READ)
    accept = requested(Lessons.accept, "lessons", ADMIN)
    edit = requested(Lessons.edit, "lessons", ADMIN)
    reject = requested(Lessons.reject, "lessons", ADMIN)
    supersede = requested(Lessons.supersede, "lessons", ADMIN)
    undo = requested(Lessons.undo, "lessons", ADMIN)
    remove_run = requested(Lessons.remove_run, "lessons", ADMIN)


class DistilQueueOfService(Part, DistilQueue):
    """The requests of the service that wait for the running agent."""

    next_request = asked(DistilQueue.next_request, "POST /v1/distil/next")
    answer = asked(DistilQueue.answer, "POST /v1/distil/answer")


class PagesOfService(Part, Pages):
    """Pages of the service."""

    get_index = asked(Pages.get_index, "POST /v1/pages/get_index")
    get_page = asked(Pages.get_page, "POST /v1/pages/get_page")
    references = requested(Pages.references, "pages", READ)
    search = asked(Pages.search, "POST /v1/pages/search")
    add_page = requested(Pages.add_page, "pages", WRITE)
    update_page = requested(Pages.update_page, "pages", ADMIN)
    remove_page = asked(Pages.remove_page, "POST /v1/pages/remove_page")


class EntitiesOfService(Part, Entities):
    """Entities of the service."""

    find_by_keywords = asked(Entities.find_by_keywords, "POST /v1/entities/find_by_keywords")
    find_tags = asked(Entities.find_tags, "POST /v1/entities/find_tags")
    get_entity = asked(Entities.get_entity, "POST /v1/entities/get_entity")
    get_related = asked(Entities.get_related, "POST /v1/entities/get_related")
    add_entity = requested(Entities.add_entity, "entities", WRITE)
    add_relation = asked(Entities.add_relation, "POST /v1/entities/add_relation")
    set_entity_tags = requested(Entities.set_entity_tags, "entities", ADMIN)
    fill = asked(Entities.fill, "POST /v1/entities/fill")
    remove_entity = asked(Entities.remove_entity, "POST /v1/entities/remove_entity")
    remove_relation = asked(Entities.remove_relation, "POST /v1/entities/remove_relation")


class LoopDetectorOfService(Part, LoopDetector):
    """Finds loops in this process, and asks the service for escape suggestions."""

    alarm_after = requested(LoopDetector.alarm_after, "loop_detector", READ)
    escapes_from = requested(LoopDetector.escapes_from, "loop_detector", READ)


class StatisticsOfService(Part, StatisticsEngine):
    """Statistics of the service."""

    get_common_mistakes = requested(StatisticsEngine.get_common_mistakes, "stats", READ)
    get_error_frequency = requested(StatisticsEngine.get_error_frequency, "stats", READ)
    get_error_transitions = requested(StatisticsEngine.get_error_transitions, "stats", READ)
    get_failing_conditions = requested(StatisticsEngine.get_failing_conditions, "stats", READ)
    get_failure_patterns = requested(StatisticsEngine.get_failure_patterns, "stats", READ)
    get_counts = asked(StatisticsEngine.get_counts, "GET /v1/stats")
    get_friction = asked(StatisticsEngine.get_friction, "GET /v1/friction")
    get_interventions = requested(StatisticsEngine.get_interventions, "stats", READ)
    get_outcomes_over_time = requested(StatisticsEngine.get_outcomes_over_time, "stats", READ)
    get_solve_rates = requested(StatisticsEngine.get_solve_rates, "stats", READ)
    get_advice = asked(StatisticsEngine.get_advice, "GET /v1/advice")
    get_figures = requested(StatisticsEngine.get_figures, "stats", READ)
