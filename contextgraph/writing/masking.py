"""A run as it may be stored: control characters gone, playbooks stripped, secrets masked."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from contextgraph.model import Action, Json, RawTrajectory, Step
from contextgraph.text import clean, mask_secrets, strip_fenced


def masked(raw: RawTrajectory) -> tuple[RawTrajectory, tuple[str, ...]]:
    """*raw* fit to be stored, and the ids of the contexts whose playbooks were in it.

    What this product itself put into the run is taken out: it must not learn from itself.
    """
    contexts: dict[str, None] = {}

    def fit(text: str) -> str:
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
