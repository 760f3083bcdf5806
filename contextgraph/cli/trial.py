"""Runs judged under a configuration, or under several for comparison."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from contextgraph.cli.checkup import own_version
from contextgraph.cli.intake import Intake
from contextgraph.cli.options import open_memory
from contextgraph.cli.progress import Progress
from contextgraph.cli.replaying import IN_MEMORY
from contextgraph.llm import MADE_BY
from contextgraph.memory import AgentMemory
from contextgraph.model import Json, RawTrajectory
from contextgraph.replay import Evaluation, Moment, Report, report_of, sampled, split
from contextgraph.text import number_of


class Given:
    """The runs that the options name."""

    def __init__(
        self, paths: list[str] | None, learn: list[str] | None, judge: list[str] | None
    ) -> None:
        if paths and (learn or judge):
            raise typer.BadParameter("give PATH, or --learn and --judge, not both")
        self._paths, self._learn, self._judge = paths, learn, judge
        self.failed = 0

    def parts(self, share: float) -> tuple[Sequence[RawTrajectory], Sequence[RawTrajectory]]:
        """Those to learn, about *share* of what stands for both, and those to judge by."""
        taught, judging = split(self._read(self._paths), share)
        return [*taught, *self._read(self._learn)], [*judging, *self._read(self._judge)]

    def _read(self, paths: list[str] | None) -> list[RawTrajectory]:
        intake = Intake(paths or [])
        found = list(intake) if paths else []
        self.failed += intake.failed
        return found


def chosen(
    runs: Sequence[RawTrajectory], min_runs: int, max_runs: int | None, seed: int
) -> Sequence[RawTrajectory]:
    """Those of *runs* of repositories that have so many; at most so many, drawn by *seed*."""
    sizes = Counter(raw.repo for raw in runs)
    kept = [raw for raw in runs if sizes[raw.repo] >= min_runs]
    return kept if max_runs is None else sampled(kept, max_runs, seed)


@dataclass(frozen=True, slots=True)
class Trial:
    """What is learned and judged; *taught* None: each run is learned once it was judged.

    *related* is a folder of linked tasks, judged in a memory of their own: past tasks would help or
    hinder the runs.
    """

    taught: Sequence[RawTrajectory] | None
    judging: Sequence[RawTrajectory]
    related: Path | None
    seed: int

    def under(
        self, configuration: str | None, store: str = IN_MEMORY, tenant: str | None = None
    ) -> Report:
        """The report of an empty memory under *configuration*."""
        linked = self._linked(configuration) if self.related else ()
        with open_memory(store, tenant, configuration=configuration) as memory:
            found = self._evaluated(memory) if self.judging else None
            return report_of(found, linked, configuration_of(memory), self.seed)

    def _linked(self, configuration: str | None) -> tuple[Moment, ...]:
        assert self.related is not None
        with open_memory(IN_MEMORY, None, configuration=configuration) as memory:
            return memory.evaluate_related(self.related, seed=self.seed)

    def _evaluated(self, memory: AgentMemory) -> Evaluation:
        known = memory.get_stats().counts.nodes.get("Trajectory", 0)
        if known:
            raise typer.BadParameter(
                f"--store has {number_of(known, 'run')}; an evaluation needs an empty memory"
            )
        times = 2 if self.taught is None else 1
        progress = Progress(lambda: len(self.judging) * times + len(self.taught or ()))

        def advance() -> None:
            progress.advance(1)

        with progress:
            if self.taught is None:
                return memory.evaluate_online(self.judging, seed=self.seed, advance=advance)
            return memory.evaluate(self.taught, self.judging, seed=self.seed, advance=advance)


def configuration_of(memory: AgentMemory) -> dict[str, Json]:
    """All that decides how *memory* answers."""
    space, editor = memory.store.active_space(), memory.consolidator.editor
    weights = memory.retriever.weights
    return {
        "configuration": memory.configuration,
        "version": own_version(),
        "channels": list(memory.retriever.channels),
        "weights": {name: weights[name] for name in memory.retriever.channels},
        "gate": asdict(memory.retriever.gate),
        "embedder": space.name if space else None,
        "summarizer": editor.name if editor else MADE_BY,
    }
