"""The work of agents as people see it: sessions, and the figures of what was advised.

A *session* is what a person asked of one agent, from the
first message to the last; a *step* is one call of a tool, or one reply without a call. A text is
*shown* when it is put before an agent or a person; it is *followed* when an item of it was tried
afterwards, and *cleared* when the error that it was shown at ended. *Saved* are steps, net of what
the advice cost; the ceiling is what the same texts would have saved without any cost.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import force_setattr

from contextgraph.model.context import RunOrder
from contextgraph.model.prices import cost_of
from contextgraph.model.step import Time
from contextgraph.model.trajectory import NOTHING_SPENT, ChangeStatus, Ending, Outcome, Trajectory
from contextgraph.model.values import argument
from contextgraph.text import number_of


class SessionFilter(Struct, frozen=True):
    """The sessions to list, and their *order*; *repo* in any case, *until* is left out itself.

    *outcome* is the known one, or else the guessed one. *contributor* is the named source, empty
    for the owner; None for all.
    """

    repo: str | None = None
    agent: str = ""
    outcome: Outcome | None = None
    since: Time | None = None
    until: Time | None = None
    order: RunOrder = RunOrder.NEWEST
    contributor: str | None = None

    def __post_init__(self) -> None:
        for name, kind in type(self).__annotations__.items():
            force_setattr(self, name, argument(name, kind, getattr(self, name)))
        force_setattr(self, "repo", self.repo or None)


class Session(Struct, frozen=True):
    """A request of a person to one agent, with its sub-agents; *id* is that of its run.

    *name* is its id at the client. *steps* are its own, *tokens* and *cost* (US dollars) those of
    sub-agents, too; None where no log counts them, or a price is not known. *agents* are oldest
    first, and have none themselves. *resume* is the command that opens it in the client
    of this machine that keeps it, empty where none does.
    """

    id: str
    name: str
    instance_id: str
    title: str
    repo: str
    agent: str
    model: str
    folder: str
    source: str
    started_at: datetime
    seconds: float | None
    steps: int
    tokens: int | None
    cost: float | None
    ending: Ending
    change: ChangeStatus
    resume: str = ""
    agents: "tuple[Session, ...]" = ()
    contributor: str = ""

    @classmethod
    def of(cls, run: Trajectory, subagents: "tuple[Trajectory, ...]" = ()) -> "Session":
        """Return the session of *run* and of those of its *subagents*."""
        runs = (run, *subagents)
        counted = [one for one in runs if one.spent != NOTHING_SPENT]
        costs = [cost_of(one.model, one.spent) for one in counted]
        known = [cost for cost in costs if cost is not None]
        return cls(
            id=run.id,
            name=run.session,
            instance_id=run.instance_id,
            title=run.title,
            repo=run.repo,
            agent=run.agent,
            model=run.model,
            folder=run.folder,
            source=run.source,
            started_at=run.seen_at,
            seconds=run.seconds,
            steps=run.total_steps,
            tokens=sum(one.spent.tokens for one in counted) or None,
            cost=sum(known) if known and len(known) == len(costs) else None,
            ending=run.ending,
            change=run.change,
            contributor=run.contributor,
            agents=tuple(sorted(map(cls.of, subagents), key=lambda one: (one.started_at, one.id))),
        )

    @property
    def facts(self) -> tuple[str, ...]:
        """Its outcome, agent, steps, time, tokens, cost and source in words, where known."""
        parts = (
            self.ending.text,
            self.agent,
            number_of(self.all_steps, "step"),
            "" if self.seconds is None else duration_text(self.seconds),
            "" if self.tokens is None else f"{self.tokens:,} tokens",
            f"${self.cost:,.2f}" if self.cost else "",
            self.contributor and f"from {self.contributor}",
        )
        return tuple(filter(None, parts))

    @property
    def all_steps(self) -> int:
        """The steps of the session and of its sub-agents."""
        return self.steps + sum(one.steps for one in self.agents)

    @property
    def outcome(self) -> Outcome:
        """The outcome, known or guessed."""
        return self.ending.outcome

    @property
    def is_guess(self) -> bool:
        """Return whether the outcome is guessed."""
        return self.ending.is_guess


def duration_text(seconds: float) -> str:
    """Return a duration in the unit that a person would say it in."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


class Facets(Struct, frozen=True):
    """Counts of sessions: in all, and of each value, most first."""

    total: int
    repos: Mapping[str, int]
    agents: Mapping[str, int]
    outcomes: Mapping[str, int]


class AdviceFigures(Struct, frozen=True):
    """Advice shown in a period, and its result.

    Texts *shown*, of which *at_errors*; of *known* ones it is known how the error ended, *cleared*
    are those whose error ended, *followed* those of which an item was tried. *tokens* are those of
    all texts. *saved* are steps, net, at most *ceiling*.
    """

    shown: int = 0
    at_errors: int = 0
    known: int = 0
    cleared: int = 0
    followed: int = 0
    tokens: int = 0
    saved: float = 0.0
    ceiling: float = 0.0

    @property
    def saved_text(self) -> str:
        """The steps saved, with sign and unit."""
        return steps_text(self.saved)


def waiting_text(figures: AdviceFigures) -> str:
    """Return that no result is known yet, with the steps that reading took."""
    cost = steps_text(-figures.saved).removeprefix("+")
    read = f"; it cost {cost} to read" if cost != steps_text(0.0) else ""
    return f"no result known yet{read}"


def steps_text(saved: float) -> str:
    """Return a number of steps that were saved, with sign and unit."""
    shown = round(saved, 1)
    return f"{shown:+.1f} steps" if shown else "0 steps"
