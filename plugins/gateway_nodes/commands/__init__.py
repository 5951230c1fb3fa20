"""Commands for several nodes."""

COMMANDS = {
    "migrate-store": (
        "gateway_nodes.commands.migrate_store:migrate_store",
        "Migrate from SQLite to an empty PostgreSQL database.",
    ),
    "nodes": (
        "gateway_nodes.commands.nodes:nodes",
        "List the nodes that share the database.",
    ),
}
