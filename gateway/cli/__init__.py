"""The command `gateway`: one module a command, and what commands share.

What a command does about money or tasks is in `gateway.payments` and `gateway.tasks`.
"""

from importlib import import_module

import click

from gateway.version import VERSION

# Where each command is, and the first sentence of its help. The sentence stands here as well,
# because `gateway --help` lists the commands without importing them: most import web3 or rich.
_COMMANDS = {
    "actions": (
        "gateway_operator.commands.actions:actions",
        "List what operators did, newest first: who, when, why.",
    ),
    "alarms": (
        "gateway_operator.commands.alarms:alarms",
        "List what needs you now, mute it, and test how you are told.",
    ),
    "backup": (
        "gateway_backups.command:back_up",
        "Write a consistent copy of the database to FILE.",
    ),
    "backups": (
        "gateway_backups.command:list_copies",
        "List the copies in GATEWAY_BACKUP_URL, newest first.",
    ),
    "books": (
        "gateway_operator.commands.books:books",
        "Print what was earned, given back and spent.",
    ),
    "buy": (
        "gateway_buyer.command:buy",
        "Buy a generation from a gateway and save it.",
    ),
    "check": (
        "gateway.cli.check:check",
        "Check settings, chain, wallet, gas, plugins and disk.",
    ),
    "codes": (
        "gateway_operator.commands.codes:codes",
        "Switch off the codes of the admin login.",
    ),
    "demo": (
        "gateway_demo.command:demo",
        "Buy a picture and a parsed document with play money.",
    ),
    "drill": (
        "gateway_backups.command:drill",
        "Restore the newest copy beside the database, and compare.",
    ),
    "encrypt-key": (
        "gateway.cli.encrypt_key:encrypt_key",
        "Write a private key into an encrypted keystore FILE.",
    ),
    "endpoints": (
        "gateway_operator.commands.endpoints:endpoints",
        "List what is on sale, and what is switched off.",
    ),
    "hash-password": (
        "gateway_operator.commands.hash_password:hash_password",
        "Print the argon2 hash of a password.",
    ),
    "mcp-config": (
        "gateway_mcp.command:mcp_config",
        "Print what goes into Claude, Cursor and Codex.",
    ),
    "migrate": (
        "gateway.cli.migrate:migrate",
        "Bring the database to this version's schema, as a start does.",
    ),
    "migrate-store": (
        "gateway.cli.migrate_store:migrate_store",
        "Move the SQLite database into an empty PostgreSQL.",
    ),
    "nodes": (
        "gateway.cli.nodes:nodes",
        "Show which machines share the database, and which of them leads.",
    ),
    "payers": (
        "gateway_operator.commands.payers:payers",
        "List payers that are barred from x402, and lift the bar.",
    ),
    "plugins": (
        "gateway.cli.plugins:plugins",
        "List the plugins, or begin a plugin of your own.",
    ),
    "refunds": (
        "gateway_operator.commands.refunds:refunds",
        "List, approve, reject and pay refunds for failed tasks.",
    ),
    "restore": (
        "gateway_backups.command:restore",
        "Replace the database by a copy.",
    ),
    "serve": (
        "gateway.cli.serve:serve",
        "Serve HTTP until SIGTERM.",
    ),
    "tasks": (
        "gateway_operator.commands.tasks:tasks",
        "List the newest tasks, their payments and their jobs.",
    ),
    "tokens": (
        "gateway_operator.commands.tokens:tokens",
        "Make, list and revoke tokens of the JSON API.",
    ),
    "transfers": (
        "gateway_operator.commands.transfers:transfers",
        "Look at what came into the wallet.",
    ),
}


class _LazyGroup(click.Group):
    """A group that imports the module of a command when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["--help", "-h"]})
@click.version_option(VERSION, prog_name="gateway")
def main() -> None:
    """Sell AI generations per request for USDC on Base."""
