"""Evaluation: a memory judged by recorded runs, and such runs replayed as if live."""

from contextgraph.evaluation.evaluation import evaluate as evaluate, split as split
from contextgraph.evaluation.reports import report_of as report_of
