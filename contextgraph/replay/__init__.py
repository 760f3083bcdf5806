"""Replay: recorded runs walked as if live, and a memory judged by them."""

from contextgraph.replay.comparison import Contrast, compare
from contextgraph.replay.evaluation import (
    Evaluation,
    Mode,
    evaluate,
    evaluate_online,
    sampled,
    split,
)
from contextgraph.replay.measures import CurvePoint, Measures
from contextgraph.replay.moments import Memory, Moment, MomentKind, Verdict
from contextgraph.replay.order import RunOrder, in_order
from contextgraph.replay.plots import draw
from contextgraph.replay.related import judge_related
from contextgraph.replay.reports import Curve, Report, moments_in, report_of, report_record
from contextgraph.replay.resampling import Difference, Estimate
from contextgraph.replay.walking import LoopAdvice, Spoken, Tally, Walk

__all__ = [
    "Contrast",
    "Curve",
    "CurvePoint",
    "Difference",
    "Estimate",
    "Evaluation",
    "LoopAdvice",
    "Measures",
    "Memory",
    "Mode",
    "Moment",
    "MomentKind",
    "Report",
    "RunOrder",
    "Spoken",
    "Tally",
    "Verdict",
    "Walk",
    "compare",
    "draw",
    "evaluate",
    "evaluate_online",
    "in_order",
    "judge_related",
    "moments_in",
    "report_of",
    "report_record",
    "sampled",
    "split",
]
