"""Agents with a memory: what each of them calls."""
