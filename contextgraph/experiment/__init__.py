"""Experiments: does the memory help an agent to solve tasks, compared with other advice or none?"""

from contextgraph.experiment.agents import agent_named as agent_named
from contextgraph.experiment.arms import ARMS as ARMS
from contextgraph.experiment.experiment import Experiment as Experiment, Plan as Plan
from contextgraph.experiment.journal import Attempt as Attempt, Journal as Journal, Shown as Shown
from contextgraph.experiment.report import (
    COMPARED as COMPARED,
    OF_ATTEMPTS as OF_ATTEMPTS,
    OF_TASKS as OF_TASKS,
    Report as Report,
    TaskChange as TaskChange,
    arm_rows as arm_rows,
    change_line as change_line,
    changed_tasks as changed_tasks,
    comparison_row as comparison_row,
    report_on as report_on,
    write_report as write_report,
)
from contextgraph.experiment.tasks import (
    Part as Part,
    read_tasks as read_tasks,
    split_tasks as split_tasks,
)
