"""Measuring: times, instructions, percentiles, and a row of the table."""

import ctypes
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from statistics import median
from time import perf_counter, thread_time
from typing import NamedTuple

# Of `perf_event_open`: its number by machine, and the attributes of `perf_event_attr`.
_SYSCALLS = {"x86_64": 298, "aarch64": 241}
_SIZE, _INSTRUCTIONS, _USER_SPACE_ONLY = 128, 1, 1 << 5 | 1 << 6


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: *value* in *unit*, with the *baseline* it is compared with and the budget.

    *ratio* is the cost as a multiple of the baseline; None without one. *is_missed*: the budget is
    a limit, which this figure exceeds.
    """

    what: str
    value: float
    unit: str
    baseline: str = ""
    ratio: float | None = None
    budget: str = ""
    is_missed: bool = False

    def record(self) -> dict[str, object]:
        """The row as JSON."""
        return asdict(self)


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """The median time of *work* in seconds, over *repeat* runs."""
    return median(cost(work).seconds for _ in range(repeat))


def latencies(calls: Sequence[Callable[[], object]]) -> list[float]:
    """The time of each call in seconds, ascending."""
    return sorted(cost(call).seconds for call in calls)


class Cost(NamedTuple):
    """The cost of a call: *seconds*, those of the processor, and *instructions* in user space.

    These hardly depend on what else the machine does; NaN where they cannot be counted.
    """

    seconds: float
    processor: float
    instructions: float


def cost(call: Callable[[], object]) -> Cost:
    """Measure the cost of *call* in this thread."""
    counted, worked, started = _instructions(), thread_time(), perf_counter()
    call()
    return Cost(perf_counter() - started, thread_time() - worked, _instructions() - counted)


def _instructions() -> float:
    counter = _counter()
    return float("nan") if counter is None else int.from_bytes(os.read(counter, 8), "little")


@cache
def _counter() -> int | None:
    """A file that counts the instructions of this thread; None where Linux gives none."""
    number = _SYSCALLS.get(platform.machine())
    if platform.system() != "Linux" or number is None:
        return None
    attributes = bytearray(_SIZE)
    attributes[4:8] = _SIZE.to_bytes(4, "little")
    attributes[8:16] = _INSTRUCTIONS.to_bytes(8, "little")
    attributes[40:48] = _USER_SPACE_ONLY.to_bytes(8, "little")
    given = (ctypes.c_char * _SIZE).from_buffer(attributes)
    opened = ctypes.CDLL(None).syscall(number, given, 0, -1, -1, 0)
    return opened if opened >= 0 else None


def percentile(ascending: Sequence[float], share: float) -> float:
    """The value below which *share* (0 to 1) of *ascending* lies, nearest rank."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def model_line(
    name: str,
    intercept: float,
    weights: Mapping[str, float],
    calibration: Sequence[tuple[float, float]] = (),
) -> str:
    """The line of `contextgraph/knowledge/fitted.json` for the model of this name."""
    model: dict[str, object] = {"intercept": round(intercept, 3), "weights": dict(weights)}
    if calibration:
        model["calibration"] = [*calibration]
    return f'"{name}": {json.dumps(model)}'
