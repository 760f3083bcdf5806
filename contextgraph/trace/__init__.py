"""Reads a run: what happened at each step, and the errors, loops and recoveries of the run."""

from contextgraph.lazy import TYPE_CHECKING, names_of

if TYPE_CHECKING:
    from contextgraph.trace.actions import *
    from contextgraph.trace.advice import *
    from contextgraph.trace.applicability import *
    from contextgraph.trace.loops import *
    from contextgraph.trace.project import *
    from contextgraph.trace.recovery import *
    from contextgraph.trace.run import *
    from contextgraph.trace.shell import *
    from contextgraph.trace.signature import *
    from contextgraph.trace.steps import *

# Searched in this order at first use: the hook of an agent recognises errors, and nothing else.
_MODULES = (
    "actions",
    "signature",
    "steps",
    "loops",
    "shell",
    "project",
    "advice",
    "applicability",
    "run",
    "recovery",
)

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__, _MODULES)
