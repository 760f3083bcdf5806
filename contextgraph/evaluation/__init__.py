"""Evaluation: a memory judged by recorded runs, and such runs replayed as if live."""

from contextgraph.evaluation.evaluation import (
    Evaluation as Evaluation,
    Mode as Mode,
    evaluate as evaluate,
    evaluate_online as evaluate_online,
    sampled as sampled,
    split as split,
)
from contextgraph.evaluation.judging import (
    HandVerdict as HandVerdict,
    JudgedItem as JudgedItem,
    JudgedMoment as JudgedMoment,
    judge_by_hand as judge_by_hand,
    judge_related as judge_related,
    read_related as read_related,
)
from contextgraph.evaluation.measures import (
    Contrast as Contrast,
    CurvePoint as CurvePoint,
    Difference as Difference,
    Estimate as Estimate,
    Measures as Measures,
    ReliabilityPoint as ReliabilityPoint,
    Share as Share,
    compare as compare,
    difference as difference,
    estimate as estimate,
    mcnemar as mcnemar,
    reliability as reliability,
)
from contextgraph.evaluation.moments import (
    LoopWarnings as LoopWarnings,
    Moment as Moment,
    MomentKind as MomentKind,
    MomentVerdict as MomentVerdict,
    OrderSource as OrderSource,
    Replay as Replay,
    ReplayCounts as ReplayCounts,
    ReplayMoment as ReplayMoment,
    in_order as in_order,
)
from contextgraph.evaluation.reports import (
    CONTRASTS as CONTRASTS,
    CURVE_AT as CURVE_AT,
    Curve as Curve,
    Report as Report,
    against_title as against_title,
    contrast_row as contrast_row,
    draw_evaluation as draw_evaluation,
    figure_rows as figure_rows,
    measures_by_title as measures_by_title,
    moments_in as moments_in,
    report_of as report_of,
    report_record as report_record,
    saved_in_words as saved_in_words,
    settings_in_words as settings_in_words,
    write_evaluation as write_evaluation,
)
