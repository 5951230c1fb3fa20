"""The command `gateway mcp-config`."""

COMMANDS = {
    "mcp-config": (
        "gateway_mcp.commands.mcp_config:mcp_config",
        "Print the MCP settings for Claude, Cursor and Codex.",
    ),
}
