"""The commands about copies of the database."""

COMMANDS = {
    "backup": (
        "gateway_backups.commands.copies:back_up",
        "Write a consistent copy of the database to FILE.",
    ),
    "backups": (
        "gateway_backups.commands.copies:list_copies",
        "List the copies in GATEWAY_BACKUP_URL, newest first.",
    ),
    "drill": (
        "gateway_backups.commands.copies:drill",
        "Restore the newest copy beside the database, and compare.",
    ),
    "restore": (
        "gateway_backups.commands.copies:restore",
        "Replace the database by a copy.",
    ),
}
