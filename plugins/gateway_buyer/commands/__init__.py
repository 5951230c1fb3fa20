"""The commands `gateway buy` and `gateway mcp-wallet`."""

COMMANDS = {
    "buy": (
        "gateway_buyer.commands.buy:buy",
        "Buy a generation from a gateway and save it.",
    ),
    "mcp-wallet": (
        "gateway_buyer.commands.mcp_wallet:mcp_wallet",
        "Run a local MCP server by which an agent buys within limits.",
    ),
}
