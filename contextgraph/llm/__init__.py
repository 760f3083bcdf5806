"""Language models: who puts into words what runs have in common, and what each did."""

from contextgraph.llm.assignments import METHODOLOGIES, RUNS
from contextgraph.llm.chat import Chat
from contextgraph.llm.chat_models import Prices, chat_model, model_in
from contextgraph.llm.openai import RemoteEditor
from contextgraph.llm.template import MADE_BY, TemplateSummarizer

__all__ = [
    "MADE_BY",
    "METHODOLOGIES",
    "RUNS",
    "Chat",
    "Prices",
    "RemoteEditor",
    "TemplateSummarizer",
    "chat_model",
    "model_in",
]
