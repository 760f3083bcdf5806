"""A run as it may be stored: control characters gone, playbooks stripped, secrets masked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from contextgraph.model import Action, Json, RawTrajectory, Step
from contextgraph.text import (
    clean,
    is_plain,
    mask_secrets,
    may_be_fenced,
    may_hold_secrets,
    strip_fenced,
)


def masked(raw: RawTrajectory) -> tuple[RawTrajectory, tuple[str, ...]]:
    """*raw* fit to be stored, and the ids of the contexts whose playbooks were in it.

    What this product itself put into the run is taken out: it must not learn from itself.
    """
    suspects = _suspects(tuple(_texts(raw)))
    if not suspects:
        return raw, ()
    contexts: dict[str, None] = {}

    def fit(text: str) -> str:
        if text not in suspects:
            return text
        own, found = strip_fenced(clean(text))
        contexts.update(dict.fromkeys(found))
        return mask_secrets(own)

    safe = replace(
        raw,
        task=fit(raw.task),
        system_prompt=fit(raw.system_prompt),
        patch=_maybe(fit, raw.patch),
        steps=tuple(_step(step, fit) for step in raw.steps),
        source=fit(raw.source),
    )
    return safe, tuple(contexts)


def _suspects(texts: Sequence[str]) -> frozenset[str]:
    """Those of *texts* that may not be fit: looking at all at once is a third of the work."""
    # Other characters than ASCII are rare, and would make a slow text of the whole.
    narrow = [text for text in texts if text.isascii()]
    whole = "\n".join(narrow)
    if not is_plain(whole) or may_be_fenced(whole):
        return frozenset(texts)
    wide = (text for text in texts if not text.isascii())
    return frozenset((*wide, *may_hold_secrets(narrow)))


def _texts(raw: RawTrajectory) -> Iterator[str]:
    """All that is free text in *raw*."""
    yield from (raw.task, raw.system_prompt, raw.patch or "", raw.source)
    for step in raw.steps:
        yield from (step.thought, step.action.text, step.observation or "")
        for value in step.action.arguments.values():
            yield from _texts_in(value)


def _texts_in(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)


def _step(step: Step, fit: Callable[[str], str]) -> Step:
    thought, action = fit(step.thought), _action(step.action, fit)
    observation = _maybe(fit, step.observation)
    if thought is step.thought and action is step.action and observation is step.observation:
        return step  # as most are: copies of them took a tenth of all learning
    return replace(step, thought=thought, action=action, observation=observation)


def _action(action: Action, fit: Callable[[str], str]) -> Action:
    text, arguments = fit(action.text), _arguments(action.arguments, fit)
    if text is action.text and arguments == action.arguments:
        return action
    return Action(action.tool, text, arguments)


def _arguments(arguments: Mapping[str, Json], fit: Callable[[str], str]) -> dict[str, Json]:
    return {key: _value(value, fit) for key, value in arguments.items()}


def _value(value: Json, fit: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return fit(value)
    if isinstance(value, list):
        return [_value(item, fit) for item in value]
    if isinstance(value, dict):
        return _arguments(value, fit)
    return value


def _maybe(fit: Callable[[str], str], text: str | None) -> str | None:
    return None if text is None else fit(text)
