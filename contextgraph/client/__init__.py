"""A memory that a service has, with the methods of `AgentMemory`: sync and for asyncio."""

from contextgraph.client.asynchronous import AsyncClient
from contextgraph.client.client import Client

__all__ = ["AsyncClient", "Client"]
