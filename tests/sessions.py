"""Hand-written runs of an agent with a windowed editor, step by step."""

from contextgraph.model import Action, RawTrajectory, Step
from contextgraph.trace import Recovery, StepTrace, read_steps, trace

HOME = "/shop"


class Session:
    """A run in the making; every verb adds one step."""

    def __init__(self, open_file: str | None = None) -> None:
        self.steps: list[Step] = []
        self.open_file = open_file
        if open_file:
            self.open(open_file)

    def do(self, text: str, observation: str | None = "", thought: str = "") -> "Session":
        index = len(self.steps)
        action = Action(text.split(maxsplit=1)[0], text)
        shown = f"{HOME}/{self.open_file}" if self.open_file else None
        step = Step(index, thought, action, observation, cwd=HOME, open_file=shown)
        self.steps.append(step)
        return self

    def open(self, path: str, *lines: str) -> "Session":
        self.open_file = path
        return self.do(f"open {path}", window(path, lines))

    def refused(self, first: int, last: int, *lines: str, why: str) -> "Session":
        return self.do(edit(first, last, lines), refusal(why))

    def edited(self, first: int, last: int, *lines: str) -> "Session":
        shown = window(self.open_file or "", lines)
        return self.do(
            edit(first, last, lines), f"{shown}\nFile updated. Please review the changes"
        )

    def failed(self, command: str, error: str, *, at: int = 3, file: str = "core.py") -> "Session":
        return self.do(command, traceback(error, file, at))

    def worked(self, command: str, output: str = "ok") -> "Session":
        return self.do(command, output)

    def raw(self, system_prompt: str = "") -> RawTrajectory:
        return RawTrajectory(
            "test",
            "acme__shop-1",
            "acme/shop",
            "Prices are rounded wrongly",
            tuple(self.steps),
            system_prompt=system_prompt,
        )

    def read(self) -> tuple[StepTrace, ...]:
        return tuple(read_steps(self.raw()))

    def recoveries(self) -> list[Recovery]:
        """Return how errors were cleared or left behind, in the order of the errors."""
        read = trace(self.raw())
        ends = (*read.recoveries, *read.left_behind)
        return sorted(ends, key=lambda end: (end.error_step, end.cleared_step))


def edit(first: int, last: int, lines: tuple[str, ...]) -> str:
    return "\n".join((f"edit {first}:{last}", *lines, "end_of_edit"))


def refusal(why: str) -> str:
    return (
        "Your proposed edit has introduced new syntax error(s). Please read this error message "
        f"carefully and then retry editing the file.\n\nERRORS:\n- {why}\n"
    )


def window(path: str, lines: tuple[str, ...]) -> str:
    numbered = "\n".join(f"{number}:{line}" for number, line in enumerate(lines, 1))
    return f"[File: {HOME}/{path} ({len(lines)} lines total)]\n{numbered}"


def traceback(error: str, file: str = "core.py", line: int = 3) -> str:
    return (
        "Traceback (most recent call last):\n"
        f'  File "{HOME}/{file}", line {line}, in <module>\n    total()\n{error}'
    )
