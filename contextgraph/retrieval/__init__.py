"""Retrieval: state, channels, candidates, scores, fusion, gate, context, text."""

from contextgraph.retrieval.channels import (
    CHANNELS,
    by_error,
    by_lexical,
    by_state,
    by_task,
)
from contextgraph.retrieval.credit import Credits, credits_for, evidence_of
from contextgraph.retrieval.freshness import (
    Stale,
    fresh_context,
    fresh_history,
    fresh_playbook,
    runs_to_compare,
    stale_in,
    with_content_hashes,
)
from contextgraph.retrieval.fuse import WEIGHTS
from contextgraph.retrieval.gate import CONSERVATIVE, UNGATED, Gate
from contextgraph.retrieval.names import paths_in_prose, paths_of_command, paths_of_remedy
from contextgraph.retrieval.notes import by_notes, readable
from contextgraph.retrieval.playbook import Playbooks
from contextgraph.retrieval.query import CaseHit, Channel, Findings, Query, query_of
from contextgraph.retrieval.render import (
    MAX_TOKENS,
    PLAYBOOK_TOKENS,
    Rendered,
    caveat,
    command_warning,
    note_line,
    playbook_lines,
    remedy_line,
    render,
    render_playbook,
    render_warning,
    rendered,
    start_of,
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
    "Rendered",
    "Stale",
    "by_error",
    "by_lexical",
    "by_notes",
    "by_semantic",
    "by_state",
    "by_task",
    "caveat",
    "command_warning",
    "credits_for",
    "evidence_of",
    "fresh_context",
    "fresh_history",
    "fresh_playbook",
    "note_line",
    "paths_in_prose",
    "paths_of_command",
    "paths_of_remedy",
    "playbook_lines",
    "query_of",
    "readable",
    "remedy_line",
    "render",
    "render_playbook",
    "render_warning",
    "rendered",
    "runs_to_compare",
    "stale_in",
    "start_of",
    "with_content_hashes",
]
