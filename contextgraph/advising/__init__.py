"""Retrieval: state, channels, candidates, scores, fusion, gate, context, text."""

from contextgraph.advising.channels import (
    CHANNELS as CHANNELS,
    by_error as by_error,
    by_lexical as by_lexical,
    by_state as by_state,
    by_task as by_task,
)
from contextgraph.advising.credit import (
    Credits as Credits,
    credits_for as credits_for,
    evidence_of as evidence_of,
)
from contextgraph.advising.freshness import (
    Stale as Stale,
    fresh_context as fresh_context,
    fresh_history as fresh_history,
    fresh_playbook as fresh_playbook,
    runs_to_compare as runs_to_compare,
    stale_in as stale_in,
    with_content_hashes as with_content_hashes,
)
from contextgraph.advising.fuse import WEIGHTS as WEIGHTS
from contextgraph.advising.gate import (
    CONSERVATIVE as CONSERVATIVE,
    UNGATED as UNGATED,
    Gate as Gate,
)
from contextgraph.advising.names import (
    paths_in_prose as paths_in_prose,
    paths_of_command as paths_of_command,
    paths_of_remedy as paths_of_remedy,
)
from contextgraph.advising.notes import by_notes as by_notes, readable as readable
from contextgraph.advising.playbook import Playbooks as Playbooks
from contextgraph.advising.query import (
    CaseHit as CaseHit,
    Channel as Channel,
    Findings as Findings,
    Query as Query,
    query_of as query_of,
)
from contextgraph.advising.render import (
    MAX_TOKENS as MAX_TOKENS,
    PLAYBOOK_TOKENS as PLAYBOOK_TOKENS,
    Rendered as Rendered,
    caveat as caveat,
    command_warning as command_warning,
    note_line as note_line,
    playbook_lines as playbook_lines,
    remedy_line as remedy_line,
    render as render,
    render_playbook as render_playbook,
    render_warning as render_warning,
    rendered as rendered,
    start_of as start_of,
)
from contextgraph.advising.retriever import MemoryRetriever as MemoryRetriever
from contextgraph.advising.semantic import by_semantic as by_semantic
