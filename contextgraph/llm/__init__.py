"""Language models: who puts into words what runs have in common."""

from contextgraph.llm.template import TemplateSummarizer

__all__ = ["TemplateSummarizer"]
