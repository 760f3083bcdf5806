"""Advice for agents: candidates, evidence, one pipeline, and the text."""
