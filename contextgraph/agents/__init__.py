"""Plug-ins for agents, and the hooks that they call."""
