"""Advice for a state, loops, and search in past sessions."""

from collections.abc import Sequence

from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import Found, Json, MemoryContext, State, Strategy, new_context_id
from contextgraph.service.operations import Record, TokenScope, operation
from contextgraph.service.operations.arguments import (
    AsOf,
    From,
    Ignored,
    Kinds,
    Limit,
    Most,
    Name,
    OnlyAgent,
    OnlyFile,
    OnlyRepository,
    Question,
    StateArguments,
    States,
    Text,
    Tokens,
    Until,
)
from contextgraph.service.records import context_record

_CONTEXT: Json = {
    "key": None,
    "id": "ctx_5f0c2a4d9e1b7c3a",
    "suggestions": [],
    "error_solutions": [
        {
            "fragment_id": "frg_306a88efae182c7b51d36faf",
            "trajectory_id": "trj_37b4f7ae17699bc8f32a2686",
            "instance_id": "acme__shop-2",
            "repo": "acme/shop",
            "error_type": "ModuleNotFoundError",
            "signature_level": "template",
            "actions": ["PYTHONPATH=lib python reproduce.py"],
            "description": "set `PYTHONPATH=lib` (`PYTHONPATH=lib python reproduce.py`)",
            "rank": 1,
            "probability": 0.81,
        }
    ],
    "similar_cases": [],
    "warnings": [],
    "degraded": [],
    "text": "Earlier runs: …",
}


@operation(
    TokenScope.READ,
    "POST /v1/query",
    example={
        "state": {
            "repo": "acme/shop",
            "current_error": "ModuleNotFoundError: No module named 'tariffs'",
        },
        "limit": 3,
    },
    answer=_CONTEXT,
)
def query(
    memory: AgentMemory,
    state: StateArguments,
    limit: Limit = 5,
    *,
    exclude_instances: Ignored = (),
    as_of: AsOf = None,
    max_tokens: Tokens | None = None,
    record: bool = True,
) -> Record:
    """Return what is known for a state, as `contextgraph query --json` prints it.

    Without *record* the text does not count as shown, and no outcome can be reported for it.
    """
    from contextgraph.advising.wording import MAX_TOKENS, render

    context = memory.query(state.state(), limit, exclude_instances=exclude_instances, as_of=as_of)
    show = memory.render if record else render
    return context_record(context, show(context, max_tokens or MAX_TOKENS))


@operation(
    TokenScope.READ,
    "POST /v1/loops",
    example={"states": [{"last_action": "pytest", "current_error": "KeyError: 'a'"}] * 3},
)
def check_loop(memory: AgentMemory, states: States) -> Record:
    """Detect whether the last state is in a loop; states are oldest first.

    The answer is that of /v1/query, with "loop".
    """
    loop = memory.check_loop([one.state() for one in states])
    context = MemoryContext(new_context_id(), loop=loop)
    return context_record(context, memory.render(context))


@operation(
    TokenScope.READ,
    "POST /query_memory",
    example={
        "problem_statement": "Totals are wrong when a tariff is missing",
        "error_message": "KeyError: 'tariff'",
        "current_file": "shop/tariff.py",
    },
    answer={"playbook": "…"},
)
def query_memory(
    memory: AgentMemory,
    problem_statement: Text,
    error_message: Text | None = None,
    current_file: Name | None = None,
) -> Record:
    """Return the advice for a task as text, empty where nothing is known.

    This is the contract of agents that know no other.
    """
    state = State(
        task_description=problem_statement,
        current_error=error_message or "",
        open_file=current_file or "",
    )
    return {"playbook": memory.render(memory.query(state))}


@operation(TokenScope.READ, "POST /v1/search", lines="found")
def search(  # noqa: PLR0913  (one parameter per limit)
    memory: AgentMemory,
    question: Question,
    repo: OnlyRepository | None = None,
    limit: Most = 10,
    strategy: Kinds = Strategy.HYBRID,
    *,
    agent: OnlyAgent = "",
    file: OnlyFile = "",
    since: From = None,
    until: Until = None,
) -> Sequence[Found]:
    """Search all that was said in past sessions, notes, pages and remedies.

    As `contextgraph search --json`.
    """
    return memory.search(
        question,
        repo,
        limit=limit,
        strategy=strategy,
        agent=agent,
        file=file,
        since=since,
        until=until,
    )
