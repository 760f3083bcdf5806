"""Saying in a sentence what happened in a fragment, and in a run."""

from collections import Counter
from collections.abc import Iterable, Sequence

from contextgraph.model import FragmentType, LoopInfo
from contextgraph.text import clip
from contextgraph.trace import ActionKind, Recovery, StepTrace, Trace

ACTION_CHARS = 160
DESCRIPTION_CHARS = 600
SUMMARY_CHARS = 900
_NAMED = 3

_VERBS = {
    ActionKind.EDIT: "edited",
    ActionKind.CREATE: "created",
    ActionKind.VIEW: "read",
    ActionKind.SEARCH: "searched",
    ActionKind.LIST: "listed",
    ActionKind.RUN: "ran",
    ActionKind.TEST: "tested",
    ActionKind.INSTALL: "installed",
    ActionKind.DELETE: "deleted",
    ActionKind.VCS: "used git on",
    ActionKind.SUBMIT: "submitted",
}


def action_line(step: StepTrace) -> str:
    """The action of *step* in one line of at most 160 characters."""
    lines = step.step.action.text.strip().splitlines() or [""]
    more = " …" if len(lines) > 1 else ""
    return clip(" ".join(lines[0].split()), ACTION_CHARS - len(more)) + more


def describe(
    kind: FragmentType,
    steps: Sequence[StepTrace],
    recoveries: Sequence[Recovery],
    loops: Sequence[LoopInfo],
) -> str:
    """What happened in a fragment, in at most 600 characters."""
    sentences = [recovery.what for recovery in recoveries]
    if kind is FragmentType.LOOP:
        sentences = [_loop_sentence(loop, steps) for loop in loops] + sentences
    elif not sentences:
        sentences = [_done(steps)]
        open_errors = _errors(step for step in steps if step.error)
        sentences += [f"{open_errors} was not cleared here"] if open_errors else []
    return clip(_joined(dict.fromkeys(sentences)), DESCRIPTION_CHARS)


def summarise(trace: Trace, files: Sequence[str]) -> str:
    """What a run did, in at most 900 characters; not its outcome, which may be learned later."""
    title = next(
        (line.strip() for line in trace.raw.task.splitlines() if line.strip()), "no task text"
    )
    sentences = [clip(title, 200)]
    sentences.append(f"changed {_some(files)}" if files else "changed no file")
    cleared = Counter(recovery.error.error_type for recovery in trace.recoveries)
    if cleared:
        sentences.append("cleared " + _counted(cleared))
    sentences += [_loop_sentence(loop, trace.steps) for loop in trace.loops[:_NAMED]]
    left = _errors(step for step in trace.steps[-2:] if step.error)
    if left:
        sentences.append(f"ended on {left}")
    return clip(_joined(sentences), SUMMARY_CHARS)


def _done(steps: Sequence[StepTrace]) -> str:
    targets: dict[ActionKind, dict[str, None]] = {}
    for step in steps:
        if step.reading.kind in _VERBS:
            targets.setdefault(step.reading.kind, {}).update(dict.fromkeys(_objects(step)))
    done = [f"{_VERBS[kind]} {_some(list(named))}".strip() for kind, named in targets.items()]
    return ", ".join(done) or action_line(steps[0]) or "thought"


def _objects(step: StepTrace) -> Sequence[str]:
    if step.reading.kind in (ActionKind.RUN, ActionKind.TEST, ActionKind.INSTALL):
        return [f"`{clip(step.reading.command or action_line(step), 80)}`"]
    if step.reading.kind is ActionKind.SEARCH:
        return [f"with `{clip(action_line(step), 60)}`"]
    return step.reading.targets


def _loop_sentence(loop: LoopInfo, steps: Sequence[StepTrace]) -> str:
    by_index = {step.step.index: step for step in steps}
    last = by_index.get(loop.end)
    what = f"`{clip(action_line(last), 80)}`" if last else "the same steps"
    name = loop.kind.replace("_", " ")
    return f"went round in circles ({name}): {loop.repetitions} times {what}"


def _errors(steps: Iterable[StepTrace]) -> str:
    messages = dict.fromkeys(
        f"{step.error.error_type}: {clip(step.error.message, 120)}" for step in steps if step.error
    )
    return _some(list(messages))


def _counted(counter: Counter[str]) -> str:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return _some([f"{name} ({count}x)" if count > 1 else name for name, count in ordered])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _joined(sentences: Iterable[str]) -> str:
    return "; ".join(sentence.strip().rstrip(".;") for sentence in sentences if sentence.strip())
