"""Measuring: times, instructions, percentiles, a row of the table, and another version beside."""

import ctypes
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import NamedTuple

# Of `perf_event_open`: its number by machine, and the attributes of `perf_event_attr`.
_SYSCALLS = {"x86_64": 298, "aarch64": 241}
_SIZE, _INSTRUCTIONS, _USER_SPACE_ONLY = 128, 1, 1 << 5 | 1 << 6

# Returns the runs of a file of JSONL in any version, without fields that it does not know.
_READ = """
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import orjson

from contextgraph import AgentMemory
from contextgraph.model import Action, RawTrajectory, Step
from contextgraph.readers import read

def runs_of(given):
    known, of_step, of_action = (
        {"contextgraph", *kind.__annotations__} for kind in (RawTrajectory, Step, Action)
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "runs.jsonl")
        with path.open("wb") as file:
            for line in Path(given).read_bytes().splitlines():
                record = orjson.loads(line)
                record = {key: record[key] for key in record if key in known}
                for step in record["steps"]:
                    step.setdefault("observation", None)  # which 0.1 does not leave out
                    for key in step.keys() - of_step:
                        del step[key]
                    for key in step["action"].keys() - of_action:
                        del step["action"][key]
                file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        return list(read(path))
"""


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


class Version:
    """A fresh process that runs *script* on the version in *checkout*, and answers line by line.

    It has the environment `.venv` of the checkout, where there is one. The script finds its
    *arguments* in `sys.argv`, and the runs of a file with `runs_of`.
    """

    def __init__(
        self, checkout: Path, script: str, arguments: Sequence[object], stack: ExitStack
    ) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        own = checkout / ".venv" / "bin" / "python"
        python = str(own) if own.exists() else sys.executable
        self._process = stack.enter_context(
            subprocess.Popen(
                [python, "-P", "-c", _READ + script, *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                text=True,
            )
        )

    def answer(self, line: object = "") -> list[float]:
        """Return the figures that the process prints for a *line* of its input."""
        assert self._process.stdin
        assert self._process.stdout
        print(line, file=self._process.stdin, flush=True)
        return [*map(float, self._process.stdout.readline().split())]


def ratio_of(pairs: Sequence[Sequence[float]]) -> str:
    """The median ratio of *pairs* (here, beside) with its 95 % interval, as a text."""
    ratios = sorted(here / beside for here, beside in pairs)
    # The interval of a median lies between two of the values, by their order.
    first = max(0, round(len(ratios) / 2 - 1.96 * math.sqrt(len(ratios)) / 2))
    return f"{median(ratios):.2f} ({ratios[first]:.2f} to {ratios[-1 - first]:.2f})"


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
