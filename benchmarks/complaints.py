"""``python -m benchmarks.complaints --sessions FOLDER --read FOLDER``: edits that people put right.

FOLDER are logs of sessions of one team, and ``requests/`` and ``answers/`` of readers who wrote
down their lessons. Each turn of an agent with an edit is checked against what was learned of the
sessions before, as at the end of a turn and by `contextgraph check`. ``judged/complaints.jsonl``
names the turns that the person then put right; the others are controls. With ``--model`` the
lessons of the readers are accepted. ``--judge FOLDER`` adds a language model: what it would be
asked is written into ``requests/`` of this folder, and its answers are read from ``answers/``.
Without ``--held`` the last third of the sessions is not measured.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.corpus import sessions_of
from benchmarks.moments import REPO, answers_in, digest_of, keep_read, moments, steps_of, tuned_part
from contextgraph import AgentMemory, RawTrajectory
from contextgraph.inference.chat import prompt_text
from contextgraph.knowledge.broken import Work, broken_by, may_be_broken
from contextgraph.knowledge.check import Checker
from contextgraph.knowledge.judging import PROMPT, Judge, request_name
from contextgraph.model import is_subagent
from contextgraph.model.values import replace
from contextgraph.trace import read_steps
from contextgraph.trace.steps import Change, StepTrace, is_edit

_LABELS = Path(__file__).parent / "judged" / "complaints.jsonl"
_JUDGE, _OF = "judge", 40


class Checked(NamedTuple):
    """A turn with an edit, and what was found by words and by a judge.

    *is_complaint*: a person put it right; *is_known*: so that an earlier lesson says it;
    *is_shown*: the log has the text of an edit.
    """

    session: str
    turn: int
    is_complaint: bool
    is_known: bool
    is_shown: bool
    words: Sequence[str]
    judged: Sequence[str]


class Answers:
    """The answers to the requests in a *folder*; a request without one is answered by nothing."""

    def __init__(self, folder: Path) -> None:
        self._requests, self._answers = folder / "requests", folder / "answers"
        self.asked, self.answered = 0, 0
        self._requests.mkdir(parents=True, exist_ok=True)

    def __call__(self, text: str) -> str:
        name = request_name(text)
        (self._requests / f"{name}.txt").write_text(text, "utf-8")
        answer = self._answers / f"{name}.json"
        self.asked += 1
        self.answered += answer.exists()
        return answer.read_text("utf-8") if answer.exists() else "[]"


def complaints() -> dict[tuple[str, int], bool]:
    """Session and turn of an edit that was put right -> whether an earlier lesson says so."""
    corrected = {
        (one.session, one.turn - 1) for of in moments().values() for one in of if one.is_corrected
    }
    rows = map(json.loads, _LABELS.read_text("utf-8").splitlines())
    keys = ((row["session"], row["turn"]) for row in rows)
    return {key: key in corrected for key in keys}


def turns_of(run: RawTrajectory) -> Iterator[list[StepTrace]]:
    """Yield the steps after each message of the person."""
    steps = [*read_steps(run)]
    ends = [index + 1 for index in steps_of(run)]
    for begin, end in zip(ends, [*ends[1:], len(steps)], strict=True):
        yield steps[begin:end]


def patch_of(changes: Sequence[Change]) -> str:
    """Return *changes* as a unified diff."""
    lines = list[str]()
    for change in changes:
        removed, added = len(change.removed), len(change.added)
        lines += [f"--- a/{change.file}", f"+++ b/{change.file}", f"@@ -1,{removed} +1,{added} @@"]
        lines += [f"-{line}" for line in change.removed] + [f"+{line}" for line in change.added]
    return "\n".join(lines)


def checked(
    memory: AgentMemory,
    run: RawTrajectory,
    labels: Mapping[tuple[str, int], bool],
    judge: Judge | None,
) -> Iterator[Checked]:
    """Yield the turns of *run* with an edit, checked against *memory*."""
    with TemporaryDirectory() as root:
        checker = Checker(memory.lessons, memory.store.runs, root, run.repo)
        rules = [*filter(may_be_broken, checker.active)]
        for number, turn in enumerate(turns_of(run)):
            changes = Work(turn).changes
            if not any(is_edit(step) and step.succeeded for step in turn):
                continue
            words = [str(one) for one in broken_by(turn, rules)]
            found = checker.change(patch_of(changes), (), judge) if judge and changes else ()
            judged = [one.message for one in found if judge and one.by == judge.name]
            key = (run.instance_id, number)
            known = labels.get(key, False)
            yield Checked(*key, key in labels, known, bool(changes), words, judged)


def report(found: Sequence[Checked]) -> str:
    """Return how many turns are flagged, of those that were put right and of the others."""
    wrong = [one for one in found if one.is_complaint]
    lines = []
    for name, some in (
        ("put right", wrong),
        ("where an earlier lesson says so", [one for one in wrong if one.is_known]),
        ("others", [one for one in found if not one.is_complaint]),
    ):
        shown = sum(one.is_shown for one in some)
        words, judged = sum(bool(one.words) for one in some), sum(bool(one.judged) for one in some)
        flagged = sum(bool(one.words or one.judged) for one in some)
        share = _OF * flagged / max(1, len(some))
        lines.append(
            f"{name}: {len(some)}, of {shown} the text of the edit is known; {flagged} flagged"
            f" (of {_OF}: {share:.1f}), {words} by words, {judged} by the judge"
        )
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.complaints", description=__doc__)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--read", type=Path, required=True)
    parser.add_argument("--model", action="store_true", help="with the lessons of readers")
    parser.add_argument("--judge", type=Path, help="requests to a model, and its answers")
    parser.add_argument("--held", action="store_true", help="measure the last third alone")
    parser.add_argument("--sheet", type=Path, help="write what was found")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = _options()
    answers, labels = answers_in(options.read), complaints()
    runs = [replace(run, repo=REPO) for run in sessions_of(options.sessions)]
    tuned = tuned_part(runs, answers)
    asked = Answers(options.judge) if options.judge else None
    judge = Judge(_JUDGE, prompt_text(PROMPT), asked) if asked else None
    began, found, known = time.process_time(), list[Checked](), set[str]()
    with AgentMemory.open(":memory:") as memory:
        for run in runs:
            is_first = run.instance_id not in known and not is_subagent(run.agent)
            is_read = is_first and run.instance_id in answers
            if is_read and (run.instance_id in tuned) != options.held:
                found += checked(memory, run, labels, judge)
            if is_first:
                known.add(run.instance_id)
            receipt = memory.learn(run)
            if options.model and is_read:
                keep_read(memory, run, receipt.trajectory_id, answers[run.instance_id])
    print(report(found))
    if options.model:
        print(f"with the lessons of readers to the requests {digest_of(options.read)}")
    if asked:
        print(f"{asked.answered} of {asked.asked} requests to the judge are answered")
    print(f"{time.process_time() - began:.0f} s of CPU")
    if options.sheet:
        lines = [
            f"{one.session} {one.turn}{' put right' * one.is_complaint}\n" + "\n".join(said)
            for one in found
            if (said := [*one.words, *one.judged])
        ]
        options.sheet.write_text("\n\n".join(lines), "utf-8")


if __name__ == "__main__":
    main()
