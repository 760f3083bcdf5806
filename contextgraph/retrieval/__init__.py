"""Retrieval: state, channels, candidates, scores, fusion, gate, context, text."""

from contextgraph.retrieval.channels import (
    CHANNELS,
    by_error,
    by_lexical,
    by_state,
    by_task,
)
from contextgraph.retrieval.credit import Credits, credits_for, evidence_of
from contextgraph.retrieval.fuse import WEIGHTS
from contextgraph.retrieval.gate import CONSERVATIVE, UNGATED, Gate
from contextgraph.retrieval.playbook import Playbooks
from contextgraph.retrieval.query import CaseHit, Channel, Findings, Query, query_of
from contextgraph.retrieval.render import (
    MAX_TOKENS,
    PLAYBOOK_TOKENS,
    command_warning,
    playbook_lines,
    render,
    render_playbook,
    render_warning,
    rendered,
)
from contextgraph.retrieval.retriever import MemoryRetriever
from contextgraph.retrieval.semantic import by_semantic

__all__ = [
    "CHANNELS",
    "CONSERVATIVE",
    "MAX_TOKENS",
    "PLAYBOOK_TOKENS",
    "UNGATED",
    "WEIGHTS",
    "CaseHit",
    "Channel",
    "Credits",
    "Findings",
    "Gate",
    "MemoryRetriever",
    "Playbooks",
    "Query",
    "by_error",
    "by_lexical",
    "by_semantic",
    "by_state",
    "by_task",
    "command_warning",
    "credits_for",
    "evidence_of",
    "playbook_lines",
    "query_of",
    "render",
    "render_playbook",
    "render_warning",
    "rendered",
]
