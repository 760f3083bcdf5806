"""A scripted run: the issue, the seeded bug, the tests that judge it and the agent's steps."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@dataclass(frozen=True, slots=True)
class Seed:
    """A bug: in *file*, the *right* text is replaced by the *wrong* one."""

    file: str
    right: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Step:
    """A thought of the agent and the command that follows."""

    thought: str
    command: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run of the agent in one seeded repository."""

    instance_id: str
    folder: str
    issue: str
    seeds: tuple[Seed, ...]
    hidden_tests: str
    steps: tuple[Step, ...]

    @property
    def repository(self) -> str:
        """Name of the repository without its owner."""
        return self.instance_id.split("__")[1].rpartition("-")[0]

    @property
    def number(self) -> int:
        """Number of the issue in its repository."""
        return int(self.instance_id.rpartition("-")[2])

    @property
    def submits(self) -> bool:
        """Whether the last step hands something in; else the run ends at its step limit."""
        return self.steps[-1].command.startswith(SUBMIT)


def scenarios() -> Iterator[Scenario]:
    """Yield every scenario, by folder and number; the files are in `seeded/runs`."""
    yield from map(_read, sorted((HERE / "runs").glob("*/*.toml"), key=_place))


def _place(path: Path) -> tuple[str, str, int]:
    name, _, number = path.stem.rpartition("-")
    return path.parent.name, name, int(number)


def _read(path: Path) -> Scenario:
    run = tomllib.loads(path.read_text(encoding="utf-8"))
    return Scenario(
        instance_id=path.stem,
        folder=path.parent.name,
        issue=run["issue"].strip(),
        seeds=tuple(Seed(*seed) for seed in run.get("seeds", ())),
        hidden_tests=run["hidden_tests"].lstrip(),
        steps=(*(Step(*step) for step in run["steps"]), *_closing(run)),
    )


def _closing(run: dict[str, Any]) -> tuple[Step, ...]:
    if "submit" not in run:
        return ()
    thought, paths = run["submit"]
    write = f"git add -N {paths} && git diff -- {paths} > patch.txt && cat patch.txt"
    last = "The patch holds only what I meant to change, so I submit it."
    return Step(thought, write), Step(last, f"{SUBMIT} && cat patch.txt")
