"""Ids derived from content: the same run always gives the same ids."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from contextgraph.learning.masking import masked_texts
from contextgraph.model import (
    ErrorSignature,
    RawTrajectory,
    Step,
)
from contextgraph.trace import ActionKind, read_action

_SEPARATOR = b"\x1f"


@dataclass(frozen=True, slots=True)
class RunIds:
    """The id of a run, and the ids by which a memory may know it, or its beginning, already.

    *beginnings* are the ids of the run broken off after each of its commands but the last, the
    longest first.
    """

    id: str
    beginnings: tuple[str, ...] = ()


def trajectory_id(raw: RawTrajectory) -> str:
    """The id of a run: of its instance, its agent and the commands that it ran.

    Neither the observations, the model nor the outcome take part, nor does a submission at the end:
    a run that was observed live has the id of its log. Secrets are masked first, so that a stored
    run gives the same id. A run without commands is known by its task and patch.
    """
    return run_ids(raw).id


def run_ids(raw: RawTrajectory) -> RunIds:
    """The id of *raw*, and those by which it may be known already."""
    instance_id, agent, *texts = masked_texts((raw.instance_id, raw.agent, *_commands(raw)))
    commands = [command for text in texts if (command := " ".join(text.split()))]
    if not commands:
        task_and_patch = masked_texts((raw.task, raw.patch or ""))
        return RunIds(_digest("trj", (instance_id, agent, *task_and_patch)))
    # One digest that grows by a command at a time.
    growing = blake2b(_encoded((instance_id, agent)), digest_size=12)
    ids = []
    for command in commands:
        growing.update(_SEPARATOR + _encoded((command,)))
        ids.append(f"trj_{growing.hexdigest()}")
    return RunIds(ids[-1], tuple(ids[-2::-1]))


def former_trajectory_id(raw: RawTrajectory) -> str:
    """The id that version 0.1 gave *raw*, a run as it was read."""
    parts = [raw.instance_id, raw.agent, raw.model]
    parts += _with_observations(raw.steps) if raw.steps else (raw.task, raw.patch or "")
    return _digest("trj", parts)


def fragment_id(trajectory: str, start: int, end: int) -> str:
    """The id of the fragment of *trajectory* from step *start* to *end*."""
    return _digest("frg", (trajectory, str(start), str(end)))


def error_id(signature: ErrorSignature) -> str:
    """The id of the error pattern that *signature* is one of, at template level."""
    return _error_id(signature.family, signature.error_type, signature.template)


# A bundle asks for the id of each error several times, and agents meet the same ones.
@lru_cache(maxsize=2048)
def _error_id(family: str, error_type: str, template: str) -> str:
    return _digest("err", (family, error_type, template))


def _commands(raw: RawTrajectory) -> list[str]:
    """The commands of *raw*, without a final submission."""
    last = len(raw.steps)
    while last and _is_submission(raw.steps[last - 1]):
        last -= 1
    return [step.action.text for step in raw.steps[:last]]


def _is_submission(step: Step) -> bool:
    if not step.action.text.strip():
        return True
    return read_action(step.action, None, None).kind is ActionKind.SUBMIT


def _with_observations(steps: Sequence[Step]) -> Iterable[str]:
    for step in steps:
        yield " ".join(step.action.text.split())
        yield " ".join((step.observation or "").split())


def _digest(prefix: str, parts: Iterable[str]) -> str:
    return f"{prefix}_{blake2b(_encoded(parts), digest_size=12).hexdigest()}"


def _encoded(parts: Iterable[str]) -> bytes:
    # surrogatepass: a log may hold half a surrogate pair, and must still have an id
    return _SEPARATOR.join(part.encode("utf-8", "surrogatepass") for part in parts)
