"""Evaluation: a memory judged by recorded runs, and such runs replayed as if live."""

from contextgraph.evaluation.by_hand import (
    HandVerdict,
    JudgedItem,
    JudgedMoment,
    judge_by_hand,
    read_judged,
)
from contextgraph.evaluation.evaluation import (
    Evaluation,
    Mode,
    evaluate,
    evaluate_online,
    sampled,
    split,
)
from contextgraph.evaluation.judging import LoopWarnings
from contextgraph.evaluation.measures import (
    Contrast,
    CurvePoint,
    Difference,
    Estimate,
    Measures,
    Share,
    compare,
    difference,
    estimate,
    mcnemar,
)
from contextgraph.evaluation.moments import (
    Moment,
    MomentKind,
    RunOrder,
    Verdict,
    in_order,
)
from contextgraph.evaluation.related import judge_related, read_related
from contextgraph.evaluation.replay import Replay, ReplayCounts, ReplayMoment
from contextgraph.evaluation.reports import (
    Curve,
    Report,
    draw,
    moments_in,
    report_of,
    report_record,
    svg_figures,
)

__all__ = [
    "Contrast",
    "Curve",
    "CurvePoint",
    "Difference",
    "Estimate",
    "Evaluation",
    "HandVerdict",
    "JudgedItem",
    "JudgedMoment",
    "LoopWarnings",
    "Measures",
    "Mode",
    "Moment",
    "MomentKind",
    "Replay",
    "ReplayCounts",
    "ReplayMoment",
    "Report",
    "RunOrder",
    "Share",
    "Verdict",
    "compare",
    "difference",
    "draw",
    "estimate",
    "evaluate",
    "evaluate_online",
    "in_order",
    "judge_by_hand",
    "judge_related",
    "mcnemar",
    "moments_in",
    "read_judged",
    "read_related",
    "report_of",
    "report_record",
    "sampled",
    "split",
    "svg_figures",
]
