"""Hooks of coding agents: advice compiled beside a memory, and the command that reads it."""
