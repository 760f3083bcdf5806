"""Ids derived from content: the same run gives the same ids, wherever and whenever it is read."""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from contextgraph.model import ErrorSignature, RawTrajectory, Step

_SEPARATOR = b"\x1f"


def trajectory_id(raw: RawTrajectory) -> str:
    """The id of a run: of its steps as canonically written, its agent and its instance.

    Neither the outcome nor what a reader adds (thoughts, tool names, states) takes part. A run
    without steps is known by its task and patch.
    """
    parts = [raw.instance_id, raw.agent, raw.model]
    parts += _canonical(raw.steps) if raw.steps else (raw.task, raw.patch or "")
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


def _canonical(steps: Iterable[Step]) -> Iterable[str]:
    for step in steps:
        yield " ".join(step.action.text.split())
        yield " ".join((step.observation or "").split())


def _digest(prefix: str, parts: Iterable[str]) -> str:
    # surrogatepass: a log may hold half a surrogate pair, and must still have an id
    encoded = _SEPARATOR.join(part.encode("utf-8", "surrogatepass") for part in parts)
    return f"{prefix}_{blake2b(encoded, digest_size=12).hexdigest()}"
