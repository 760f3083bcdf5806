"""The façade `AgentMemory`, the parts that it is made of, and the files exported from a memory."""

from typing import TYPE_CHECKING

from contextgraph.system.names import attached

if TYPE_CHECKING:
    from contextgraph.memory.agent_memory import AgentMemory as AgentMemory

_HOMES = {"AgentMemory": "contextgraph.memory.agent_memory"}
__all__ = sorted(_HOMES)  # noqa: PLE0605  (a list; the linter cannot see it)
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = attached(__name__, _HOMES)
