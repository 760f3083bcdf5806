"""Reading a run: what happened at each step, and what the steps come to."""

from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.actions.reading import ActionReading, canonical, read_action
from contextgraph.trace.edits import Change, change_of, change_said, is_edit, net_changes
from contextgraph.trace.errors.signature import recognise, signature_of
from contextgraph.trace.files import files_changed
from contextgraph.trace.loops import LoopTracker, loop_in, loops_of
from contextgraph.trace.phase import PhaseTracker
from contextgraph.trace.predicament import is_same_predicament
from contextgraph.trace.recoveries.general import in_general, is_repetition
from contextgraph.trace.recoveries.recovery import Recovery, recoveries_of
from contextgraph.trace.run import Trace, trace
from contextgraph.trace.state import state_at, states_of
from contextgraph.trace.steps import StepTrace, read_steps
from contextgraph.trace.task import task_type_of

__all__ = [
    "ActionKind",
    "ActionReading",
    "Change",
    "LoopTracker",
    "PhaseTracker",
    "Recovery",
    "StepTrace",
    "Trace",
    "canonical",
    "change_of",
    "change_said",
    "files_changed",
    "in_general",
    "is_edit",
    "is_repetition",
    "is_same_predicament",
    "loop_in",
    "loops_of",
    "net_changes",
    "read_action",
    "read_steps",
    "recognise",
    "recoveries_of",
    "signature_of",
    "state_at",
    "states_of",
    "task_type_of",
    "trace",
]
