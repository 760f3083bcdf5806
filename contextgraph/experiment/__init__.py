"""Experiments: does the memory help an agent to solve tasks, compared with other advice or none?"""

from contextgraph.experiment.agents import agent_named
from contextgraph.experiment.arms import ARMS
from contextgraph.experiment.experiment import Experiment, Plan
from contextgraph.experiment.journal import Attempt, Journal, Shown
from contextgraph.experiment.report import ArmFigures, Comparison, Report, TaskChange, report_on
from contextgraph.experiment.tasks import Part, Task, Workspace, read_tasks, split_tasks

__all__ = [
    "ARMS",
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
    "read_tasks",
    "report_on",
    "split_tasks",
]
