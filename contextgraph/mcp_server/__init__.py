"""The memory as a server of the Model Context Protocol: docs/mcp.md (needs the extra ``mcp``)."""
