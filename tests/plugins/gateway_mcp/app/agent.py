"""An agent that writes MCP's messages itself, in either era of the protocol."""

import itertools

import attrs

MODERN, LEGACY = "2026-07-28", "2025-11-25"
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
_META = "io.modelcontextprotocol/"


@attrs.define
class Agent:
    """A client of `/mcp` of a gateway under test."""

    gateway: object
    version: str = MODERN
    capabilities: dict = attrs.field(factory=dict)
    # Address that the agent's requests come from.
    client: str = "203.0.113.7"
    path: str = "/mcp"
    _ids: object = attrs.field(factory=lambda: itertools.count(1))

    async def send(self, message, *, headers=(), data=None):
        """Post a message and return the whole answer."""
        method = message.get("method", "") if isinstance(message, dict) else ""
        sent = {"Content-Type": "application/json"}
        if self.version:
            sent["MCP-Protocol-Version"] = self.version
        if self.version == MODERN:
            sent["Mcp-Method"] = method
            if method == "tools/call":
                sent["Mcp-Name"] = message["params"]["name"]
        body = {"json": message} if data is None else {"data": data}
        scope = {"client": (self.client, 50_000)}
        return await self.gateway.client.post(
            self.path, headers=sent | dict(headers), scope_base=scope, **body
        )

    def message(self, method, params=None, meta=None):
        """A request in this agent's era."""
        meta = dict(meta or {})
        if self.version == MODERN:
            meta[f"{_META}protocolVersion"] = MODERN
            meta[f"{_META}clientCapabilities"] = self.capabilities
        return {
            "jsonrpc": "2.0",
            "id": next(self._ids),
            "method": method,
            "params": dict(params or {}) | ({"_meta": meta} if meta else {}),
        }

    async def ask(self, method, params=None, meta=None):
        """Send a request and return the answer's body."""
        answer = await self.send(self.message(method, params, meta))
        return await answer.get_json()

    async def call(self, tool, payment=None, meta=None, **arguments):
        """Call a tool, with a payment or without; return its result."""
        paid = {"x402/payment": payment} if payment is not None else {}
        params = {"name": tool, "arguments": arguments}
        answer = await self.ask("tools/call", params, paid | (meta or {}))
        return answer["result"]
