"""Reads a run: what happened at each step, and the errors, loops and recoveries of the run."""

from importlib import import_module

from contextgraph.lazy import TYPE_CHECKING

if TYPE_CHECKING:
    from contextgraph.trace.actions import (
        TESTS as TESTS,
        ActionKind as ActionKind,
        ActionReading as ActionReading,
        CommandUse as CommandUse,
        canonical as canonical,
        command_use as command_use,
        read_action as read_action,
    )
    from contextgraph.trace.advice import (
        AdviceKey as AdviceKey,
        Construct as Construct,
        Edited as Edited,
        Lesson as Lesson,
        Names as Names,
        Term as Term,
        advice_id as advice_id,
        advice_key as advice_key,
        command_lines as command_lines,
        describe_change as describe_change,
        describe_pattern as describe_pattern,
        describe_remedy as describe_remedy,
        edited as edited,
        is_advice_id as is_advice_id,
        is_common_setting as is_common_setting,
        is_general as is_general,
        is_import as is_import,
        is_retry as is_retry,
        lessons_of as lessons_of,
        names_in as names_in,
        pattern_key as pattern_key,
        sets_own_variable as sets_own_variable,
    )
    from contextgraph.trace.applicability import (
        circumstances_of as circumstances_of,
        could_apply as could_apply,
        detour as detour,
        is_hazardous as is_hazardous,
        is_hazardous_command as is_hazardous_command,
        replaced_program as replaced_program,
        shows_cause as shows_cause,
    )
    from contextgraph.trace.loops import (
        LoopTracker as LoopTracker,
        is_same_predicament as is_same_predicament,
        loop_in as loop_in,
        loops_of as loops_of,
    )
    from contextgraph.trace.project import (
        FOLDER_PATTERNS as FOLDER_PATTERNS,
        FolderCauses as FolderCauses,
        ProjectFacts as ProjectFacts,
        environment_of as environment_of,
        patch_summary as patch_summary,
        project_facts as project_facts,
        usual_environment as usual_environment,
    )
    from contextgraph.trace.recovery import (
        Recovery as Recovery,
        Trace as Trace,
        patterns_tried as patterns_tried,
        recoveries_of as recoveries_of,
        trace as trace,
    )
    from contextgraph.trace.run import (
        MISSING_PROGRAM as MISSING_PROGRAM,
        StateTracker as StateTracker,
        SubmissionSign as SubmissionSign,
        SubmissionTracker as SubmissionTracker,
        state_at as state_at,
        states_of as states_of,
        submission_signs as submission_signs,
        task_type_of as task_type_of,
    )
    from contextgraph.trace.shell import (
        SCRIPT as SCRIPT,
        folder_of as folder_of,
        is_never_installed as is_never_installed,
        is_own_module as is_own_module,
        names_program as names_program,
    )
    from contextgraph.trace.signature import (
        error_id as error_id,
        error_of as error_of,
        recognise as recognise,
        signature_of as signature_of,
    )
    from contextgraph.trace.steps import (
        Change as Change,
        PhaseTracker as PhaseTracker,
        StepReader as StepReader,
        StepTrace as StepTrace,
        added_lines as added_lines,
        change_of as change_of,
        files_changed as files_changed,
        files_created as files_created,
        is_edit as is_edit,
        net_changes as net_changes,
        read_steps as read_steps,
    )

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

    def __getattr__(name: str) -> object:
        for module in _MODULES:
            home = import_module(f"contextgraph.trace.{module}")
            if hasattr(home, name):
                globals()[name] = getattr(home, name)
                return globals()[name]
        raise AttributeError(f"module 'contextgraph.trace' has no attribute {name!r}")
