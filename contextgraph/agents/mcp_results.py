"""Parameters and results of the tools. Advice is in ``text`` only.

Claude Code and VS Code show an agent the structured result and not the plain text beside it, so
nothing is in it that the gate of the memory holds back.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from contextgraph.model import (
    Action,
    Outcome,
    Remedy as AdvisedRemedy,
    Step,
)
from contextgraph.text import clip
from contextgraph.trace import StepTrace, command_lines

ACTION_CHARS, OBSERVATION_CHARS = 20_000, 100_000
_TITLE_CHARS, _TEXT_CHARS, _FILES = 200, 1_500, 10


def _first(files: Sequence[str]) -> list[str]:
    return [*files[:_FILES]]


Title = Annotated[str, AfterValidator(lambda text: clip(text, _TITLE_CHARS, at="end"))]
Long = Annotated[str, AfterValidator(lambda text: clip(text, _TEXT_CHARS))]
Share = Annotated[float, AfterValidator(lambda share: round(share, 4))]


class TakenStep(BaseModel):
    """A step of the agent, as `check_loop` and `check_submit` take it."""

    model_config = ConfigDict(extra="forbid")

    action: Annotated[str, Field(max_length=ACTION_CHARS, description="The command line.")]
    observation: Annotated[
        str, Field(max_length=OBSERVATION_CHARS, description="Its output; the end is enough.")
    ] = ""
    exit_code: int | None = None

    def at(self, index: int) -> Step:
        """It as the step *index* of a run."""
        action = Action("bash", self.action, {"command": self.action})
        return Step(index, "", action, self.observation, exit_code=self.exit_code)


class Result(BaseModel):
    """A part of a result; its fields are attributes of a value of `contextgraph.model`."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def each(cls, values: Iterable[object]) -> list[Self]:
        """The results of *values*."""
        return [cls.model_validate(value) for value in values]


class Remedy(Result):
    """Something that cleared the error, in so many *runs*."""

    id: str
    actions: list[str]
    probability: Share
    runs: int

    @classmethod
    def of(cls, item: AdvisedRemedy) -> Self:
        """The remedy of an item of an answer."""
        return cls(
            id=item.id,
            actions=[*command_lines(item.actions)],
            probability=item.probability,
            runs=item.why.support,
        )


class Case(Result):
    """A past run with a similar task; `get_trajectory` shows it."""

    trajectory_id: str
    instance_id: str
    outcome: Outcome
    probability: Share


class Advice(BaseModel):
    """*text* is the advice, empty for none; *context_id* is what `report_outcome` takes."""

    text: str
    context_id: str | None


class QueryAdvice(Advice):
    """What is known for a state; *degraded* says which parts of the memory did not answer."""

    remedies: list[Remedy]
    similar_runs: list[Case]
    degraded: list[str]


class Loop(Result):
    """The steps from *start* to *end* (from 0) repeat one attempt."""

    kind: str
    start: int
    end: int
    repetitions: int
    severity: str


class LoopAdvice(Advice):
    """The loop that the last step is in, null for none."""

    loop: Loop | None


class Report(Result):
    """An outcome was recorded."""

    context_id: str
    helped: bool


class Recalled(Advice):
    """Notes of people and agents, best first, as *text*; *ids* are theirs."""

    ids: list[str]


class Remembered(Result):
    """Created; same: it was known; or supersedes, or contradicts, the *others*."""

    id: str
    status: str
    others: list[str]


class KeyedEntry(Result):
    """An entry of the keyed files was set, removed or isolated."""

    key: str
    status: str


class LearnedRun(Result):
    """A run that is stored."""

    trajectory_id: str
    status: str
    fragments: int
    error_patterns: int


class Learned(Result):
    """The runs that are stored, and why other records are not."""

    runs: list[LearnedRun]
    failed: list[str]


class FoundRun(Result):
    """A run in the memory; long texts are cut."""

    id: str
    instance_id: str
    repo: str
    agent: str
    outcome: Outcome
    total_steps: int
    task: Title
    files: Annotated[list[str], BeforeValidator(_first)]


class Found(Result):
    """Runs, the best match first."""

    runs: list[FoundRun]


class Part(Result):
    """The steps from *start* to *end* of a run, and what they are about."""

    start: int
    end: int
    fragment_type: str
    description: Title


class RunStep(Result):
    """A step of a run; long texts are cut. *error* is the type of its error."""

    index: int
    action: Long
    observation: Long
    exit_code: int | None
    error: str | None

    @classmethod
    def of(cls, read: StepTrace) -> Self:
        """The step that was *read*."""
        return cls(
            index=read.index,
            action=read.step.action.text,
            observation=read.step.observation or "",
            exit_code=read.step.exit_code,
            error=read.error.error_type if read.error else None,
        )


class Run(Result):
    """A run, its parts, and some of its steps."""

    run: FoundRun
    parts: list[Part]
    steps: list[RunStep]


class File(Result):
    """A file that so many tasks *changed*; *probability* is that of being changed for this one."""

    path: str
    changed: int
    probability: Share


class Command(Result):
    """A command from the root of the repository: it *worked* in so many tasks of *tried*."""

    line: Title
    worked: int
    tried: int
    error_type: str


class Playbook(Result):
    """What *tasks* of a repository show; *text* is what at least two of them agree on."""

    text: str
    tasks: int
    files: list[File]
    tests: list[Command]
    setup: list[Command]


class How(Result):
    """How a command went in *runs*: its form, as it was typed, and what worked instead.

    *text* warns of a command that never worked.
    """

    text: str
    runs: int
    form: Command | None
    ways: list[Command]
    others: list[Command]
