"""Reads a run: what happened at each step, and the errors, loops and recoveries of the run."""

from contextgraph.trace.actions import *
from contextgraph.trace.advice import *
from contextgraph.trace.applicability import *
from contextgraph.trace.ending import *
from contextgraph.trace.loops import *
from contextgraph.trace.project import *
from contextgraph.trace.recovery import *
from contextgraph.trace.run import *
from contextgraph.trace.said import *
from contextgraph.trace.shell import *
from contextgraph.trace.signature import *
from contextgraph.trace.steps import *
