"""The memory as a server of the Model Context Protocol (MCP): docs/mcp.md.

`server` and `results` need the extra ``mcp``; `clients` needs nothing.
"""
