"""The methods of a memory that a service has: `Client` sends what a service answers.

Each is declared once, by `requested`, in the class of the client that has it.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, wraps
from inspect import BoundArguments, Parameter, signature
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    NoReturn,
    ParamSpec,
    TypeVar,
    Unpack,
    cast,
)

import msgspec
import orjson
from msgspec import Struct

from contextgraph import errors, model
from contextgraph.advising.loops import LoopDetector
from contextgraph.advising.pipeline import MemoryRetriever
from contextgraph.advising.playbook import Playbooks
from contextgraph.knowledge.lessons import Lessons
from contextgraph.knowledge.notes import NoteProperties, Notes
from contextgraph.knowledge.pages import Entities, Pages
from contextgraph.learning import MemoryWriter
from contextgraph.learning.statistics import MemoryStats, StatisticsEngine
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import new_context_id
from contextgraph.model.codec import decoded, encoded
from contextgraph.readers import to_record
from contextgraph.service.connection import ServiceConnection
from contextgraph.service.operations import TokenScope
from contextgraph.service.operations.arguments import LONGEST, MOST
from contextgraph.store.graph import read_graph
from contextgraph.store.memory_store import ExposureStore, NoteStore, RunStore
from contextgraph.system.remote import RetryPolicy
from contextgraph.text import clip

if TYPE_CHECKING:
    from contextgraph.store.protocols import Graph

P = ParamSpec("P")
R = TypeVar("R")

READ, WRITE, ADMIN = TokenScope.READ, TokenScope.WRITE, TokenScope.ADMIN
_WAIT_SECONDS = 30  # for a run that is learned; it is not lost where this is not enough


class Method(Struct, frozen=True, dict=True):
    """A method of a memory, or of its *part*, as its class has it; tokens need *scope*."""

    function: Callable[..., Any]
    part: str
    scope: TokenScope

    @property
    def name(self) -> str:
        """The name of the method in a memory."""
        return f"{self.part}.{self.function.__name__}".lstrip(".")

    @property
    def path(self) -> str:
        """The path of its request."""
        return f"/v1/{self.name.replace('.', '/')}"

    @property
    def schema(self) -> dict[str, str]:
        """The reference to its arguments in the OpenAPI document."""
        return {"$ref": _PLACE.format(name=self.name)}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(signature(self.function).parameters)

    @cached_property
    def arguments(self) -> type[Struct]:
        """The class of the arguments, which are read as the library writes them."""
        _, *parameters = signature(self.function).parameters.values()
        fields = [
            _field(one)
            for one in parameters
            # No request has a report of progress, or what only the type checker imports.
            if not (isinstance(one.default, FunctionType) or isinstance(one.annotation, str))
        ]
        return msgspec.defstruct(self.name, fields, kw_only=True, forbid_unknown_fields=True)

    def content(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> dict[str, model.Json]:
        """Return the arguments of a call by name, but for functions and the object called.

        Texts are cut after 200,000 characters. Raises TypeError as the call would.
        """
        _, *given = signature(self.function).bind(*args, **kwargs).arguments.items()
        return {name: json_of(value) for name, value in given if not callable(value)}

    def result(self, record: model.Json) -> Any:
        """Return the value of a call, of the JSON that `encoded` gave for it."""
        return decoded(self.function.__annotations__["return"] or type(None), record)

    def value(self, memory: AgentMemory, given: Mapping[str, Any]) -> Any:
        """Return the value of the method of *memory*; *given* are its arguments by name."""
        target = attrgetter(self.part)(memory) if self.part else memory
        method = getattr(target, self.function.__name__)
        bound = BoundArguments(signature(method), OrderedDict(given))
        return method(*bound.args, **bound.kwargs)


_Count = Annotated[int, msgspec.Meta(le=MOST)]
_BOUNDED: Mapping[Any, Any] = {int: _Count, int | None: _Count | None}


def _field(parameter: Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    name, kind = parameter.name, parameter.annotation
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return name, cast(Any, tuple)[kind, ...], ()
    kind = _BOUNDED.get(kind, kind)
    return (name, kind) if parameter.default is parameter.empty else (name, kind, parameter.default)


def json_of(value: Any) -> model.Json:
    """Return an argument as JSON, its texts cut after 200,000 characters."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [*map(json_of, value)]
    return clipped(encoded(value))


def clipped(record: model.Json) -> model.Json:
    """Return *record* with its texts cut after 200,000 characters, as each client cuts them."""
    if isinstance(record, str):
        return clip(record, LONGEST)
    if isinstance(record, dict):
        return {name: clipped(value) for name, value in record.items()}
    return [*map(clipped, record)] if isinstance(record, list | tuple) else record


METHODS: dict[str, Method] = {}
_PLACE = "#/components/schemas/{name}"


def schemas() -> dict[str, Any]:
    """Return the JSON Schema of the arguments of each method by its name, and of their parts."""
    some = {"type": "array", "items": {"type": "string"}}  # of ids, in any iterable
    arguments = [one.arguments for one in METHODS.values()]
    _, parts = msgspec.json.schema_components(
        arguments, schema_hook=lambda _: some, ref_template=_PLACE
    )
    return parts


def requested(
    function: Callable[Concatenate[Any, P], R], part: str, scope: TokenScope
) -> Callable[Concatenate[Any, P], R]:
    """Declare *function*, a method of the *part* of a memory, as a request; return what sends it.

    *part* is empty for the memory itself.
    """
    method = Method(function, part, scope)
    METHODS[method.name] = method

    @wraps(function)
    def call(caller: OverHttp, /, *args: P.args, **kwargs: P.kwargs) -> R:
        answer = caller.send("POST", method.path, json=method.content((caller, *args), kwargs))
        return cast(R, method.result(answer["value"]))

    return call


class OverHttp:
    """A part of a memory whose other attributes are those of a store that is elsewhere."""

    _service: ServiceConnection
    _retries: RetryPolicy

    def send(self, method: str, path: str, **content: Any) -> Any:
        """Return the JSON value of an answer; see `ServiceConnection.send`."""
        return self._service.send(method, path, self._retries, **content)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or name == "_service":
            raise AttributeError(name)
        raise errors.NeedsStoreError(
            f"{self._service.name} is a service, and this {errors.OF_STORE}"
        )


class Part(OverHttp):
    """A part of a memory whose work is done by a service."""

    def __init__(self, service: ServiceConnection, retries: RetryPolicy) -> None:
        self._service, self._retries = service, retries


class OfService(OverHttp, AgentMemory):
    """A memory of a service, but for its parts."""

    decided = requested(AgentMemory.decided, "", READ)
    explain = requested(AgentMemory.explain, "", READ)
    forget = requested(AgentMemory.forget, "", ADMIN)
    holdings = requested(AgentMemory.holdings, "", ADMIN)
    maintain = requested(AgentMemory.maintain, "", ADMIN)
    quarantine = requested(AgentMemory.quarantine, "", ADMIN)
    release = requested(AgentMemory.release, "", ADMIN)
    retire = requested(AgentMemory.retire, "", ADMIN)
    search = requested(AgentMemory.search, "", READ)
    session = requested(AgentMemory.session, "", READ)
    session_facets = requested(AgentMemory.session_facets, "", READ)
    sessions = requested(AgentMemory.sessions, "", READ)
    sources = requested(AgentMemory.sources, "", READ)


class RetrieverOfService(Part, MemoryRetriever):
    """Answers of the service."""

    by_error = requested(MemoryRetriever.by_error, "retriever", READ)
    by_state = requested(MemoryRetriever.by_state, "retriever", READ)
    by_task = requested(MemoryRetriever.by_task, "retriever", READ)
    warnings_before = requested(MemoryRetriever.warnings_before, "retriever", READ)
    _retrieve = requested(MemoryRetriever.retrieve, "retriever", READ)

    def __init__(self, service: ServiceConnection, policy: RetryPolicy) -> None:
        super().__init__(service, policy)
        self.playbooks = _Playbooks(service, policy)

    def retrieve(self, *args: Any, **kwargs: Any) -> model.MemoryContext:
        """See `MemoryRetriever.retrieve`; empty where the service does not answer."""
        try:
            return self._retrieve(*args, **kwargs)
        except errors.StoreUnavailableError as failure:
            return model.MemoryContext(new_context_id(), degraded=(f"service: {failure}",))


class _Playbooks(Part, Playbooks):
    """Playbooks of the service."""

    facts = requested(Playbooks.facts, "retriever.playbooks", READ)
    history = requested(Playbooks.history, "retriever.playbooks", READ)
    of = requested(Playbooks.of, "retriever.playbooks", READ)
    _content_hashes = requested(Playbooks.content_hashes, "retriever.playbooks", READ)

    def content_hashes(self, *args: Any, **kwargs: Any) -> Mapping[str, Sequence[str]]:
        """See `Playbooks.content_hashes`; empty where the service does not answer."""
        try:
            return self._content_hashes(*args, **kwargs)
        except errors.StoreUnavailableError:
            return {}


class WriterOfService(Part, MemoryWriter):
    """Learns by the service."""

    set_outcome = requested(MemoryWriter.set_outcome, "writer", WRITE)

    def write(self, raw: model.RawTrajectory, source: str = "") -> model.LearnReceipt:
        return self.write_all([raw], source)[0]

    def write_all(
        self, raws: Sequence[model.RawTrajectory], source: str = ""
    ) -> Sequence[model.LearnReceipt]:
        _check_source(source)
        lines = b"\n".join(orjson.dumps(to_record(raw)) for raw in raws)
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


class StoreOfService(Part):
    """The store of the service; only its runs, notes and exposures can be reached."""

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


class _Runs(Part):
    """The runs of the service."""

    for_task = requested(RunStore.for_task, "store.runs", READ)
    listed = requested(RunStore.listed, "store.runs", READ)
    for_text = requested(RunStore.for_text, "store.runs", READ)
    ids = requested(RunStore.ids, "store.runs", READ)
    learned = requested(RunStore.learned, "store.runs", READ)
    raw = requested(RunStore.raw, "store.runs", READ)
    trajectories = requested(RunStore.trajectories, "store.runs", READ)


class _NoteStore(Part):
    """The notes of the service as it stores them, to be copied."""

    newest = requested(NoteStore.newest, "store.notes", READ)


class _Exposures(Part):
    """Exposures, recorded by the service for tokens that may write."""

    of_session = requested(ExposureStore.of_session, "store.exposures", READ)
    record = requested(ExposureStore.record, "store.exposures", READ)
    forget_session = requested(ExposureStore.forget_session, "store.exposures", WRITE)
    _add = requested(ExposureStore.add, "store.exposures", WRITE)

    def add(self, exposures: Sequence[model.Exposure]) -> None:
        with suppress(errors.SettingsError):
            self._add(exposures)

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        _check_source(source)
        body = {"context": context_id, "helped": helped, "item": item}
        return bool(self.send("POST", "/v1/reports", json=body)["recorded"])


class NotesOfService(Part, Notes):
    """Notes of the service; the token decides the source and credibility of a new one.

    Confidential texts stay in the service.
    """

    causes = requested(Notes.causes, "notes", READ)
    of = requested(Notes.of, "notes", READ)
    rank = requested(Notes.rank, "notes", READ)
    recall = requested(Notes.recall, "notes", READ)
    link = requested(Notes.link, "notes", ADMIN)
    archive = requested(Notes.archive, "notes", ADMIN)
    forget = requested(Notes.forget, "notes", ADMIN)
    pin = requested(Notes.pin, "notes", ADMIN)
    prune = requested(Notes.prune, "notes", ADMIN)
    reset = requested(Notes.reset, "notes", ADMIN)
    restore = requested(Notes.restore, "notes", ADMIN)

    def remember(
        self,
        text: str,
        *,
        repo: str | None = "",
        source: str = "user",
        tags: Collection[str] = (),
        credibility: float | None = None,
        **properties: Unpack[NoteProperties],
    ) -> model.NoteReceipt:
        _check_source("" if source == "user" and credibility is None else source)
        given = {"content": text, "repo": repo or "", "tags": tags, **properties}
        body = {name: json_of(value) for name, value in given.items()}
        return decoded(model.NoteReceipt, self.send("POST", "/v1/notes", json=body))

    def snapshot(
        self, trigger: str, focus: str = "", *, repo: str | None = None, max_tokens: int = 500
    ) -> model.Snapshot:
        """See `Notes.snapshot`; with the keyed files of the service."""
        params = {"trigger": trigger, "focus": focus, "max_tokens": max_tokens}
        answer = self.send("GET", "/v1/snapshot", params=params | ({"repo": repo} if repo else {}))
        return decoded(model.Snapshot, answer)


class LessonsOfService(Part, Lessons):
    """Lessons of runs of the service."""

    about = requested(Lessons.about, "lessons", READ)
    for_command = requested(Lessons.for_command, "lessons", READ)
    for_request = requested(Lessons.for_request, "lessons", READ)
    naming = requested(Lessons.naming, "lessons", READ)
    of = requested(Lessons.of, "lessons", READ)
    standing = requested(Lessons.standing, "lessons", READ)
    subjects = requested(Lessons.subjects, "lessons", READ)
    accept = requested(Lessons.accept, "lessons", ADMIN)
    edit = requested(Lessons.edit, "lessons", ADMIN)
    reject = requested(Lessons.reject, "lessons", ADMIN)
    supersede = requested(Lessons.supersede, "lessons", ADMIN)
    undo = requested(Lessons.undo, "lessons", ADMIN)
    remove_run = requested(Lessons.remove_run, "lessons", ADMIN)


class PagesOfService(Part, Pages):
    """Pages of the service."""

    get_index = requested(Pages.get_index, "pages", READ)
    get_page = requested(Pages.get_page, "pages", READ)
    references = requested(Pages.references, "pages", READ)
    search = requested(Pages.search, "pages", READ)
    add_page = requested(Pages.add_page, "pages", WRITE)
    update_page = requested(Pages.update_page, "pages", ADMIN)
    remove_page = requested(Pages.remove_page, "pages", ADMIN)


class EntitiesOfService(Part, Entities):
    """Entities of the service."""

    find_by_keywords = requested(Entities.find_by_keywords, "entities", READ)
    find_tags = requested(Entities.find_tags, "entities", READ)
    get_entity = requested(Entities.get_entity, "entities", READ)
    get_related = requested(Entities.get_related, "entities", READ)
    add_entity = requested(Entities.add_entity, "entities", WRITE)
    add_relation = requested(Entities.add_relation, "entities", WRITE)
    set_entity_tags = requested(Entities.set_entity_tags, "entities", ADMIN)
    fill = requested(Entities.fill, "entities", ADMIN)
    remove_entity = requested(Entities.remove_entity, "entities", ADMIN)
    remove_relation = requested(Entities.remove_relation, "entities", ADMIN)


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
    get_friction = requested(StatisticsEngine.get_friction, "stats", READ)
    get_interventions = requested(StatisticsEngine.get_interventions, "stats", READ)
    get_outcomes_over_time = requested(StatisticsEngine.get_outcomes_over_time, "stats", READ)
    get_solve_rates = requested(StatisticsEngine.get_solve_rates, "stats", READ)
    get_advice = requested(StatisticsEngine.get_advice, "stats", READ)
    get_figures = requested(StatisticsEngine.get_figures, "stats", READ)

    def get_stats(self) -> MemoryStats:
        stats = self.send("GET", "/v1/stats")
        notes = stats["notes"]
        return MemoryStats(
            counts=decoded(model.MemoryCounts, stats["counts"]),
            error_frequency=stats["error_frequency"],
            transitions=stats["transitions"],
            common_mistakes=self.get_common_mistakes,
            failure_patterns=tuple(
                decoded(model.FailurePattern, pattern) for pattern in stats["failure_patterns"]
            ),
            usage={},
            withholding=decoded(model.Effect, stats["withholding"]),
            notes=None if notes is None else {model.NoteKind(name): notes[name] for name in notes},
            gate=decoded(model.FittedGate, stats["gate"]) if stats["gate"] else None,
        )


def _check_source(source: str) -> None:
    if source:
        raise errors.SettingsError("a service takes the source from the token; name none")
