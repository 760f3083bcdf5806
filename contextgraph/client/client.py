"""`AgentMemory` over HTTP."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import orjson

from contextgraph.client.service import Service
from contextgraph.codec import decoded, encoded
from contextgraph.errors import SettingsError, StoreError, StoreUnavailableError
from contextgraph.learning import RUNS_AT_ONCE
from contextgraph.loops import LoopDetector
from contextgraph.memory import MOST_SHOWN, AgentMemory
from contextgraph.model import (
    CommandHistory,
    ConsolidationReport,
    Effect,
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
from contextgraph.readers import to_record
from contextgraph.remote import RetryPolicy
from contextgraph.retrieval import fresh_context, fresh_playbook
from contextgraph.stats import MemoryStats, SolveRates, StatisticsEngine
from contextgraph.text import clip
from contextgraph.trace import SubmissionSign
from contextgraph.working_tree import WorkingTree

DEADLINE = 5.0
# A run that is learned is waited for; it is not lost where this is not enough.
_WRITE, _WAIT_SECONDS = RetryPolicy(timeout=45, outage=60, rate_limit=60), 30
_CHARS = 200_000
_OF_STORE = "needs the store itself: run it where the service runs, with the address of its store"


class NeedsStoreError(SettingsError, AttributeError):
    """What was asked for is not part of the service."""


class _OverHttp:
    """A part of a memory whose other attributes are those of a store that is elsewhere."""

    _service: Service

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or name == "_service":
            raise AttributeError(name)
        raise NeedsStoreError(f"{self._service.name} is a service, and this {_OF_STORE}")


class Client(_OverHttp, AgentMemory):
    """As `AgentMemory`, of the service at *url*, used with *token* (``CONTEXTGRAPH_TOKEN``).

    The methods of `AgentMemory` for queries, live runs, learning, outcomes, playbooks and
    statistics; the others raise `NeedsStoreError`. A query is answered within *deadline* seconds,
    or its answer is empty and `degraded` says why. All else is retried for a minute, then raises
    `StoreUnavailableError`. A token that does not suffice raises `SettingsError`, a service whose
    version has another interface `StoreError`.
    """

    def __init__(self, url: str, token: str | None = None, *, deadline: float = DEADLINE) -> None:
        self._service = Service(url, token)
        # Half of the time for the first answer, so that there is a second attempt.
        self._policy = RetryPolicy(deadline / 2, deadline, deadline, total=deadline)
        self._now = lambda: datetime.now(UTC)
        self._shown = deque(maxlen=MOST_SHOWN)
        self.withhold, self.source = 0.0, ""
        self.stats = _Statistics(self._service, self._policy)
        self.loop_detector = _LoopDetector(self._service, self._policy)

    @property
    def is_service(self) -> bool:
        """True."""
        return True

    def query(
        self,
        state: State,
        limit: int = 5,
        *,
        exclude_instances: Iterable[str] = (),
        as_of: datetime | None = None,
        workdir: Path | str | None = None,
        degrade: bool = False,
    ) -> MemoryContext:
        """As `AgentMemory.query`; where there is no answer in time, empty whatever *degrade* is."""
        body = {
            "state": _state(state),
            "limit": limit,
            "exclude_instances": [*exclude_instances],
            "as_of": as_of.isoformat() if as_of else None,
            "record": False,
            "complete": True,
        }
        try:
            answer = self._read("POST", "/v1/query", json=body)
        except StoreUnavailableError as error:
            return MemoryContext(new_context_id(), degraded=(f"service: {error}",))
        context = decoded(MemoryContext, answer["context"])
        return fresh_context(context, WorkingTree.around(workdir)) if workdir else context

    def playbook(
        self,
        repo: str,
        task: str = "",
        *,
        exclude_instances: Iterable[str] = (),
        as_of: datetime | None = None,
        workdir: Path | str | None = None,
    ) -> RepositoryPlaybook:
        """As `AgentMemory.playbook`."""
        asked = {"repo": repo, "task": task, **_bounds(exclude_instances, as_of)}
        answer = self._read("GET", "/v1/playbook", params=asked)
        found = decoded(RepositoryPlaybook, answer["value"])
        return fresh_playbook(found, WorkingTree.around(workdir)) if workdir else found

    def how(
        self,
        repo: str,
        command: str,
        *,
        exclude_instances: Iterable[str] = (),
        as_of: datetime | None = None,
    ) -> CommandHistory:
        """As `AgentMemory.how`."""
        asked = {"repo": repo, "command": command, **_bounds(exclude_instances, as_of)}
        return decoded(CommandHistory, self._read("GET", "/v1/how", params=asked)["value"])

    def check_loop(self, states: Sequence[State]) -> LoopInfo | None:
        """As `AgentMemory.check_loop`."""
        body = {"states": [_state(one) for one in states], "complete": True}
        return decoded(MemoryContext, self._read("POST", "/v1/loops", json=body)["context"]).loop

    def get_stats(self) -> MemoryStats:
        """As `AgentMemory.get_stats`; what models cost is counted at the service."""
        return self.stats.get_stats()

    def learn(
        self, raw: RawTrajectory, *, source: str = "", background: bool = False
    ) -> LearnReceipt:
        """As `AgentMemory.learn`; the service consolidates in its own time.

        The source of a run is that of the token: raises `SettingsError` where another is named.
        """
        _check_source(source)
        self.note_exposures()
        (receipt,) = self._stored([raw])
        return receipt

    def learn_many(
        self, raws: Iterable[RawTrajectory], *, source: str = ""
    ) -> Generator[LearnReceipt]:
        """As `AgentMemory.learn_many`; *source* is as of `learn`."""
        _check_source(source)
        self.note_exposures()
        rest = iter(raws)
        while some := list(islice(rest, RUNS_AT_ONCE)):
            yield from self._stored(some)

    def batch(
        self,
        progress: Callable[[int, int], None] | None = None,
        on_report: Callable[[ConsolidationReport], None] | None = None,
    ) -> AbstractContextManager[None]:
        """Nothing is put off: the service consolidates in its own time."""
        return nullcontext()

    def set_outcome(
        self, instance_id: str, solved: bool, *, agent: str = "", run: str = ""
    ) -> Sequence[str]:
        """As `AgentMemory.set_outcome`; `StoreError` for several runs without *agent* or *run*."""
        outcome = "solved" if solved else "failed"
        body = {"instance_id": instance_id, "outcome": outcome, "agent": agent, "run": run}
        answer = self._write("POST", "/v1/outcomes", accept=HTTPStatus.NOT_FOUND, json=body)
        return answer["trajectories"] if answer else []

    def report_outcome(
        self, context_id: str, helped: bool, item: int | None = None, *, source: str = ""
    ) -> bool:
        """As `AgentMemory.report_outcome`; *source* is as of `learn`."""
        _check_source(source)
        self.note_exposures()
        body = {"context": context_id, "helped": helped, "item": item}
        return bool(self._write("POST", "/v1/reports", json=body)["recorded"])

    def note_exposures(self) -> None:
        """As `AgentMemory.note_exposures`."""
        if shown := [*self._shown]:
            self._write("POST", "/v1/exposures", json={"exposures": [*map(_exposure, shown)]})
            for one in shown:
                self._shown.remove(one)

    def close(self) -> None:
        """Close the connections, once what was shown is noted."""
        try:
            self.note_exposures()
        finally:
            self._service.close()

    def _stored(self, raws: Sequence[RawTrajectory]) -> Sequence[LearnReceipt]:
        lines = b"\n".join(orjson.dumps(to_record(raw)) for raw in raws)
        asked = {"wait": _WAIT_SECONDS, "complete": True}
        job = self._write("POST", "/v1/learn", params=asked, content=lines)
        if job["state"] != "done":
            job = self._write("GET", f"/v1/learn/{job['job']}", params=asked)
        if job["state"] != "done":
            reason = job["error"] or "it is busy"
            raise StoreUnavailableError(f"{self._service.name} has the runs and waits: {reason}")
        receipts = [decoded(LearnReceipt, one) for one in job["receipts"]]
        if len(receipts) != len(raws):
            reasons = [one["error"] for one in job["runs"] if one["error"]]
            raise StoreError(f"{self._service.name}: {'; '.join(reasons) or 'a run is missing'}")
        return receipts

    def _read(self, method: str, path: str, **content: Any) -> Any:
        return self._service.send(method, path, self._policy, **content)

    def _write(self, method: str, path: str, **content: Any) -> Any:
        return self._service.send(method, path, _WRITE, **content)


class _LoopDetector(_OverHttp, LoopDetector):
    """Escape suggestions of the service."""

    def __init__(self, service: Service, policy: RetryPolicy) -> None:
        self._service, self._policy = service, policy

    def get_escape_suggestions(
        self, trouble: LoopInfo | State, *, exclude_instances: frozenset[str] = frozenset()
    ) -> tuple[EscapeSuggestion, ...]:
        if isinstance(trouble, LoopInfo):
            raise NeedsStoreError(f"{self._service.name}: give the state in the place of the loop")
        body = {"state": _state(trouble), "exclude_instances": [*exclude_instances]}
        found = self._service.send("POST", "/v1/escapes", self._policy, json=body)
        return tuple(decoded(EscapeSuggestion, one) for one in found["escapes"])


class _Statistics(_OverHttp, StatisticsEngine):
    """Statistics of the service."""

    def __init__(self, service: Service, policy: RetryPolicy) -> None:
        self._service, self._policy = service, policy

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
        asked = {"exclude_instances": sorted(exclude_instances)}
        found = self._service.send("GET", "/v1/solve_rates", self._policy, params=asked)
        return {SubmissionSign(sign): decoded(SolveRates, one) for sign, one in found.items()}

    def _found(self, **asked: str) -> Any:
        return self._service.send("GET", "/v1/stats", _WRITE, params=asked)


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
