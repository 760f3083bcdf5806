"""The space of a memory: which it is, whether it works, and how to change it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from contextgraph.embedding.catalogue import Catalogue, NeuralEmbedder
from contextgraph.embedding.fitting import calibrate, refit, take_over
from contextgraph.embedding.lease import alone
from contextgraph.embedding.runs import texts_of
from contextgraph.embedding.tfidf import MAKER, is_fitted
from contextgraph.errors import EmbeddingError, StoreError
from contextgraph.model import NO_USAGE, HealthCheck, Space, Usage, methodology_text
from contextgraph.ports import EmbedderSource, GraphStore
from contextgraph.remote import ENDURING

REEMBED = "contextgraph reembed"
_RUNS_AT_ONCE = 256
_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class ReembeddingPlan:
    """What `SpaceKeeper.reembed` would do: *runs* still to embed, all *texts*, at most *usage*.

    *space* is ``tfidf`` where the model has yet to be fitted.
    """

    space: str
    runs: int
    texts: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Reembedding:
    """What was done: *runs* were embedded, which took *usage*, and *space* answers now."""

    space: Space
    runs: int
    usage: Usage


class SpaceKeeper:
    """Looks after the space of a memory; *chosen* is the name of the embedder configured, or "".

    *asking* is what queries embed with.
    """

    def __init__(
        self,
        store: GraphStore,
        catalogue: Catalogue,
        chosen: str,
        asking: EmbedderSource,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._chosen = chosen
        self._asking = asking
        self._now = now

    def plan(self, name: str = "") -> ReembeddingPlan:
        """What `reembed` to the embedder of *name* would take; nothing is embedded."""
        target = self._target(name)
        space = target.space if target else None
        runs, texts, usage, after = 0, 0, NO_USAGE, ""
        while found := self._store.texts_to_embed(_RUNS_AT_ONCE, space, after):
            told = [text for run in found for text in texts_of(run)]
            runs, texts, after = runs + len(found), texts + len(told), found[-1].trajectory_id
            usage += target.estimate(told) if target else NO_USAGE
        advice = [*map(methodology_text, self._store.methodologies_to_embed(_ALL, space))]
        usage += target.estimate(advice) if target else NO_USAGE
        return ReembeddingPlan(space or MAKER, runs, texts + len(advice), usage)

    def reembed(
        self,
        name: str = "",
        told: Callable[[int], None] = lambda runs: None,
        waiting: Callable[[datetime], None] = lambda until: None,
    ) -> Reembedding:
        """Embed all runs by the embedder of *name*, then let it answer; "": the one configured.

        *told* hears how many runs more are embedded; *waiting* until when another process is at
        work at most. What is interrupted goes on where it was. Raises `EmbeddingError` where the
        embedder fails: until it is done, the space of before answers.
        """
        done = 0

        def count(runs: int) -> None:
            nonlocal done
            done += runs
            told(runs)

        with alone(self._store, self._now, waiting):
            target = self._target(name)
            usage = self._move_to(target, count) if target else self._fit(count)
        active = self._store.active_space()
        assert active is not None  # it was switched over to just now
        return Reembedding(active, done, usage)

    def waiting(self) -> int:
        """How many runs have no vectors in the space that answers."""
        active = self._store.active_space()
        if active is None:
            return 0
        count, after = 0, ""
        while found := self._store.texts_to_embed(_RUNS_AT_ONCE, active.name, after):
            count, after = count + len(found), found[-1].trajectory_id
        return count

    def remark(self) -> str:
        """What should be known about a configuration that is not the memory's; "" where it is."""
        active = self._store.active_space()
        if not self._chosen or active is None:
            return ""
        target = self._catalogue.named(self._chosen)
        is_so = target.space == active.name if target else is_fitted(active.name)
        if is_so:
            return ""
        return (
            f"{self._chosen} is configured, but the space of the memory is {active.name}, which "
            f"goes on answering until: {REEMBED}"
        )

    def health(self) -> Iterator[HealthCheck]:
        """Whether texts can be embedded now; asks the embedder to embed one word.

        Nothing where the store is ill: that is said by its own checks.
        """
        try:
            yield self._check()
        except EmbeddingError as error:
            yield HealthCheck("embedding", False, str(error), "see docs/embedding.md")
        except StoreError:
            return

    def close(self) -> None:
        """Release connections to models."""
        self._catalogue.endpoint.close()

    def _check(self) -> HealthCheck:
        remark = self.remark()
        if remark:
            return HealthCheck("embedding", False, remark, REEMBED)
        embedder = self._asking()
        if embedder is None:
            return HealthCheck("embedding", True, self._before_the_first())
        embedder.embed(["doctor"])
        alike = embedder.alike
        bound = f"from {alike:.2f} on" if alike else "not calibrated yet, alone it admits nothing"
        return HealthCheck("embedding", True, f"{embedder.space}; likeness: {bound}")

    def _before_the_first(self) -> str:
        if self._chosen:
            return f"no space yet; it will be {self._chosen}"
        return f"no space yet; from 16 runs on consolidation makes one of {MAKER}"

    def _target(self, name: str) -> NeuralEmbedder | None:
        return self._catalogue.named(name or self._chosen or MAKER, ENDURING)

    def _move_to(self, target: NeuralEmbedder, told: Callable[[int], None]) -> Usage:
        active = self._store.active_space()
        if active is None or active.name != target.space:
            self._store.prepare_space(Space(target.space, 0), None)
        usage = take_over(self._store, target, told)
        calibrate(self._store, target)
        return usage

    def _fit(self, told: Callable[[int], None]) -> Usage:
        refit(self._store, told)
        return NO_USAGE
