"""Language models: who puts into words what runs have in common."""

from contextgraph.llm.chat_models import Prices, chat_model, model_in
from contextgraph.llm.openai import RemoteEditor
from contextgraph.llm.template import TemplateSummarizer

__all__ = ["Prices", "RemoteEditor", "TemplateSummarizer", "chat_model", "model_in"]
