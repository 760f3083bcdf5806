"""Agents with a memory: what their programs load, and the hooks that they call."""
