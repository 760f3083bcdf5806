"""Summaries of methodologies: by template, or by a language model."""

from contextgraph.llm.chat import (
    Chat as Chat,
    ConflictJudge as ConflictJudge,
    Prices as Prices,
    chat_model as chat_model,
    model_in as model_in,
)
from contextgraph.llm.summarizer import (
    MADE_BY as MADE_BY,
    RemoteSummarizer as RemoteSummarizer,
    template_summary as template_summary,
)
