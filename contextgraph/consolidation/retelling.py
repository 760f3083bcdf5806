"""A language model tells runs again, beside what a rule made of their logs.

What the rule made stays what is searched, compared and embedded: it is the same for everyone, and
there for every run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from contextgraph.consolidation.asking import BATCH, Answers, Reworded, asked
from contextgraph.consolidation.tallies import Tally
from contextgraph.embedding import Tenure
from contextgraph.model import NO_USAGE, Retelling, RunWords, Story, WordingPlan, story_of
from contextgraph.ports import Editor, RetellingStore, TrajectoryStore


class ToldStore(TrajectoryStore, RetellingStore, Protocol):
    """What telling runs again takes."""


@dataclass(frozen=True, slots=True)
class Reteller:
    """Lets *editor* tell the runs of *store* again that it has not told, the newest first."""

    store: ToldStore
    editor: Editor[Story, RunWords]

    def plan(self) -> WordingPlan:
        """What it would ask about; nothing is sent."""
        usage, first, count = NO_USAGE, "", 0
        for batch in _batches(self.store.runs_to_retell(self.editor.name)):
            for story in self._stories(batch):
                usage += self.editor.estimate(story)
                first = first or self.editor.prompt(story)
                count += 1
        return WordingPlan("", (), usage, self.editor.name, count, first)

    def tell(self, tally: Tally, tenure: Tenure, done: Reworded) -> None:
        """Ask about all of them; what came of each batch is written before the next is asked."""
        ids = self.store.runs_to_retell(self.editor.name)
        tally.examined = len(ids)
        for batch in _batches(ids):
            stories = self._stories(batch)
            for told, answers in asked(stories, self.editor.reword, done):
                tenure.renew()
                tally.updated += self._write(told, answers)
            if done.reason:
                break
        done.runs_waiting = len(self.store.runs_to_retell(self.editor.name)) if done.reason else 0

    def _stories(self, ids: Sequence[str]) -> list[Story]:
        """Those runs that are there still."""
        fragments = self.store.fragments_of(ids)
        found = ((one, self.store.trajectory(one)) for one in ids)
        return [story_of(run, fragments[one]) for one, run in found if run]

    def _write(self, told: Sequence[Story], answers: Answers[RunWords]) -> int:
        """Keep what was said; how many runs were told again.

        Runs that tell something else by now, or are gone, are left alone.
        """
        now = {story.fingerprint for story in self._stories([one.trajectory.id for one in told])}
        given: dict[str, Retelling] = {}
        for story, answer in zip(told, answers, strict=True):
            if answer is not None and story.fingerprint in now:
                words = answer.words or RunWords("", {})
                given[story.trajectory.id] = Retelling(
                    self.editor.name, story.fingerprint, words.summary, words.descriptions
                )
        if given:
            self.store.put_retellings(given)
        return sum(bool(one.summary) for one in given.values())


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))
