"""Reads a run: what happened at each step, and the errors, loops and recoveries of the run."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextgraph.trace.actions.kinds import ActionKind
    from contextgraph.trace.actions.reading import ActionReading, canonical, read_action
    from contextgraph.trace.edits import Change, change_of, is_edit, net_changes
    from contextgraph.trace.errors.signature import recognise, signature_of
    from contextgraph.trace.files import added_lines, files_changed, files_created
    from contextgraph.trace.loops import LoopTracker, loop_in, loops_of
    from contextgraph.trace.predicament import error_of, is_same_predicament
    from contextgraph.trace.project import (
        TESTS,
        CommandUse,
        ProjectFacts,
        command_use,
        project_facts,
    )
    from contextgraph.trace.remedies.advice import (
        AdviceKey,
        advice_id,
        advice_key,
        is_advice_id,
        is_common_setting,
        is_general,
        sets_own_variable,
    )
    from contextgraph.trace.remedies.circumstances import (
        circumstances_of,
        could_apply,
        names_program,
        replaced_program,
        shows_cause,
    )
    from contextgraph.trace.remedies.command_lines import SCRIPT, folder_of
    from contextgraph.trace.remedies.commands import THE_REPOSITORY
    from contextgraph.trace.remedies.edits import ANOTHER_MODULE, ANOTHER_NAME
    from contextgraph.trace.remedies.hazards import is_hazardous, is_hazardous_command
    from contextgraph.trace.remedies.open_errors import MISSING_PROGRAM
    from contextgraph.trace.remedies.placeholders import (
        ATTRIBUTE,
        CURRENT_FOLDER,
        ELSEWHERE,
        ITS_ARGUMENT,
        MISSING_MODULE,
        Construct,
        Edited,
        Names,
        edited,
        is_import,
        is_never_installed,
        is_own_module,
        names_in,
    )
    from contextgraph.trace.remedies.recovery import Recovery, patterns_tried, recoveries_of
    from contextgraph.trace.remedies.wording import (
        command_lines,
        describe_change,
        describe_pattern,
        describe_remedy,
        is_retry,
    )
    from contextgraph.trace.run import (
        SubmissionSign,
        SubmissionTracker,
        Trace,
        submission_signs,
        trace,
    )
    from contextgraph.trace.state import StateTracker, state_at, states_of
    from contextgraph.trace.steps import PhaseTracker, StepReader, StepTrace, read_steps
    from contextgraph.trace.task import task_type_of

__all__ = [
    "ANOTHER_MODULE",
    "ANOTHER_NAME",
    "ATTRIBUTE",
    "CURRENT_FOLDER",
    "ELSEWHERE",
    "ITS_ARGUMENT",
    "MISSING_MODULE",
    "MISSING_PROGRAM",
    "SCRIPT",
    "TESTS",
    "THE_REPOSITORY",
    "ActionKind",
    "ActionReading",
    "AdviceKey",
    "Change",
    "CommandUse",
    "Construct",
    "Edited",
    "LoopTracker",
    "Names",
    "PhaseTracker",
    "ProjectFacts",
    "Recovery",
    "StateTracker",
    "StepReader",
    "StepTrace",
    "SubmissionSign",
    "SubmissionTracker",
    "Trace",
    "added_lines",
    "advice_id",
    "advice_key",
    "canonical",
    "change_of",
    "circumstances_of",
    "command_lines",
    "command_use",
    "could_apply",
    "describe_change",
    "describe_pattern",
    "describe_remedy",
    "edited",
    "error_of",
    "files_changed",
    "files_created",
    "folder_of",
    "is_advice_id",
    "is_common_setting",
    "is_edit",
    "is_general",
    "is_hazardous",
    "is_hazardous_command",
    "is_import",
    "is_never_installed",
    "is_own_module",
    "is_retry",
    "is_same_predicament",
    "loop_in",
    "loops_of",
    "names_in",
    "names_program",
    "net_changes",
    "patterns_tried",
    "project_facts",
    "read_action",
    "read_steps",
    "recognise",
    "recoveries_of",
    "replaced_program",
    "sets_own_variable",
    "shows_cause",
    "signature_of",
    "state_at",
    "states_of",
    "submission_signs",
    "task_type_of",
    "trace",
]

# Searched in this order at first use: the hook of an agent recognises errors, and nothing else.
_MODULES = (
    "actions.kinds",
    "actions.reading",
    "errors.signature",
    "files",
    "task",
    "remedies.placeholders",
    "steps",
    "edits",
    "loops",
    "predicament",
    "remedies.command_lines",
    "project",
    "remedies.open_errors",
    "remedies.edits",
    "remedies.wording",
    "remedies.advice",
    "remedies.recovery",
    "state",
    "run",
    "remedies.hazards",
    "remedies.circumstances",
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        for module in _MODULES if name in __all__ else ():
            home = import_module(f"contextgraph.trace.{module}")
            if hasattr(home, name):
                globals()[name] = getattr(home, name)
                return globals()[name]
        raise AttributeError(f"module 'contextgraph.trace' has no attribute {name!r}")
