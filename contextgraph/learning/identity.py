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

    *beginnings* are the ids of the run broken off after each of its commands but the last, and
    after what a person said since, the longest first.
    """

    id: str
    beginnings: tuple[str, ...] = ()


def trajectory_id(raw: RawTrajectory) -> str:
    """The id of a run: of its instance, its agent and the commands that it ran.

    Neither the observations, the model nor the outcome take part, nor does a submission at the end:
    a run that was observed live has the id of its log. Secrets are masked first, so that a stored
    run gives the same id. A run without commands is known by its task and patch. What a person said
    after the last command continues the run.
    """
    return run_ids(raw).id


def run_ids(raw: RawTrajectory) -> RunIds:
    """The id of *raw*, and those by which it may be known already."""
    acted, said = _commands(raw)
    instance_id, agent, *texts = masked_texts((raw.instance_id, raw.agent, *acted, *said))
    texts = [" ".join(text.split()) for text in texts]
    commands = [command for command in texts[: len(acted)] if command]
    said = [words for words in texts[len(acted) :] if words]
    # One digest that grows by a command at a time.
    growing, ids = blake2b(digest_size=12), list[str]()
    if commands:
        growing.update(_encoded((instance_id, agent)))
    else:
        growing.update(_encoded((instance_id, agent, *masked_texts((raw.task, raw.patch or "")))))
        ids.append(f"trj_{growing.hexdigest()}")
    for part in (*commands, *said):
        growing.update(_SEPARATOR + _encoded((part,)))
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


def _commands(raw: RawTrajectory) -> tuple[list[str], list[str]]:
    """The commands of *raw*, without a final submission, and what a person said after the last."""
    last = len(raw.steps)
    while last and _is_submission(raw.steps[last - 1]):
        last -= 1
    said = [step.user_message for step in raw.steps[max(last - 1, 0) :] if step.user_message]
    return [step.action.text for step in raw.steps[:last]], said


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
