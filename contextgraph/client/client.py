"""`AgentMemory` over HTTP."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from typing import Any, NoReturn, Unpack, cast
from urllib.parse import quote

import orjson

from contextgraph.advising import MOST_SHOWN
from contextgraph.client.service import Service
from contextgraph.codec import decoded, encoded
from contextgraph.consolidation import ConsolidationTrigger
from contextgraph.errors import SettingsError, StoreError, StoreUnavailableError
from contextgraph.knowledge import RECALLED, NoteProperties, Notes
from contextgraph.learning import MemoryWriter
from contextgraph.loops import LoopDetector
from contextgraph.memory import AgentMemory
from contextgraph.model import (
    CommandHistory,
    ConsolidationReport,
    Effect,
    ErrorSignature,
    EscapeSuggestion,
    Explanation,
    Exposure,
    FailurePattern,
    Json,
    LearnReceipt,
    LoopInfo,
    MemoryContext,
    MemoryCounts,
    MistakePattern,
    Note,
    NoteKind,
    NoteReceipt,
    RawTrajectory,
    Recollection,
    RepositoryPlaybook,
    Snapshot,
    State,
    new_context_id,
)
from contextgraph.ports import Store
from contextgraph.readers import to_record
from contextgraph.remote import RetryPolicy
from contextgraph.retrieval import MemoryRetriever, Playbooks
from contextgraph.stats import MemoryStats, SolveRates, StatisticsEngine
from contextgraph.text import clip
from contextgraph.trace import SubmissionSign

DEADLINE = 5.0
# A run that is learned is waited for; it is not lost where this is not enough.
_WRITE, _WAIT_SECONDS = RetryPolicy(timeout=45, outage=60, rate_limit=60), 30
_CONSOLIDATION = RetryPolicy(timeout=600, outage=20, rate_limit=60)
_CHARS = 200_000
_OF_STORE = "needs the store itself: run it where the service runs, with the address of its store"


class NeedsStoreError(SettingsError, AttributeError):
    """What was called is not part of the service."""


class _OverHttp:
    """A part of a memory whose other attributes are those of a store that is elsewhere."""

    _service: Service

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or name == "_service":
            raise AttributeError(name)
        raise NeedsStoreError(f"{self._service.name} is a service, and this {_OF_STORE}")


class _Part(_OverHttp):
    """A part of a memory whose work is done by a service."""

    def __init__(self, service: Service, retries: RetryPolicy) -> None:
        self._service, self._retries = service, retries

    def send(self, method: str, path: str, **content: Any) -> Any:
        """The answer of the service: see `Service.send`."""
        return self._service.send(method, path, self._retries, **content)


class Client(_OverHttp, AgentMemory):
    """As `AgentMemory`, of the service at *url*, used with *token* (``CONTEXTGRAPH_TOKEN``).

    Queries, live runs, learning, outcomes, playbooks, statistics, notes, explanations, quarantine,
    `forget`, `retire` and `consolidate`; other methods raise `NeedsStoreError`.

    A query is answered within *deadline* seconds, or its answer is empty and `degraded` says why,
    whatever *degrade* is. All else is retried for a minute, then raises `StoreUnavailableError`.
    The service also consolidates by itself, and takes the source of a run or note from the token:
    naming another raises `SettingsError`, as does a token that does not suffice. A service whose
    version has another interface raises `StoreError`.
    """

    is_service = True

    def __init__(self, url: str, token: str | None = None, *, deadline: float = DEADLINE) -> None:
        self._service = Service(url, token)
        # Half of the time for the first answer, so that there is a second attempt.
        policy = RetryPolicy(deadline / 2, deadline, deadline, total=deadline)
        self.retriever = _Retriever(self._service, policy)
        self.loop_detector = _LoopDetector(self._service, policy)
        self.stats = _Statistics(self._service, policy)
        self.writer = _Writer(self._service, _WRITE)
        self.store = cast(Store, _Store(self._service, _WRITE))
        self.store_id = url
        self.withhold, self.source = 0.0, ""
        self._trigger = ConsolidationTrigger(None)
        self._now = lambda: datetime.now(UTC)
        self._shown = deque(maxlen=MOST_SHOWN)

    @cached_property
    def notes(self) -> "RemoteNotes":
        """What people and agents say: see `RemoteNotes`."""
        return RemoteNotes(self._service, _WRITE)

    def explain(self, node_id: str) -> Explanation | None:
        self.note_exposures()
        path = f"/v1/explain/{quote(node_id, safe='')}"
        found = self._service.send(
            "GET", path, _WRITE, accept=HTTPStatus.NOT_FOUND, params={"complete": True}
        )
        return decoded(Explanation, found["value"]) if found else None

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        return _delete(self._service, "/v1/trajectories", trajectory_ids)

    def retire(self, methodology_ids: Iterable[str]) -> int:
        return _delete(self._service, "/v1/methodologies", methodology_ids)

    def consolidate(
        self, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> ConsolidationReport:
        """As of `AgentMemory`; *progress* is not called."""
        self.note_exposures()
        found = self._service.send(
            "POST",
            "/v1/consolidate",
            _CONSOLIDATION,
            accept=HTTPStatus.CONFLICT,
            params={"complete": True},
        )
        if found is None:
            return ConsolidationReport(False, "another process consolidates", 0, (), 0.0)
        return decoded(ConsolidationReport, found["value"])

    def _decide(self, advice: str, *, is_quarantined: bool) -> bool:
        self.note_exposures()
        decision = "quarantine" if is_quarantined else "release"
        path = f"/v1/methodologies/{quote(advice, safe='')}/{decision}"
        return bool(self._service.send("POST", path, _WRITE, accept=HTTPStatus.NOT_FOUND))

    def close(self) -> None:
        """Close the connections, once what was shown is noted."""
        try:
            self.note_exposures()
        finally:
            self._service.close()


class _Retriever(_Part, MemoryRetriever):
    """Answers of the service."""

    def __init__(self, service: Service, policy: RetryPolicy) -> None:
        super().__init__(service, policy)
        self.playbooks = _Playbooks(service, policy)

    def retrieve(
        self,
        state: State,
        limit: int = 5,
        *,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: datetime | None = None,
        error: ErrorSignature | None = None,
    ) -> MemoryContext:
        bounds = _bounds(exclude_instances, as_of)
        body = {"state": _state(state), "limit": limit, "record": False, **bounds}
        try:
            answer = self.send("POST", "/v1/query", json=body)
        except StoreUnavailableError as failure:
            return MemoryContext(new_context_id(), degraded=(f"service: {failure}",))
        return decoded(MemoryContext, answer["context"])


class _Playbooks(_Part, Playbooks):
    """Playbooks of the service."""

    def of(
        self,
        repo: str,
        task: str = "",
        exclude_instances: frozenset[str] = frozenset(),
        as_of: datetime | None = None,
    ) -> RepositoryPlaybook:
        params = {"repo": repo, "task": task, **_bounds(exclude_instances, as_of)}
        answer = self.send("GET", "/v1/playbook", params=params)
        return decoded(RepositoryPlaybook, answer["value"])

    def history(
        self,
        repo: str,
        command: str,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: datetime | None = None,
    ) -> CommandHistory:
        params = {"repo": repo, "command": command, **_bounds(exclude_instances, as_of)}
        return decoded(CommandHistory, self.send("GET", "/v1/how", params=params)["value"])


class _Writer(_Part, MemoryWriter):
    """Learns by the service."""

    def write(self, raw: RawTrajectory, source: str = "") -> LearnReceipt:
        return self.write_all([raw], source)[0]

    def write_all(self, raws: Sequence[RawTrajectory], source: str = "") -> Sequence[LearnReceipt]:
        _check_source(source)
        lines = b"\n".join(orjson.dumps(to_record(raw)) for raw in raws)
        params = {"wait": _WAIT_SECONDS, "complete": True}
        job = self.send("POST", "/v1/learn", params=params, content=lines)
        if job["state"] != "done":
            job = self.send("GET", f"/v1/learn/{job['job']}", params=params)
        name = self._service.name
        if job["state"] != "done":
            reason = job["error"] or "it is busy"
            raise StoreUnavailableError(f"{name} has the runs and waits: {reason}")
        receipts = [decoded(LearnReceipt, one) for one in job["receipts"]]
        if len(receipts) != len(raws):
            reasons = [one["error"] for one in job["runs"] if one["error"]]
            raise StoreError(f"{name}: {'; '.join(reasons) or 'a run is missing'}")
        return receipts

    def set_outcome(
        self, instance_id: str, solved: bool, *, agent: str = "", run: str = ""
    ) -> Sequence[str]:
        """Raises `StoreError` for several runs without *agent* or *run*."""
        outcome = "solved" if solved else "failed"
        body = {"instance_id": instance_id, "outcome": outcome, "agent": agent, "run": run}
        answer = self.send("POST", "/v1/outcomes", accept=HTTPStatus.NOT_FOUND, json=body)
        return answer["trajectories"] if answer else []


class _Store(_Part):
    """The store of the service; only its exposures can be reached."""

    def __init__(self, service: Service, policy: RetryPolicy) -> None:
        super().__init__(service, policy)
        self.exposures = _Exposures(service, policy)


class _Exposures(_Part):
    """What was shown, noted by the service."""

    def add(self, exposures: Sequence[Exposure]) -> None:
        self.send("POST", "/v1/exposures", json={"exposures": [*map(_exposure, exposures)]})

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        _check_source(source)
        body = {"context": context_id, "helped": helped, "item": item}
        return bool(self.send("POST", "/v1/reports", json=body)["recorded"])


class RemoteNotes(_Part, Notes):
    """Notes of the service: `remember`, `recall`, `snapshot`, `of` (the newest 500), `forget`.

    The texts of confidential and restricted notes are left out. Other methods raise
    `NeedsStoreError`.
    """

    def remember(
        self,
        text: str,
        *,
        repo: str = "",
        source: str = "user",
        tags: Collection[str] = (),
        credibility: float | None = None,
        **properties: Unpack[NoteProperties],
    ) -> NoteReceipt:
        """As of `Notes`; the source, and with it the credibility, is that of the token."""
        _check_source("" if source == "user" and credibility is None else source)
        properties["caused_by"] = [*properties.get("caused_by", ())]
        given = {name: encoded(value) for name, value in properties.items()}
        body = {"content": text, "repo": repo, "tags": [*tags], **given}
        return decoded(NoteReceipt, self.send("POST", "/v1/notes", json=body))

    def recall(
        self,
        question: str,
        *,
        repo: str | None = None,
        limit: int = RECALLED,
        tags: Collection[str] = (),
        min_probability: float = 0.0,
    ) -> tuple[Recollection, ...]:
        params = {
            "question": question,
            "limit": limit,
            "tags": [*tags],
            "min_probability": min_probability,
            **_of(repo),
        }
        return tuple(
            Recollection(decoded(Note, one), one["score"], one["why"], one["probability"])
            for one in self.send("GET", "/v1/notes", params=params)["notes"]
        )

    def snapshot(
        self, trigger: str, focus: str = "", *, repo: str | None = None, max_tokens: int = 500
    ) -> Snapshot:
        params = {"trigger": trigger, "focus": focus, "max_tokens": max_tokens, **_of(repo)}
        return decoded(Snapshot, self.send("GET", "/v1/snapshot", params=params))

    def of(self, repo: str | None = None, *, archived: bool = False) -> tuple[Note, ...]:
        params = {"limit": 500, "archived": archived, **_of(repo)}
        found = self.send("GET", "/v1/notes", params=params)["notes"]
        return tuple(decoded(Note, one) for one in found)

    def forget(self, ids: Collection[str]) -> int:
        return _delete(self._service, "/v1/notes", ids)


class _LoopDetector(_Part, LoopDetector):
    """Loops and escape suggestions, as the service finds them."""

    def detect(
        self, states: Sequence[State], *, exclude_instances: frozenset[str] = frozenset()
    ) -> LoopInfo | None:
        body = {"states": [_state(one) for one in states], "complete": True}
        return decoded(MemoryContext, self.send("POST", "/v1/loops", json=body)["context"]).loop

    def get_escape_suggestions(
        self, state: State, *, exclude_instances: frozenset[str] = frozenset()
    ) -> tuple[EscapeSuggestion, ...]:
        body = {"state": _state(state), "exclude_instances": [*exclude_instances]}
        found = self.send("POST", "/v1/escapes", json=body)
        return tuple(decoded(EscapeSuggestion, one) for one in found["escapes"])


class _Statistics(_Part, StatisticsEngine):
    """Statistics of the service."""

    def get_stats(self) -> MemoryStats:
        found = self._found()
        notes = found["notes"]
        return MemoryStats(
            counts=decoded(MemoryCounts, found["counts"]),
            error_frequency=found["error_frequency"],
            transitions=found["transitions"],
            common_mistakes=self.get_common_mistakes,
            failure_patterns=_patterns(found),
            usage={},
            withholding=decoded(Effect, found["withholding"]),
            notes=None if notes is None else {NoteKind(name): notes[name] for name in notes},
        )

    def get_common_mistakes(
        self, situation: str = "", repo: str = ""
    ) -> tuple[MistakePattern, ...]:
        found = self._found(situation=situation, repo=repo)
        return tuple(decoded(MistakePattern, one) for one in found["common_mistakes"])

    def get_failure_patterns(self, repo: str = "") -> tuple[FailurePattern, ...]:
        return _patterns(self._found(repo=repo))

    def get_solve_rates(
        self, exclude_instances: Iterable[str] = ()
    ) -> dict[SubmissionSign, SolveRates]:
        params = {"exclude_instances": sorted(exclude_instances)}
        found = self.send("GET", "/v1/solve_rates", params=params)
        return {SubmissionSign(sign): decoded(SolveRates, one) for sign, one in found.items()}

    def _found(self, **params: str) -> Any:
        return self._service.send("GET", "/v1/stats", _WRITE, params=params)


def _check_source(source: str) -> None:
    if source:
        raise SettingsError("a service takes the source from the token; name none")


def _of(repo: str | None) -> dict[str, str]:
    return {} if repo is None else {"repo": repo}


def _delete(service: Service, path: str, ids: Iterable[str]) -> int:
    """How many of *ids* were there to be deleted."""
    answers = (
        service.send("DELETE", f"{path}/{quote(one, safe='')}", _WRITE, accept=HTTPStatus.NOT_FOUND)
        for one in ids
    )
    return sum(answer is not None for answer in answers)


def _bounds(exclude_instances: Iterable[str], as_of: datetime | None) -> dict[str, Any]:
    bounds: dict[str, Any] = {"exclude_instances": [*exclude_instances], "complete": True}
    return {**bounds, "as_of": as_of.isoformat()} if as_of else bounds


def _exposure(shown: Exposure) -> dict[str, Json]:
    return {
        "context_id": shown.context_id,
        "shown_at": shown.shown_at.isoformat(),
        "error_id": shown.error_id,
        "items": [encoded(item) for item in shown.items],
        "is_withheld": shown.is_withheld,
    }


def _state(state: State) -> Json:
    """*state* as JSON, its texts no longer than the service takes."""
    record = encoded(state)
    assert isinstance(record, dict)
    return {
        name: clip(value, _CHARS) if isinstance(value, str) else value
        for name, value in record.items()
    }


def _patterns(found: Any) -> tuple[FailurePattern, ...]:
    return tuple(decoded(FailurePattern, one) for one in found["failure_patterns"])
