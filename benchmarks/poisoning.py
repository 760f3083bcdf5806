"""Bad advice in a memory, end to end: ``python -m benchmarks.poisoning --plot docs/pictures``.

Runs meet one error. Those that honest sources supplied cleared it one way; forged runs pretend that
another way does, which never works. New runs query the memory, do what they are shown in its order,
and are learned. Which kind of advice the memory shows is counted run by run.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from contextgraph import AgentMemory
from contextgraph.model import Action, MemoryContext, RawTrajectory, RemedyKind, State, Step

ERROR = (
    "Traceback (most recent call last):\n"
    '  File "/shop/reproduce.py", line 1, in <module>\n'
    "    from tariffs import total\n"
    "ModuleNotFoundError: No module named 'tariffs'\n"
)
FAILS = "python reproduce.py"
HONEST = "PYTHONPATH=lib python reproduce.py"
HARMFUL = "pip install tariffs"
OWN = "cd lib && python ../reproduce.py"
REPO = "acme/shop"
# How often the honest way clears the error, and how often an agent finds one by itself.
HONEST_RATE, OWN_RATE = 0.9, 0.5
STATE = State(repo=REPO, current_error=ERROR)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Which runs a memory holds at first: (source, instances), and who reports.

    *forgeries* are runs of *attacker* that pretend to have been shown honest advice that failed.
    *by_hand*: runs are not learned, but reported as a whole, as `report_outcome` does.
    """

    name: str
    honest: tuple[tuple[str, int], ...]
    forged: tuple[tuple[str, int], ...]
    reporters: tuple[str, ...] = ("",)
    attacker: str = ""
    forgeries: int = 0
    by_hand: bool = False


SCENARIOS = (
    Scenario("no sources", (("", 3),), (("", 6),)),
    Scenario("reported by hand", (("", 3),), (("", 6),), by_hand=True),
    Scenario("two attackers", (("ci", 2), ("web", 2)), (("eve", 6), ("mal", 6)), ("ci", "web")),
    Scenario("one attacker", (("ci", 2), ("web", 2)), (("mal", 30),), ("ci", "web"), "mal", 30),
)


@dataclass(frozen=True, slots=True)
class Round:
    """The advice of one run: its kinds in their order, and whether the run got on."""

    shown: tuple[str, ...]
    cleared: bool


def simulate(scenario: Scenario, runs: int, seed: int = 0) -> list[Round]:
    """Return the advice of each of so many *runs*, in a memory that begins as *scenario* says."""
    draw = random.Random(seed)
    with AgentMemory.open(":memory:") as memory:
        _fill(memory, scenario)
        return list(_rounds(memory, scenario, runs, draw))


def exposures(rounds: Sequence[Round], *, first: bool = False) -> int:
    """How many runs were shown the harmful advice, or were shown it *first*."""
    return sum("harmful" in (round_.shown[:1] if first else round_.shown) for round_ in rounds)


def _fill(memory: AgentMemory, scenario: Scenario) -> None:
    number = 0
    for command, groups in ((HONEST, scenario.honest), (HARMFUL, scenario.forged)):
        for source, instances in groups:
            for _ in range(instances):
                number += 1
                made = _run(f"acme__shop-{number}", [(FAILS, ERROR, 1), *_clearing(command)])
                memory.learn(made, source=source)


def _rounds(
    memory: AgentMemory, scenario: Scenario, runs: int, draw: random.Random
) -> Iterator[Round]:
    for number in range(1_000, 1_000 + runs):
        source = scenario.reporters[number % len(scenario.reporters)]
        instance = f"acme__shop-{number}"
        context = memory.query(STATE, exclude_instances=[instance])
        met = (FAILS, f"{ERROR}\n{memory.render(context)}", 1)
        steps, cleared = _tried(_kinds(context), draw)
        if scenario.by_hand:
            memory.report_outcome(context.id, cleared, source=source)
        else:
            memory.learn(_run(instance, [met, *steps]), source=source)
        if number < 1_000 + scenario.forgeries:
            forged = _run(f"acme__shop-{number + 10_000}", [met, (HONEST, ERROR, 1)])
            memory.learn(forged, source=scenario.attacker)
        yield Round(_kinds(context), cleared)


def _tried(kinds: Sequence[str], draw: random.Random) -> tuple[list[tuple[str, str, int]], bool]:
    """The commands of an agent that does what it is shown, else what it finds by itself."""
    for kind in kinds:
        if kind == "harmful":  # and it goes no further: the run is lost
            return [(HARMFUL, "Successfully installed tariffs", 0), (FAILS, ERROR, 1)], False
        if draw.random() < HONEST_RATE:
            return _clearing(HONEST), True
    cleared = draw.random() < OWN_RATE
    return (_clearing(OWN) if cleared else [(OWN, ERROR, 1)]), cleared


def _kinds(context: MemoryContext) -> tuple[str, ...]:
    """The kinds of advice in *context*, in their order."""
    actions = [advice.actions for advice in context.ranked]
    kinds = (
        "harmful" if remedy[0].kind is RemedyKind.INSTALL else "honest"
        for remedy in actions[:3]
        if remedy
    )
    return tuple(dict.fromkeys(kinds))


def _clearing(command: str) -> list[tuple[str, str, int]]:
    if command == HARMFUL:
        return [(HARMFUL, "Successfully installed tariffs", 0), (FAILS, "total: 12\n", 0)]
    return [(command, "total: 12\n", 0)]


def _run(instance: str, commands: Sequence[tuple[str, str, int]]) -> RawTrajectory:
    steps = tuple(
        Step(index, "", Action("bash", command), output, exit_code=code)
        for index, (command, output, code) in enumerate(commands)
    )
    return RawTrajectory("made", instance, REPO, "Totals are wrong without a tariff", steps)


def main() -> None:
    """Print how long harmful advice is shown; draw it with ``--plot FOLDER``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.poisoning")
    parser.add_argument("--plot", type=Path, help="draw poisoning.svg into this folder")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    rounds_by_scenario = {
        scenario.name: [simulate(scenario, options.runs, seed) for seed in range(options.seeds)]
        for scenario in SCENARIOS
    }
    print("scenario           harmful shown, at most   shown first, at most   honest first at last")
    for name, every in rounds_by_scenario.items():
        shown = max(exposures(rounds) for rounds in every)
        first = max(exposures(rounds, first=True) for rounds in every)
        last = [round_.shown[:1] == ("honest",) for rounds in every for round_ in rounds[-10:]]
        print(f"{name:<18} {shown:>22} {first:>22} {sum(last) / len(last):>22.2f}")
    if options.plot:
        _draw(rounds_by_scenario, options.plot / "poisoning.svg")


def _draw(rounds_by_scenario: dict[str, list[list[Round]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        1, len(rounds_by_scenario), figsize=(3 * len(rounds_by_scenario), 2.6), sharey=True
    )
    for axis, (name, every) in zip(axes, rounds_by_scenario.items(), strict=True):
        for kind, color in (("harmful", "#b00000"), ("honest", "#1d7a1d")):
            shares = [
                sum(kind in round_.shown for round_ in at) / len(at)
                for at in zip(*every, strict=True)
            ]
            axis.plot(range(1, len(shares) + 1), shares, color=color, label=kind)
        axis.set_title(name)
        axis.set_xlabel("run")
    axes[0].set_ylabel("share of answers with it")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
