"""A run in progress: its advice, and the steps that it takes in."""

from contextgraph.agents.live import LiveRun
from contextgraph.model import Action, Json
from contextgraph.service.operations import Record, TokenScope, operation
from contextgraph.service.operations.arguments import LongText, Text, ToolBody

PATH = "/v1/runs/live/{identity}"
_NO_TEXT: Json = {"text": None}


def _action(given: str | ToolBody) -> str | Action:
    return given if isinstance(given, str) else given.action()


@operation(TokenScope.WRITE, f"POST {PATH}/start", answer={"text": ""})
def start(run: LiveRun) -> Record:
    """Return advice for the first prompt, empty where nothing is known."""
    return {"text": run.start()}


@operation(TokenScope.WRITE, f"POST {PATH}/before", example={"action": "pytest tests/"})
def before(run: LiveRun, action: Text | ToolBody) -> Record:
    """Return what to know before an action is taken; null for nothing.

    An action is a command line, or the call of another tool.
    """
    return {"text": run.before(_action(action))}


@operation(
    TokenScope.WRITE, f"POST {PATH}/prompt", example={"text": "Totals must include the tariff"}
)
def prompt(run: LiveRun, text: Text) -> Record:
    """Return what people decided about what a person asks for in the run; null for nothing."""
    return {"text": run.prompt(text)}


@operation(
    TokenScope.WRITE,
    f"POST {PATH}/observe",
    example={
        "action": "python reproduce.py",
        "observation": "ModuleNotFoundError: No module named 'tariffs'",
        "exit_code": 1,
    },
    answer=_NO_TEXT,
)
def observe(
    run: LiveRun,
    action: Text | ToolBody,
    observation: LongText,
    exit_code: int | None = None,
    thought: Text = "",
) -> Record:
    """Take in a step; return advice where it met a new error or got stuck in a loop, else null."""
    return {"text": run.observe(_action(action), observation, exit_code=exit_code, thought=thought)}


@operation(TokenScope.WRITE, f"POST {PATH}/check_submit", answer=_NO_TEXT)
def check_submit(run: LiveRun) -> Record:
    """Return what seems to be missing before the agent submits; null for nothing."""
    return {"text": run.check_submit()}
