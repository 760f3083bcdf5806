"""Summaries of methodologies: by template, or by a language model."""

from contextgraph.llm.chat import Chat, Prices, chat_model, model_in
from contextgraph.llm.judge import ConflictJudge
from contextgraph.llm.summarizer import RemoteSummarizer
from contextgraph.llm.template import MADE_BY, TemplateSummarizer

__all__ = [
    "MADE_BY",
    "Chat",
    "ConflictJudge",
    "Prices",
    "RemoteSummarizer",
    "TemplateSummarizer",
    "chat_model",
    "model_in",
]
