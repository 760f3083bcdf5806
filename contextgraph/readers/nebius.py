"""Rows of the data set nebius/SWE-agent-trajectories."""

from collections.abc import Iterator, Sequence

from contextgraph.model import Action, Outcome, RawTrajectory, Step
from contextgraph.readers.envelopes import (
    first_word,
    task_in,
    thought_and_command,
    without_prompt,
)
from contextgraph.readers.fields import Row, rows_at, text, text_or_none
from contextgraph.readers.format import Place, repo_named
from contextgraph.text import clean

NAME = "nebius"


def recognises(record: object) -> bool:
    """Whether *record* has an instance id and a trajectory of turns with role and text."""
    if not isinstance(record, dict) or "instance_id" not in record:
        return False
    match record.get("trajectory"):
        case [dict() as turn, *_]:
            return {"role", "text"} <= turn.keys()
        case []:
            return "target" in record
    return False


def parse(record: Row, place: Place) -> RawTrajectory:
    """The run of one row. Its evaluation log is left behind: the agent did not see it.

    *cwd* and *open_file* of a step are the state after its action.
    """
    turns = rows_at(record, "trajectory")
    prompt = next((text(turn, "text") for turn in turns if turn.get("role") == "user"), "")
    patch = text(record, "generated_patch")
    instance_id = text(record, "instance_id") or place.instance_id()
    return RawTrajectory(
        source_format=NAME,
        instance_id=instance_id,
        repo=repo_named(instance_id),
        task=clean(task_in(prompt) or prompt),
        steps=tuple(_steps(turns)),
        agent="SWE-agent",
        model=text(record, "model_name"),
        outcome=_outcome(record.get("target")),
        exit_status=text_or_none(record, "exit_status"),
        patch=patch if patch.strip() else None,
        source=place.source,
        system_prompt="\n".join(
            text(t, "system_prompt") for t in turns if t.get("role") == "system"
        ),
    )


def _steps(turns: Sequence[Row]) -> Iterator[Step]:
    index = 0
    for position, turn in enumerate(turns):
        if turn.get("role") != "ai":
            continue
        answer = turns[position + 1] if position + 1 < len(turns) else {}
        yield _step(index, turn, answer if answer.get("role") == "user" else {})
        index += 1


def _step(index: int, turn: Row, answer: Row) -> Step:
    thought, command = thought_and_command(clean(text(turn, "text")))
    action = Action(first_word(command), command)
    shown = text_or_none(answer, "text")
    if shown is None:
        return Step(index, thought, action, None)
    observation, open_file, cwd = without_prompt(clean(shown))
    return Step(index, thought, action, observation, cwd=cwd, open_file=open_file)


def _outcome(target: object) -> Outcome:
    if target is None:
        return Outcome.UNKNOWN
    return Outcome.SOLVED if target is True else Outcome.FAILED
