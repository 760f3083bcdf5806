"""Experiments: does the memory help an agent to solve tasks, compared with other advice or none?"""

from contextgraph.experiment.agents import agent_named
from contextgraph.experiment.arms import ARMS
from contextgraph.experiment.experiment import Experiment, Plan
from contextgraph.experiment.journal import Attempt, Journal, Shown
from contextgraph.experiment.report import (
    COMPARED,
    OF_ATTEMPTS,
    OF_TASKS,
    ArmFigures,
    Comparison,
    Report,
    TaskChange,
    arm_rows,
    change_line,
    changed_tasks,
    comparison_row,
    report_on,
    write_report,
)
from contextgraph.experiment.tasks import Part, Task, Workspace, read_tasks, split_tasks

__all__ = [
    "ARMS",
    "COMPARED",
    "OF_ATTEMPTS",
    "OF_TASKS",
    "ArmFigures",
    "Attempt",
    "Comparison",
    "Experiment",
    "Journal",
    "Part",
    "Plan",
    "Report",
    "Shown",
    "Task",
    "TaskChange",
    "Workspace",
    "agent_named",
    "arm_rows",
    "change_line",
    "changed_tasks",
    "comparison_row",
    "read_tasks",
    "report_on",
    "split_tasks",
    "write_report",
]
