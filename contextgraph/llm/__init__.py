"""Summaries of methodologies: by template, or by a language model."""

from contextgraph.llm.chat import Chat, Prices, chat_model, model_in
from contextgraph.llm.judge import ConflictJudge
from contextgraph.llm.summarizer import MADE_BY, RemoteSummarizer, template_summary

__all__ = [
    "MADE_BY",
    "Chat",
    "ConflictJudge",
    "Prices",
    "RemoteSummarizer",
    "chat_model",
    "model_in",
    "template_summary",
]
