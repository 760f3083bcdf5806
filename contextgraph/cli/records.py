"""Values as the JSON records that programs are promised."""

from collections.abc import Iterable
from pathlib import Path

from contextgraph.errors import ReadError, StoreUnavailableError
from contextgraph.model import (
    ConsolidationReport,
    ErrorSolution,
    Explanation,
    FailureWarning,
    Fragment,
    Json,
    LearnReceipt,
    LoopInfo,
    MemoryContext,
    MistakePattern,
    RawTrajectory,
    SimilarCase,
    Suggestion,
    Trajectory,
    Usage,
    Why,
)
from contextgraph.stats import MemoryStats


def receipt_record(receipt: LearnReceipt) -> dict[str, Json]:
    return {
        "trajectory_id": receipt.trajectory_id,
        "status": str(receipt.status),
        "fragments": receipt.fragments,
        "error_patterns": receipt.error_patterns,
        "to_embed": receipt.to_embed,
        "not_embedded": receipt.not_embedded or None,
        "tokens": receipt.usage.tokens,
        "cost": round(receipt.usage.cost, 6),
        "error": None,
    }


def learned_record(raw: RawTrajectory, receipt: LearnReceipt) -> dict[str, Json]:
    return {
        "source": raw.source,
        "instance_id": raw.instance_id,
        **receipt_record(receipt),
    }


def spooled_record(raw: RawTrajectory, reason: StoreUnavailableError) -> dict[str, Json]:
    """A run that is not learned yet, and waits for the store."""
    return _not_learned(raw.source, raw.instance_id, f"waits in the spool: {reason}")


def failed_record(failure: ReadError) -> dict[str, Json]:
    return _not_learned(failure.source, None, str(failure))


def _not_learned(source: str | None, instance_id: str | None, error: str) -> dict[str, Json]:
    """The keys of a run that was learned, so that programs read every line alike."""
    return {
        "source": source,
        "instance_id": instance_id,
        "trajectory_id": None,
        "status": "failed",
        "fragments": 0,
        "error_patterns": 0,
        "to_embed": 0,
        "not_embedded": None,
        "tokens": 0,
        "cost": 0.0,
        "error": error,
    }


def trajectory_record(trajectory: Trajectory) -> dict[str, Json]:
    return {
        "trajectory_id": trajectory.id,
        "instance_id": trajectory.instance_id,
        "repo": trajectory.repo,
        "outcome": str(trajectory.outcome),
    }


def context_record(context: MemoryContext, text: str, key: Json = None) -> dict[str, Json]:
    return {
        "key": key,
        "id": context.id,
        "suggestions": [_suggestion(item) for item in context.suggestions],
        "error_solutions": [_error_solution(item) for item in context.error_solutions],
        "similar_cases": [_similar_case(item) for item in context.similar_cases],
        "warnings": [_warning(item) for item in context.warnings],
        "degraded": list(context.degraded),
        "text": text,
    }


def fragment_record(fragment: Fragment) -> dict[str, Json]:
    return {
        "start": fragment.start,
        "end": fragment.end,
        "type": str(fragment.fragment_type),
        "phase": str(fragment.phase),
        "outcome": str(fragment.outcome),
        "description": fragment.description,
    }


def loop_records(loops: Iterable[LoopInfo]) -> list[Json]:
    return [
        {
            "start": loop.start,
            "end": loop.end,
            "kind": str(loop.kind),
            "length": loop.length,
            "repetitions": loop.repetitions,
            "severity": str(loop.severity),
            "signatures": list(loop.signatures),
            "escape_suggestions": list(loop.escape_suggestions),
        }
        for loop in loops
    ]


def stats_record(
    stats: MemoryStats, mistakes: Iterable[MistakePattern], plots: Iterable[Path]
) -> dict[str, Json]:
    counts = stats.counts
    patterns: list[Json] = [
        {
            "condition": pattern.condition,
            "what": pattern.what,
            "count": pattern.count,
            "prevented": pattern.prevented,
        }
        for pattern in stats.failure_patterns
    ]
    common: list[Json] = [
        {
            "description": mistake.description,
            "count": mistake.count,
            "cleared": mistake.cleared,
        }
        for mistake in mistakes
    ]
    return {
        "counts": {
            "nodes": dict(counts.nodes),
            "edges": dict(counts.edges),
            "outcomes": dict(counts.outcomes),
            "methodologies": dict(counts.methodologies),
            "repositories": counts.repositories,
        },
        "error_frequency": dict(stats.error_frequency),
        "transitions": {error: dict(nexts) for error, nexts in stats.transitions.items()},
        "common_mistakes": common,
        "failure_patterns": patterns,
        "usage": {model: usage_record(used) for model, used in stats.usage.items()},
        "plots": [str(file) for file in plots],
    }


def consolidation_record(report: ConsolidationReport) -> dict[str, Json]:
    steps: list[Json] = [
        {
            "name": step.name,
            "examined": step.examined,
            "created": step.created,
            "updated": step.updated,
            "removed": step.removed,
        }
        for step in report.steps
    ]
    return {
        "started": report.started,
        "reason": report.reason,
        "trajectories": report.trajectories,
        "changed": report.changed,
        "steps": steps,
        "seconds": round(report.seconds, 3),
        **usage_record(report.usage),
        "waiting": report.waiting,
        "runs_waiting": report.runs_waiting,
        "not_worded": report.not_worded or None,
        "unusable": report.unusable,
        "fault": report.fault or None,
    }


def usage_record(usage: Usage) -> dict[str, Json]:
    return {"tokens": usage.tokens, "cost": round(usage.cost, 6), "requests": usage.requests}


def explanation_record(found: Explanation) -> dict[str, Json]:
    relations: list[Json] = [
        {
            "type": edge.type,
            "direction": "out" if edge.outgoing else "in",
            "id": edge.id,
            "label": edge.label,
            "name": edge.name,
            **edge.properties,
        }
        for edge in found.relations
    ]
    return {
        "id": found.id,
        "label": found.label,
        "name": found.name,
        "facts": dict(found.facts),
        "relations": relations,
    }


def _suggestion(item: Suggestion) -> dict[str, Json]:
    return {
        "id": item.id,
        "situation": item.situation,
        "strategy": item.strategy,
        "confidence": item.confidence,
        "status": item.status,
        "scope": str(item.scope),
        "score": item.score,
        "why": _why(item.why),
    }


def _error_solution(item: ErrorSolution) -> dict[str, Json]:
    return {
        "fragment_id": item.fragment_id,
        "trajectory_id": item.trajectory_id,
        "instance_id": item.instance_id,
        "repo": item.repo,
        "error_type": item.error_type,
        "signature_level": str(item.signature_level),
        "actions": list(item.actions),
        "description": item.description,
        "workaround": item.workaround,
        "score": item.score,
        "why": _why(item.why),
    }


def _similar_case(item: SimilarCase) -> dict[str, Json]:
    told = item.retelling
    retold = told.descriptions if told else {}
    fragments: list[Json] = [
        {"id": one.id, **fragment_record(one), "retold": retold.get(one.id)}
        for one in item.fragments
    ]
    return {
        "trajectory_id": item.trajectory_id,
        "instance_id": item.instance_id,
        "repo": item.repo,
        "outcome": str(item.outcome),
        "summary": item.summary,
        "retold": (told.summary or None) if told else None,
        "retold_by": told.made_by if told else None,
        "files": list(item.files),
        "fragments": fragments,
        "score": item.score,
        "why": _why(item.why),
    }


def _warning(item: FailureWarning) -> dict[str, Json]:
    return {"text": item.text, "count": item.count, "why": _why(item.why)}


def _why(why: Why) -> dict[str, Json]:
    channels: list[Json] = [
        {"channel": found.channel, "rank": found.rank, "score": found.score}
        for found in why.channels
    ]
    level = why.signature_level
    return {
        "channels": channels,
        "scope": str(why.scope),
        "signature_level": None if level is None else str(level),
        "support": why.support,
        "trajectories": list(why.trajectories),
    }
