"""From judged moments to figures with their intervals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from contextgraph.replay.circles import POLICIES, Circles
from contextgraph.replay.judging import METHODS, OURS
from contextgraph.replay.moments import Moment, MomentKind, Verdict
from contextgraph.replay.resampling import Estimate, Share, estimate

# Measure -> method -> figure, in the order in which they are shown.
Measures = Mapping[str, Mapping[str, Estimate]]

_POINTS = 20


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Answering only from *threshold* on: the share of moments answered, how often right."""

    threshold: float
    coverage: float
    precision: float


def measures_of(moments: Sequence[Moment], circles: Sequence[Circles], seed: int) -> Measures:
    """All measures that have something behind them."""
    errors = [moment for moment in moments if moment.kind is MomentKind.ERROR]
    cleared = [moment for moment in errors if moment.has_answer]
    starts = [moment for moment in moments if moment.kind is MomentKind.START]
    named = [moment for moment in starts if moment.has_answer]
    related = [moment for moment in moments if moment.kind is MomentKind.RELATED]
    answered = [moment for moment in cleared if moment.verdicts[OURS].answered]
    found: dict[str, Mapping[str, Estimate]] = {}
    for k in (1, 3, 5):
        found[f"clearance@{k}"] = _hits(cleared, k, seed)
    found["clearance reachable"] = _of_ours(cleared, _reachable, seed)
    for k in (1, 3, 5):
        found[f"clearance@{k} if answered"] = _hits(answered, k, seed)
    for k in (1, 3, 5):
        found[f"precision@{k}"] = _by_method(cleared, _precise(k), seed)
    found["steps earlier"] = _by_method(cleared, _earlier, seed)
    found["answered: cleared errors"] = _by_method(cleared, _answers, seed)
    # Where the run does not show what was right, only the memory is asked.
    found["answered: all errors"] = _of_ours(errors, _answers, seed)
    found["answered: starts"] = _of_ours(starts, _answers, seed)
    for k in (1, 5):
        found[f"localisation@{k}"] = _hits(named, k, seed)
    found["localisation reachable"] = _of_ours(named, _reachable, seed)
    for k in (1, 5, 10):
        found[f"related@{k}"] = _hits(related, k, seed)
    found["related MRR"] = _by_method(related, _reciprocal, seed)
    found["related answered"] = _by_method(related, _answers, seed)
    found["wasted steps saved"] = _by_policy(circles, _saved, seed)
    found["false alarms per 100 runs"] = _by_policy(circles, _false_alarms, seed)
    return {name: estimates for name, estimates in found.items() if estimates}


def by_topic(moments: Iterable[Moment], k: int, seed: int) -> Measures:
    """Clearance@k by the family of the error."""
    topics: dict[str, list[Moment]] = {}
    for moment in moments:
        if moment.kind is MomentKind.ERROR and moment.has_answer:
            topics.setdefault(moment.topic, []).append(moment)
    largest = sorted(topics, key=lambda topic: (-len(topics[topic]), topic))
    return {topic: _hits(topics[topic], k, seed) for topic in largest}


def curve(
    moments: Iterable[Moment], method: str, k: int, height: Callable[[Verdict], float]
) -> tuple[CurvePoint, ...]:
    """Coverage and precision@k of *method* as its least score (its *height*) rises."""
    verdicts = [
        moment.verdicts[method]
        for moment in moments
        if moment.kind is MomentKind.ERROR and moment.has_answer and method in moment.verdicts
    ]
    answered = sorted((v for v in verdicts if v.answered), key=height, reverse=True)
    hits, points = 0, []
    for count, verdict in enumerate(answered, start=1):
        hits += _within(verdict, k)
        ends = count == len(answered) or height(answered[count]) < height(verdict)
        if ends:
            points.append(CurvePoint(height(verdict), count / len(verdicts), hits / count))
    step = max(1, len(points) // _POINTS)
    return tuple(points[::-1][::step][::-1])


def shares(
    moments: Iterable[Moment], method: str, share: Callable[[Moment, Verdict], Share | None]
) -> dict[str, Share]:
    """Run -> what its moments add to a figure of *method*."""
    by_run: dict[str, Share] = {}
    for moment in moments:
        verdict = moment.verdicts.get(method)
        found = share(moment, verdict) if verdict else None
        if found:
            before = by_run.get(moment.instance_id, Share(0, 0))
            total = Share(before.amount + found.amount, before.of + found.of)
            by_run[moment.instance_id] = total
    return by_run


def hit_share(k: int) -> Callable[[Moment, Verdict], Share | None]:
    """Whether what helps is among the first *k*."""
    return lambda _moment, verdict: Share(_within(verdict, k), 1)


def _hits(moments: Sequence[Moment], k: int, seed: int) -> dict[str, Estimate]:
    return _by_method(moments, hit_share(k), seed)


def _within(verdict: Verdict, k: int) -> bool:
    return verdict.rank is not None and verdict.rank <= k


def _precise(k: int) -> Callable[[Moment, Verdict], Share | None]:
    return lambda _, verdict: Share(_within(verdict, k), 1) if verdict.answered else None


def _earlier(moment: Moment, verdict: Verdict) -> Share | None:
    return Share(moment.steps_left, 1) if _within(verdict, 5) else None


def _answers(_moment: Moment, verdict: Verdict) -> Share:
    return Share(verdict.answered, 1)


def _reciprocal(_moment: Moment, verdict: Verdict) -> Share:
    return Share(1 / verdict.rank if verdict.rank else 0.0, 1)


def _by_method(
    moments: Sequence[Moment], share: Callable[[Moment, Verdict], Share | None], seed: int
) -> dict[str, Estimate]:
    found = {name: estimate(shares(moments, name, share), seed) for name in METHODS}
    return {name: figure for name, figure in found.items() if figure}


def _reachable(moment: Moment, _verdict: Verdict) -> Share:
    return Share(moment.reachable, 1)


def _of_ours(
    moments: Sequence[Moment], share: Callable[[Moment, Verdict], Share], seed: int
) -> dict[str, Estimate]:
    found = estimate(shares(moments, OURS, share), seed)
    return {OURS: found} if found else {}


def _by_policy(
    circles: Sequence[Circles], share: Callable[[Circles, str], Share], seed: int
) -> dict[str, Estimate]:
    found = {
        policy: estimate({one.instance_id: share(one, policy) for one in circles}, seed)
        for policy in POLICIES
    }
    return {policy: figure for policy, figure in found.items() if figure}


def _saved(circles: Circles, policy: str) -> Share:
    return Share(circles.saved[policy], circles.wasted)


def _false_alarms(circles: Circles, policy: str) -> Share:
    return Share(100 * circles.false_alarms[policy], 1)
