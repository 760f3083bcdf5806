"""A report: configuration, figures, and what is needed to compare it with another."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from contextgraph.errors import ReadError
from contextgraph.model import Json
from contextgraph.replay.comparison import Contrast, against
from contextgraph.replay.evaluation import Evaluation
from contextgraph.replay.judging import BASELINES, OURS
from contextgraph.replay.measures import CurvePoint, Measures, by_topic, curve, measures_of
from contextgraph.replay.moments import Moment, MomentKind, Verdict

CURVE_AT = 3
TOPICS_AT = 3


@dataclass(frozen=True, slots=True)
class Curve:
    """The trade of coverage for precision of *method*, by the *height* of its first item."""

    method: str
    height: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What an evaluation came to; *config* says what was evaluated, and on what.

    *contrasts* are with each baseline that finds anything, the baseline first.
    """

    config: Mapping[str, Json]
    measures: Measures
    topics: Measures
    curves: tuple[Curve, ...]
    contrasts: Mapping[str, tuple[Contrast, ...]]
    moments: tuple[Moment, ...]


def report_of(
    evaluation: Evaluation | None, related: Sequence[Moment], config: Mapping[str, Json], seed: int
) -> Report:
    """The report of an evaluation by runs, of related tasks, or of both."""
    moments = (*(evaluation.moments if evaluation else ()), *related)
    return Report(
        config={**config, **(_described(evaluation) if evaluation else {}), "seed": seed},
        measures=measures_of(moments, evaluation.circles if evaluation else (), seed),
        topics=by_topic(moments, TOPICS_AT, seed),
        curves=tuple(
            found
            for method, height in ((OURS, "score"), (OURS, "evidence"), ("bm25", "score"))
            if (found := _curve(moments, method, height)).points
        ),
        contrasts={name: against(moments, name, seed) for name in BASELINES if name != "nothing"},
        moments=moments,
    )


def report_record(report: Report, *, with_moments: bool) -> dict[str, Json]:
    """*report* as JSON; its moments are needed to compare it."""
    record: dict[str, Json] = {
        "config": dict(report.config),
        "measures": _figures(report.measures),
        f"clearance@{TOPICS_AT} by error family": _figures(report.topics),
        "curves": [
            {
                "method": one.method,
                "by": one.height,
                "points": [asdict(point) for point in one.points],
            }
            for one in report.curves
        ],
    }
    record["against"] = {
        name: [asdict(contrast) for contrast in contrasts]
        for name, contrasts in report.contrasts.items()
    }
    if with_moments:
        record["moments"] = [_moment_record(moment) for moment in report.moments]
    return record


def moments_in(path: Path) -> tuple[Moment, ...]:
    """The moments of a report that was written with them; raises `ReadError`."""
    try:
        record = orjson.loads(path.read_bytes())
        rows = record["moments"]
        return tuple(_moment(row) for row in rows)
    except OSError as error:
        raise ReadError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    except (orjson.JSONDecodeError, TypeError, KeyError, ValueError) as error:
        reason = "is no report with moments; write one with evaluate --details FILE"
        raise ReadError(str(path), "", reason) from error


def _described(evaluation: Evaluation) -> dict[str, Json]:
    kinds = [moment.kind for moment in evaluation.moments]
    return {
        "mode": str(evaluation.mode),
        "order": str(evaluation.order),
        "data": evaluation.fingerprint,
        "runs_learned": evaluation.learned,
        "runs_judged": evaluation.judged,
        "moments": {str(kind): kinds.count(kind) for kind in (MomentKind.START, MomentKind.ERROR)},
        "seconds": {
            "learning": round(evaluation.learning_seconds, 1),
            "judging": round(evaluation.judging_seconds, 1),
        },
    }


def _curve(moments: Sequence[Moment], method: str, height: str) -> Curve:
    def of(verdict: Verdict) -> float:
        return verdict.score if height == "score" else verdict.evidence

    return Curve(method, height, curve(moments, method, CURVE_AT, of))


def _figures(measures: Measures) -> dict[str, Json]:
    return {
        str(name): {method: asdict(figure) for method, figure in by_method.items()}
        for name, by_method in measures.items()
    }


def _moment_record(moment: Moment) -> dict[str, Json]:
    return {**asdict(moment), "kind": str(moment.kind), "topic": str(moment.topic)}


def _moment(row: dict[str, Any]) -> Moment:
    verdicts = {name: Verdict(**verdict) for name, verdict in row["verdicts"].items()}
    return Moment(**{**row, "kind": MomentKind(row["kind"]), "verdicts": verdicts})
