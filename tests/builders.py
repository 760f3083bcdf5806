"""Small runs and values for tests, with everything but the point of the test filled in."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import asdict

from contextgraph.model import (
    Action,
    ErrorPattern,
    Family,
    Outcome,
    RawTrajectory,
    Recovered,
    RecoveryCandidate,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    Step,
    TaskType,
    Trajectory,
)
from contextgraph.store.rules import scored_words
from contextgraph.trace import describe_remedy

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

NO_MODULE = """Traceback (most recent call last):
  File "/shop/reproduce.py", line 1, in <module>
    import tariffs
ModuleNotFoundError: No module named 'tariffs'
"""


SET_PATH = RemedyAction(
    RemedyKind.SET_ENV,
    "PYTHONPATH=lib",
    RemedyPattern(RemedyKind.SET_ENV, "PYTHONPATH=<source folder>"),
    parameters=(("command", "PYTHONPATH=lib python reproduce.py"),),
)


def remedy(line: str, kind: RemedyKind = RemedyKind.RUN, general: str = "") -> RemedyAction:
    """The action of running *line*; *general* is the target of its pattern."""
    return RemedyAction(kind, line, RemedyPattern(kind, general))


def step(index: int, command: str, observation: str = "", **fields: object) -> Step:
    """A step of a shell agent; *fields* as of `Step`."""
    return Step(index, "", Action("bash", command), observation, **fields)  # type: ignore[arg-type]


def run(commands: Sequence[tuple[str, str, int]], **fields: object) -> RawTrajectory:
    """A run of (command, output, exit code); *fields* as of `RawTrajectory`."""
    steps = tuple(
        step(index, command, output, exit_code=code)
        for index, (command, output, code) in enumerate(commands)
    )
    given = {
        "source_format": "test",
        "instance_id": "acme__shop-1",
        "repo": "acme/shop",
        "task": "Totals are wrong when a tariff is missing",
        "steps": steps,
        **fields,
    }
    return RawTrajectory(**given)  # type: ignore[arg-type]


def recovering_run(number: int = 1, **fields: object) -> RawTrajectory:
    """A run that meets a missing module, sets the path, and gets over it."""
    return run(
        [
            ("ls", "README.md\nreproduce.py\nlib", 0),
            ("python reproduce.py", NO_MODULE, 1),
            ("PYTHONPATH=lib python reproduce.py", "total: 12\n", 0),
        ],
        **{"instance_id": f"acme__shop-{number}", **fields},
    )


def detouring_run(number: int = 1, **fields: object) -> RawTrajectory:
    """A run that looks around before it gets over its missing module: it could be spared that."""
    return run(
        [
            ("python reproduce.py", NO_MODULE, 1),
            ("ls", "README.md\nreproduce.py\nlib", 0),
            ("PYTHONPATH=lib python reproduce.py", "total: 12\n", 0),
        ],
        **{"instance_id": f"acme__shop-{number}", **fields},
    )


def installing_run(number: int) -> RawTrajectory:
    """A run that installs a missing module of its own."""
    missing = NO_MODULE.replace("tariffs", f"mod{number}")
    return run(
        [
            ("python reproduce.py", missing, 1),
            (f"pip install mod{number}", "Successfully installed", 0),
            ("python reproduce.py", "total: 12\n", 0),
        ],
        instance_id=f"acme__shop-{number}",
    )


def trajectory(number: int = 1, **fields: object) -> Trajectory:
    """A remembered run; *fields* as of `Trajectory`."""
    given = {
        "id": f"trj_{number:024x}",
        "instance_id": f"acme__shop-{number}",
        "repo": "acme/shop",
        "task": "Totals are wrong when a tariff is missing",
        "task_type": TaskType.BUG_FIX,
        "outcome": Outcome.UNKNOWN,
        "exit_status": None,
        "total_steps": 3,
        "summary": "",
        "files": (),
        "agent": "",
        "model": "",
        "source_format": "test",
        "source": "",
        "run_at": None,
        "learned_at": NOON,
        **fields,
    }
    return Trajectory(**given)  # type: ignore[arg-type]


def recovery(number: int = 1, **fields: object) -> RecoveryCandidate:
    """A verified recovery from a missing module; *fields* as of `Recovered`."""
    error = ErrorPattern(
        id="err_1",
        family=Family.PYTHON_EXCEPTION,
        error_type="ModuleNotFoundError",
        template="No module named <name>",
        keywords=("tariffs",),
        context="No module named 'tariffs'",
    )
    given = {
        "fragment_id": f"frg_{number:024x}",
        "error_id": error.id,
        "error_step": 1,
        "cleared_step": 3,
        "message": "No module named 'tariffs'",
        "location": "/shop/reproduce.py:1",
        "actions": (SET_PATH,),
        "verified": True,
        "workaround": False,
        **fields,
    }
    return recovery_of(Recovered(**given), error, trajectory(number))  # type: ignore[arg-type]


def recovery_of(recovered: Recovered, error: ErrorPattern, run: Trajectory) -> RecoveryCandidate:
    """Return the candidate that a store has for a recovery of *run*."""
    return RecoveryCandidate(
        **asdict(recovered),
        words=scored_words(
            recovered.message, describe_remedy(recovered.actions), recovered.actions
        ),
        family=error.family,
        error_type=error.error_type,
        template=error.template,
        trajectory_id=run.id,
        instance_id=run.instance_id,
        repo=run.repo,
        contributor=run.contributor,
        agent=run.agent,
        seen_at=run.seen_at,
    )
