"""The last step: a language model puts methodologies into words.

It is asked outside of all transactions, and everything is whole without it: where it is slow, fails
or may not be asked, the template's words stand, and the next consolidation asks again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from contextgraph.consolidation.abstracting import Abstraction, Taught
from contextgraph.consolidation.asking import Answers, Reworded, asked
from contextgraph.consolidation.tallies import Tally
from contextgraph.consolidation.wording import GroupEditor, is_to_word, unworded, waiting, worded
from contextgraph.embedding import Tenure
from contextgraph.model import NO_USAGE, Methodology, Wording, WordingPlan, Words
from contextgraph.ports import LearntStore


@dataclass(frozen=True, slots=True)
class Rewording:
    """Lets *editor* word the methodologies of *store* that are not in its words."""

    store: LearntStore
    abstraction: Abstraction
    editor: GroupEditor

    def plan(self) -> WordingPlan:
        """What a consolidation would ask now, at most: merging may leave less."""
        changed = self.store.unconsolidated()
        known = self._stale()
        errors = {*changed.error_ids, *(one.error_id for one in known if one.error_id)}
        repos = {*changed.repos, *(one.repo for one in known if one.repo and not one.error_id)}
        usage, prompts = NO_USAGE, []
        for group, methodology in self.abstraction.taught(sorted(errors), sorted(repos)):
            if is_to_word(methodology, self.editor):
                prompts.append(self.editor.prompt(group))
                usage += self.editor.estimate(group)
        return WordingPlan(self.editor.name, tuple(prompts), usage)

    def word(
        self, tally: Tally, tenure: Tenure, done: Reworded, within: timedelta | None = None
    ) -> None:
        """Ask about all that are to be worded; begin no more requests after *within*."""
        todo = list(self._todo())
        tally.examined = len(todo)
        ask = partial(self._reword, hurried=within is not None)
        for batch, answers in asked(todo, ask, done, within):
            tenure.renew()
            tally.updated += self._write(batch, answers, done)

    def _stale(self) -> list[Methodology]:
        known = self.store.methodologies_of(self.store.methodology_ids())
        return [one for one in known if is_to_word(one, self.editor)]

    def _todo(self) -> Iterator[Taught]:
        stale = {one.id: one for one in self._stale()}
        errors = sorted({one.error_id for one in stale.values() if one.error_id})
        repos = sorted({one.repo for one in stale.values() if one.repo and not one.error_id})
        for group, methodology in self.abstraction.taught(errors, repos):
            if methodology.id in stale:
                yield group, stale[methodology.id]

    def _reword(self, taught: Taught, *, hurried: bool) -> Wording[Words]:
        return self.editor.reword(taught[0], hurried=hurried)

    def _write(self, batch: Sequence[Taught], answers: Answers[Words], done: Reworded) -> int:
        """Write what came of a batch; how many were worded.

        What changed while the model thought, or is gone, is left alone.
        """
        now = {one.id: one for one in self.store.methodologies_of([m.id for _, m in batch])}
        changed, count = [], 0
        for (_, before), answer in zip(batch, answers, strict=True):
            if now.get(before.id) != before:
                continue
            if answer is None:
                done.waiting += 1
                after = waiting(before, self.editor)
            elif answer.words is None:
                after = unworded(before, self.editor)
            else:
                after = worded(before, answer.words, self.editor)
                count += 1
            if after != before:
                changed.append(after)
        if changed:
            self.store.put_methodologies(changed, (), (), ())
        return count
