"""Effect of notes on answers: ``python -m benchmarks.notes_in_answers contextbench/ runs.jsonl``.

Of each corpus (recorded runs, or past tasks as `contextgraph evaluate --related` reads them) the
tasks are divided by a hash. Some are learned. Of others people could say: where something is done
(the title of the task, and up to two files that its patch changed), how tests are run, what was
installed; these become notes. The rest asks. An answer at the start is right if its text names a
file that the patch of the asking task changes and its text does not name; with the channel of notes
and without it, on the same memory. Prints how often notes are shown and right as well.
"""

import argparse
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from contextgraph.advising.channels import CHANNELS
from contextgraph.advising.gate import TWO_SIDED, wilson
from contextgraph.advising.wording import render
from contextgraph.evaluation.judging import files_to_find, read_related
from contextgraph.evaluation.measures import Share, difference
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import ActionKind, Outcome, RawTrajectory, State
from contextgraph.readers import read
from contextgraph.trace import facts_of, files_changed, files_created, read_steps

LEARNED, NOTED = 35, 70
_FILES = 2


class Comparison(NamedTuple):
    """Whether the answer names a right file, without and with notes; notes *shown*, and right."""

    without: bool
    with_notes: bool
    shown: int
    right: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notes_in_answers")
    parser.add_argument("paths", nargs="+", type=Path, help="recorded runs, or a folder of tasks")
    parser.add_argument("--embedder", default="", help="such as local; by default words decide")
    options = parser.parse_args()
    for path in options.paths:
        tasks = [*_tasks(path)]
        with AgentMemory.open(":memory:", embedder=options.embedder or None) as memory:
            _fill(memory, tasks)
            answers_of = {
                raw.instance_id: _compared(memory, raw, files)
                for raw in tasks
                if _part(raw) >= NOTED and (files := files_to_find(raw))
            }
        _print(path.name, answers_of)


def _tasks(path: Path) -> Iterator[RawTrajectory]:
    if (path / "qrels.json").exists():
        yield from read_related(path)[0]
    else:
        yield from read(path, on_error=print, on_skip=print)


def _part(raw: RawTrajectory) -> int:
    return int.from_bytes(blake2b(f"n{raw.instance_id}".encode(), digest_size=8).digest()) % 100


def _fill(memory: AgentMemory, tasks: Sequence[RawTrajectory]) -> None:
    for _ in memory.learn_many(raw for raw in tasks if _part(raw) < LEARNED):
        pass
    for raw in tasks:
        if LEARNED <= _part(raw) < NOTED:
            for text in _statements(raw):
                memory.notes.remember(text, repo=raw.repo)
    memory.maintain()


def _statements(raw: RawTrajectory) -> Iterator[str]:
    """Return a note that people of the project could write after the task of *raw*."""
    facts, patch = facts_of(raw, read_steps(raw)), raw.patch or ""
    if raw.outcome is Outcome.SOLVED or not raw.steps:  # a patch of people, or one that passed
        changed = [file for file in files_changed(patch) if file not in files_created(patch)]
        for file in changed[:_FILES]:
            symbols = ", ".join(facts.symbols.get(file, ())[:2])
            yield f"{_title(raw)}: that is done in {file}" + (f" ({symbols})" if symbols else "")
    for use in facts.commands:
        if use.ran and use.kind is ActionKind.TEST:
            yield f"run the tests with `{use.runner}`"
        if use.ran and use.kind is ActionKind.INSTALL:
            yield f"for the set-up run `{use.text}`"


def _title(raw: RawTrajectory) -> str:
    return raw.task.strip().partition("\n")[0][:150]


def _compared(memory: AgentMemory, raw: RawTrajectory, files: frozenset[str]) -> Comparison:
    state = State(repo=raw.repo, task_description=raw.task)
    texts, shown = [], []
    channels = memory.retriever.channels
    for used in ({name: channels[name] for name in CHANNELS}, channels):
        memory.retriever.channels = used
        context = memory.query(state, exclude_instances=[raw.instance_id])
        texts.append(render(context))
        shown = [
            recalled.note.content
            for recalled in context.notes
            if recalled.note.content[:60] in texts[-1]
        ]
    without, with_notes = (any(file in text for file in files) for text in texts)
    right = sum(any(file in text for file in files) for text in shown)
    return Comparison(without, with_notes, len(shown), right)


def _print(name: str, answers_of: dict[str, Comparison]) -> None:
    total, shown = len(answers_of), sum(answer.shown for answer in answers_of.values())
    right, answers = (
        sum(answer.right for answer in answers_of.values()),
        sum(map(_shows, answers_of.values())),
    )
    low, high = wilson(right, shown, TWO_SIDED)
    print(f"{name}: {shown} notes in {answers} of {total} answers, {right} of them right")
    print(f"  precision {right / max(1, shown):.2f} ({low:.2f} to {high:.2f})")
    pairs = {
        instance: (Share(it.without, 1), Share(it.with_notes, 1))
        for instance, it in answers_of.items()
    }
    gain = difference(pairs, seed=0)
    before, after = (sum(pair[at].amount for pair in pairs.values()) for at in (0, 1))
    print(f"  answers that name a right file: {before} without notes, {after} with them")
    print(f"  difference {gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})")


def _shows(comparison: Comparison) -> bool:
    return comparison.shown > 0


if __name__ == "__main__":
    main()
