"""`AgentMemory` over HTTP."""

from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NoReturn, cast

import orjson

from contextgraph.advising import MOST_SHOWN
from contextgraph.client.service import Service
from contextgraph.codec import decoded, encoded
from contextgraph.consolidation import ConsolidationTrigger
from contextgraph.errors import SettingsError, StoreError, StoreUnavailableError
from contextgraph.learning import MemoryWriter
from contextgraph.loops import LoopDetector
from contextgraph.memory import AgentMemory
from contextgraph.model import (
    CommandHistory,
    Effect,
    ErrorSignature,
    EscapeSuggestion,
    Exposure,
    FailurePattern,
    Json,
    LearnReceipt,
    LoopInfo,
    MemoryContext,
    MemoryCounts,
    MistakePattern,
    RawTrajectory,
    RepositoryPlaybook,
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

    def __init__(self, service: Service, policy: RetryPolicy) -> None:
        self._service, self._policy = service, policy

    def send(self, method: str, path: str, **content: Any) -> Any:
        """The answer of the service: see `Service.send`."""
        return self._service.send(method, path, self._policy, **content)


class Client(_OverHttp, AgentMemory):
    """As `AgentMemory`, of the service at *url*, used with *token* (``CONTEXTGRAPH_TOKEN``).

    Queries, live runs, learning, outcomes, playbooks and statistics; other methods raise
    `NeedsStoreError`. A query is answered within *deadline* seconds, or its answer is empty and
    `degraded` says why, whatever *degrade* is. All else is retried for a minute, then raises
    `StoreUnavailableError`. The service consolidates in its own time, and takes the source of a run
    from the token: naming another raises `SettingsError`, as does a token that does not suffice. A
    service whose version has another interface raises `StoreError`.
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


class _LoopDetector(_Part, LoopDetector):
    """Loops and escape suggestions, as the service finds them."""

    def detect(
        self, states: Sequence[State], *, exclude_instances: frozenset[str] = frozenset()
    ) -> LoopInfo | None:
        body = {"states": [_state(one) for one in states], "complete": True}
        return decoded(MemoryContext, self.send("POST", "/v1/loops", json=body)["context"]).loop

    def get_escape_suggestions(
        self, trouble: LoopInfo | State, *, exclude_instances: frozenset[str] = frozenset()
    ) -> tuple[EscapeSuggestion, ...]:
        if isinstance(trouble, LoopInfo):
            raise NeedsStoreError(f"{self._service.name}: give the state instead of the loop")
        body = {"state": _state(trouble), "exclude_instances": [*exclude_instances]}
        found = self.send("POST", "/v1/escapes", json=body)
        return tuple(decoded(EscapeSuggestion, one) for one in found["escapes"])


class _Statistics(_Part, StatisticsEngine):
    """Statistics of the service."""

    def get_stats(self) -> MemoryStats:
        found = self._found()
        return MemoryStats(
            counts=decoded(MemoryCounts, found["counts"]),
            error_frequency=found["error_frequency"],
            transitions=found["transitions"],
            common_mistakes=self.get_common_mistakes,
            failure_patterns=_patterns(found),
            usage={},
            withholding=decoded(Effect, found["withholding"]),
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
