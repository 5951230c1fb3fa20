"""`POST /mcp`: what is on sale, as tools of the Model Context Protocol.

Only `server.py` imports the official SDK, at the first message: the import takes 0.64 seconds of
the processor and 26 MB. The route is `gateway_mcp.routes`.
"""

from gateway_mcp.door import McpDoor, serves_mcp

__all__ = ["McpDoor", "serves_mcp"]
