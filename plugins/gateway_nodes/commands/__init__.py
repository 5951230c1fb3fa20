"""The commands of several machines."""

COMMANDS = {
    "migrate-store": (
        "gateway_nodes.commands.migrate_store:migrate_store",
        "Move the SQLite database into an empty PostgreSQL.",
    ),
    "nodes": (
        "gateway_nodes.commands.nodes:nodes",
        "Show which machines share the database, and which of them leads.",
    ),
}
