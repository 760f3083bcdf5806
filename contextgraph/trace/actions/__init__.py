"""Interprets the action of a step."""
