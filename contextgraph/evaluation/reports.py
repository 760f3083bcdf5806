"""A report: a verdict in one sentence, configuration, figures, moments to compare it by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from contextgraph.codec import decoded, encoded
from contextgraph.errors import ReadError
from contextgraph.evaluation.evaluation import Evaluation
from contextgraph.evaluation.measures import (
    Contrast,
    CurvePoint,
    Measures,
    against,
    clearance_by_family,
    curve,
    measures_of,
)
from contextgraph.evaluation.moments import BASELINES, OURS, Moment, MomentKind
from contextgraph.evaluation.saving import saved_measures
from contextgraph.model import Json

CURVE_AT = 3
FAMILIES_AT = 3
_CURVES = (OURS, "bm25")
# The measure by which a verdict compares, and what it is about, most important first.
_JUDGED_BY = {
    "clearance@3": "the remedy of an error among its first three items",
    "localisation@5": "a file to change among its first five",
    "related@5": "a linked task among its first five",
}


@dataclass(frozen=True, slots=True)
class Curve:
    """The trade of coverage for precision of *method*, by the score of its first item."""

    method: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The results of an evaluation; *config* records what was evaluated, and on which runs.

    *verdict* is one sentence; *contrasts* are with each baseline, the baseline first. *saving* has
    the net steps saved and the tokens of a run, by moment.
    """

    verdict: str
    config: Mapping[str, Json]
    measures: Measures
    families: Measures
    curves: tuple[Curve, ...]
    contrasts: Mapping[str, tuple[Contrast, ...]]
    moments: tuple[Moment, ...]
    saving: Mapping[str, Measures]


def report_of(
    evaluation: Evaluation | None,
    related: Sequence[Moment],
    config: Mapping[str, Json],
    seed: int,
    by_hand: Measures | None = None,
) -> Report:
    """The report of an evaluation by runs, of related tasks, or of both.

    *by_hand* are measures by judgements that were made by hand.
    """
    moments = (*(evaluation.moments if evaluation else ()), *related)
    warnings = evaluation.loop_warnings if evaluation else ()
    measures = {**measures_of(moments, warnings, seed), **(by_hand or {})}
    contrasts = {name: against(moments, name, seed) for name in BASELINES if name != "nothing"}
    curves = (Curve(method, curve(moments, method, CURVE_AT)) for method in _CURVES)
    return Report(
        verdict=_verdict_of(measures, contrasts),
        config={**config, **(_described(evaluation) if evaluation else {}), "seed": seed},
        measures=measures,
        families=clearance_by_family(moments, FAMILIES_AT, seed),
        curves=tuple(curve for curve in curves if curve.points),
        contrasts=contrasts,
        moments=moments,
        saving=saved_measures(evaluation.replays, seed) if evaluation else {},
    )


def report_record(report: Report, *, with_moments: bool) -> dict[str, Json]:
    """*report* as JSON; its moments are needed to compare it."""
    record: dict[str, Json] = {
        "verdict": report.verdict,
        "config": dict(report.config),
        "measures": encoded(report.measures, complete=True),
        f"clearance@{FAMILIES_AT} by error family": encoded(report.families, complete=True),
        "curves": encoded(report.curves, complete=True),
        "against": encoded(report.contrasts, complete=True),
        **{name: encoded(measures, complete=True) for name, measures in report.saving.items()},
    }
    if with_moments:
        record["moments"] = encoded(report.moments, complete=True)
    return record


def moments_in(path: Path) -> tuple[Moment, ...]:
    """The moments of a report that was written with them; raises `ReadError`."""
    try:
        record = orjson.loads(path.read_bytes())
        rows = record["moments"]
        return tuple(decoded(Moment, row) for row in rows)
    except OSError as error:
        raise ReadError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    except (ReadError, orjson.JSONDecodeError, TypeError, KeyError) as error:
        reason = "is not a report with moments; write one with evaluate --details FILE"
        raise ReadError(str(path), "", reason) from error


def _verdict_of(measures: Measures, contrasts: Mapping[str, Sequence[Contrast]]) -> str:
    """How the memory does, and how much better than the best baseline, in one sentence."""
    measure = next((name for name in _JUDGED_BY if name in measures), None)
    if measure is None:
        return "Nothing could be judged by these runs."
    sentence = f"It ranks {_JUDGED_BY[measure]} in {_percent(measures[measure][OURS].value)}"
    if precision := measures.get("precision@3"):
        coverage = measures["answered: cleared errors"][OURS].value
        sentence = (
            f"At errors it is right in {_percent(precision[OURS].value)} where it speaks (first "
            f"three items) and speaks at {_percent(coverage)}; it ranks "
            f"{_JUDGED_BY[measure]} in {_percent(measures[measure][OURS].value)}"
        )
    best = max(
        (
            (contrast.first, name, contrast)
            for name, of_baseline in contrasts.items()
            for contrast in of_baseline
            if contrast.measure == measure
        ),
        key=lambda entry: entry[0],
    )
    return f"{sentence}, {_compared(best[1], best[2])}."


def _compared(baseline: str, contrast: Contrast) -> str:
    gap = contrast.difference
    points = f"{100 * gap.low:+.0f} to {100 * gap.high:+.0f} points"
    by = f"the best baseline ({baseline}, {_percent(contrast.first)})"
    if gap.low > 0:
        return f"better than {by} by {100 * gap.value:.0f} points ({points})"
    if gap.high < 0:
        return f"worse than {by} by {-100 * gap.value:.0f} points ({points})"
    return f"no different from {by} beyond chance ({points})"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


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
