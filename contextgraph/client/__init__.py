"""Clients of a service with the methods of `AgentMemory`, synchronous and for asyncio."""

from contextgraph.client.asynchronous import AsyncClient
from contextgraph.client.client import Client

__all__ = ["AsyncClient", "Client"]
