"""Make the example trajectories by running mini-swe-agent in small repositories with seeded bugs.

Needs mini-swe-agent (pip install mini-swe-agent), git and a Unix shell. The model is scripted
(examples/seeded/runs), the commands and their outputs are real. The same files come out every time:

    python examples/make_trajectories.py             # write trajectories/ and unseen/
    python examples/make_trajectories.py --check     # are the files here what the runs give?
"""

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seeded.agent import mini, run
from seeded.scenario import Scenario, scenarios
from seeded.testbed import Testbed

HERE = Path(__file__).parent
FOLDERS = ("trajectories", "unseen")
MADE_WITH = "Python 3.11, mini-swe-agent 2.4.6"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, and whether the whole test suite passes with its patch."""

    instance_id: str
    folder: str
    resolved: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the files; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 if they differ")
    parser.add_argument("--only", default="", help="runs whose instance id contains this text")
    options = parser.parse_args(arguments)
    mini("agents.default")
    if not options.check:
        make(HERE, options.only)
        return 0
    with TemporaryDirectory() as folder:
        make(Path(folder), options.only)
        return report(differences(HERE, Path(folder), options.only))


def make(destination: Path, only: str) -> None:
    """Run every scenario whose id contains *only*; outcomes are written when all were run."""
    chosen = [scenario for scenario in scenarios() if only in scenario.instance_id]
    outcomes = []
    for number, scenario in enumerate(chosen, 1):
        data = trajectory(scenario)
        outcome = Outcome(scenario.instance_id, scenario.folder, judge(scenario, data))
        outcomes.append(outcome)
        path = destination / scenario.folder / f"{scenario.instance_id}.traj.json"
        write(path, data)
        progress(f"[{number:2}/{len(chosen)}]", outcome, data)
    if not only:
        write(destination / "trajectories" / "outcomes.json", summary(outcomes))


def trajectory(scenario: Scenario) -> dict[str, Any]:
    """Return the trajectory of a scenario, run in a testbed of its own."""
    with TemporaryDirectory() as folder:
        testbed = Testbed(Path(folder))
        testbed.prepare()
        return run(scenario, testbed)


def judge(scenario: Scenario, data: dict[str, Any]) -> bool:
    """Return whether a fresh checkout with the submitted patch passes all tests, hidden ones too.

    Raises SystemExit when the hidden tests pass without any patch: they would judge nothing.
    """
    with TemporaryDirectory() as folder:
        testbed = Testbed(Path(folder))
        testbed.prepare()
        checkout = testbed.plant(scenario)
        (checkout / "tests" / "test_hidden.py").write_text(scenario.hidden_tests, encoding="utf-8")
        if testbed.passes(checkout):
            raise SystemExit(f"{scenario.instance_id}: the hidden tests pass without the fix")
        patch = data["info"]["submission"]
        if not patch.strip():
            return False
        (checkout / "submitted.patch").write_text(patch, encoding="utf-8")
        testbed.run("git apply submitted.patch", checkout)
        return testbed.passes(checkout)


def summary(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """Return the outcomes of the learned runs, in the shape of a SWE-bench summary."""
    learned = [outcome for outcome in outcomes if outcome.folder == "trajectories"]
    return {
        "resolved_ids": [outcome.instance_id for outcome in learned if outcome.resolved],
        "unresolved_ids": [outcome.instance_id for outcome in learned if not outcome.resolved],
    }


def write(path: Path, data: dict[str, Any]) -> None:
    """Write *data* as JSON, the way mini-swe-agent does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def progress(count: str, outcome: Outcome, data: dict[str, Any]) -> None:
    """Print one line about a finished run."""
    steps = data["info"]["model_stats"]["api_calls"]
    verdict = "resolved" if outcome.resolved else "unresolved"
    status = data["info"]["exit_status"]
    print(f"{count} {outcome.instance_id:30} {steps:3} steps  {status:15} {verdict}", flush=True)


def differences(here: Path, there: Path, only: str) -> list[str]:
    """Return the names, of those with *only* in them, of files that differ in both folders."""
    names = sorted({name for base in (here, there) for name in _names(base) if only in name})
    return [name for name in names if _bytes(here / name) != _bytes(there / name)]


def report(names: Sequence[str]) -> int:
    """Print which files differ; return the exit code."""
    if not names:
        print("the example trajectories are what the runs give")
        return 0
    version = f"made with {MADE_WITH}; this is Python {platform.python_version()}"
    print(f"not what the runs give ({version}): {', '.join(names)}", file=sys.stderr)
    return 1


def _names(base: Path) -> list[str]:
    return [f"{name}/{path.name}" for name in FOLDERS for path in (base / name).glob("*.json")]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
