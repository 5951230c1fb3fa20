"""The command `gateway mcp-config`."""

COMMANDS = {
    "mcp-config": (
        "gateway_mcp.commands.mcp_config:mcp_config",
        "Print what goes into Claude, Cursor and Codex.",
    ),
}
