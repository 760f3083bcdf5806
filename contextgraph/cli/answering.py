"""Asking the memory and printing what it answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from contextgraph.cli.output import complain, emit
from contextgraph.cli.questions import Question
from contextgraph.memory import AgentMemory
from contextgraph.model import MemoryContext, State

SAME = "same"  # as an excluded instance: whichever the state is about


@dataclass(frozen=True, slots=True)
class Guard:
    """What answers may not draw on, and how long they may be; a time without zone is UTC."""

    limit: int
    exclude: tuple[str, ...] = ()
    as_of: datetime | None = None

    def ask(self, memory: AgentMemory, state: State) -> MemoryContext:
        """What *memory* knows for *state* within these bounds; empty where nothing answered."""
        as_of = self.as_of
        if as_of and as_of.tzinfo is None:
            as_of = as_of.replace(tzinfo=UTC)
        return memory.query(
            state, self.limit, exclude_instances=self._excluded(state), as_of=as_of, degrade=True
        )

    def _excluded(self, state: State) -> list[str]:
        named = [state.instance_id if name == SAME else name for name in self.exclude]
        return [name for name in named if name]


def answer_all(
    memory: AgentMemory, asked: Iterable[Question], guard: Guard, *, as_json: bool
) -> list[bool]:
    """Print the answers, in order; for each False where nothing could answer."""
    return [_answer(memory, question, guard, as_json=as_json) for question in asked]


def exit_code(answered: Sequence[bool]) -> int:
    """0 all were answered, 3 some, 1 none."""
    if all(answered):
        return 0
    return 3 if any(answered) else 1


def _answer(memory: AgentMemory, question: Question, guard: Guard, *, as_json: bool) -> bool:
    context = guard.ask(memory, question.state)
    if as_json:
        from contextgraph.cli.records import context_record

        emit(context_record(context, memory.render(context), question.key))
    else:
        from contextgraph.cli.advice import show_context

        show_context(context)
    for reason in context.degraded:
        complain(f"did not answer: {reason}")
    return bool(context) or not context.degraded
