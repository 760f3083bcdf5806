"""How a run is read, as the JSON records that programs are promised."""

from collections.abc import Iterable

from contextgraph.cli.records import fragment_record, loop_records
from contextgraph.model import ErrorSignature, Json, LoopInfo
from contextgraph.trace import Recovery, StepTrace
from contextgraph.writing import Inspection


def inspection_record(inspection: Inspection) -> dict[str, Json]:
    trace, raw = inspection.trace, inspection.trace.raw
    return {
        "source": raw.source,
        "source_format": raw.source_format,
        "instance_id": raw.instance_id,
        "repo": raw.repo,
        "task_type": str(trace.task_type),
        "outcome": str(raw.outcome),
        "total_steps": len(trace.steps),
        "steps": [_step(step) for step in trace.steps],
        "fragments": [fragment_record(fragment) for fragment in inspection.fragments],
        "loops": loop_records(trace.loops),
        "recoveries": [_recovery(recovery) for recovery in trace.recoveries],
    }


def loops_record(inspection: Inspection, loops: Iterable[LoopInfo]) -> dict[str, Json]:
    return {
        "source": inspection.trace.raw.source,
        "instance_id": inspection.trace.raw.instance_id,
        "loops": loop_records(loops),
    }


def _step(step: StepTrace) -> dict[str, Json]:
    action = step.step.action
    return {
        "index": step.step.index,
        "phase": str(step.phase),
        "action": {"tool": action.tool, "text": action.text},
        "error": None if step.error is None else _error(step.error),
    }


def _error(error: ErrorSignature) -> dict[str, Json]:
    return {
        "family": str(error.family),
        "type": error.error_type,
        "template": error.template,
        "location": error.location,
        "keywords": list(error.keywords),
    }


def _recovery(recovery: Recovery) -> dict[str, Json]:
    return {
        "error_step": recovery.error_step,
        "recovered_step": recovery.cleared_step,
        "type": recovery.error.error_type,
        "what": recovery.what,
        "actions": list(recovery.actions),
        "verified": recovery.verified,
        "workaround": recovery.workaround,
    }
