"""What the arms of an experiment show to the agent."""

import random
from collections.abc import Iterable, Sequence

from contextgraph.experiment.journal import Shown
from contextgraph.integrations.mini_swe_agent import Advisor
from contextgraph.memory import AgentMemory
from contextgraph.model import RawTrajectory
from contextgraph.text import count_tokens

NONE, PLACEBO, GREP, MEMORY = ARMS = ("none", "placebo", "grep", "memory")
ADVISED = (PLACEBO, MEMORY)

_LOGS = (
    "\n\nLogs of earlier runs of an agent, some of them in this repository, are in {folder}: one"
    " plain text file for each run. Search them with grep; they may hold what this task needs."
)


class Watched:
    """An advisor whose texts are noted in `shown`, and whose run is not learned.

    With *placebos*, these are shown instead of its texts, about as many tokens; by *seed*.
    """

    def __init__(
        self, advisor: Advisor, placebos: Sequence[str] | None = None, seed: str = ""
    ) -> None:
        self.shown: list[Shown] = []
        self._advisor = advisor
        self._steps = 0
        self._placebos = (
            None if placebos is None else [(placebo, count_tokens(placebo)) for placebo in placebos]
        )
        random.Random(seed).shuffle(self._placebos or [])

    def start(self) -> str:
        """As `Advisor.start`."""
        return self._noted(self._advisor.start()) or ""

    def observe(
        self, action: str, observation: str, *, exit_code: int | None = None, thought: str = ""
    ) -> str | None:
        """As `Advisor.observe`."""
        self._steps += 1
        return self._noted(
            self._advisor.observe(action, observation, exit_code=exit_code, thought=thought)
        )

    def check_submit(self) -> str | None:
        """As `Advisor.check_submit`."""
        return self._noted(self._advisor.check_submit())

    def finish(self, *, exit_status: str | None = None, patch: str | None = None) -> None:
        """Nothing: all attempts are to find the same memory."""

    def _noted(self, text: str | None) -> str | None:
        if text and self._placebos is not None:
            text = self._placebo(count_tokens(text))
        if text:
            self.shown.append(Shown(self._steps, text, count_tokens(text)))
        return text

    def _placebo(self, tokens: int) -> str:
        """Placebos that were not shown yet, until they have about as many *tokens*."""
        assert self._placebos is not None
        chosen: list[str] = []
        while self._placebos:
            best = min(self._placebos, key=lambda placebo: abs(placebo[1] - tokens))
            if chosen and abs(best[1] - tokens) >= tokens:  # farther off than to stop here
                break
            self._placebos.remove(best)
            chosen.append(best[0])
            tokens -= best[1]
        return "\n".join(chosen)


def advice_for(memory: AgentMemory, runs: Iterable[RawTrajectory]) -> Sequence[str]:
    """All that *memory* shows while *runs* are repeated."""
    texts: list[str | None] = []
    for raw in runs:
        live = memory.live(repo=raw.repo, instance_id=raw.instance_id, task=raw.task)
        texts.append(live.start())
        texts += [
            live.observe(step.action, step.observation or "", exit_code=step.exit_code)
            for step in raw.steps
        ]
    return [text for text in texts if text]


def with_logs(task: str, folder: str) -> str:
    """*task* as the arm that may search earlier logs is given it."""
    return task + _LOGS.format(folder=folder)


def plain_log(raw: RawTrajectory) -> str:
    """A run as plain text: the task, then each command with its output."""
    parts = [f"repository: {raw.repo}\noutcome: {raw.outcome}\n\n{raw.task}\n"]
    for step in raw.steps:
        thought = f"{step.thought.strip()}\n" if step.thought.strip() else ""
        parts.append(f"{thought}$ {step.action.text}\n{step.observation or ''}")
    return "\n".join(parts)
