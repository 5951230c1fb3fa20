"""The command `gateway`: one module a command, and what commands share.

What a command does about money or tasks is in `gateway.payments` and `gateway.tasks`. The commands
of plugins are in the plugins.
"""

import sys
from importlib import import_module

import click

from gateway.errors import SettingsError
from gateway.plugins.installed import PluginCommand, find_commands, is_disabled
from gateway.version import VERSION

# Where each command is, and the first sentence of its help. The sentence stands here as well,
# because `gateway --help` lists the commands without importing them: most import web3 or rich.
_COMMANDS = {
    "encrypt-key": (
        "gateway.cli.encrypt_key:encrypt_key",
        "Write a private key into an encrypted keystore FILE.",
    ),
    "migrate": (
        "gateway.cli.migrate:migrate",
        "Bring the database to this version's schema, as a start does.",
    ),
    "migrate-store": (
        "gateway.cli.migrate_store:migrate_store",
        "Move the SQLite database into an empty PostgreSQL.",
    ),
    "plugins": (
        "gateway.cli.plugins:plugins",
        "List the plugins, or begin a plugin of your own.",
    ),
    "serve": (
        "gateway.cli.serve:serve",
        "Serve HTTP until SIGTERM.",
    ),
}


def _plugin_commands() -> dict[str, PluginCommand]:
    return find_commands(_COMMANDS, warn=lambda text: click.echo(f"gateway: {text}", err=True))


def _places() -> dict[str, tuple[str, str]]:
    """Return where every command is and its sentence, in the order of their names."""
    plugins = {name: (each.place, each.sentence) for name, each in _plugin_commands().items()}
    return dict(sorted((plugins | _COMMANDS).items()))


class _LazyGroup(click.Group):
    """A group that imports the module of a command when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_places())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name in _COMMANDS:
            return _load(_COMMANDS[cmd_name][0])
        found = _plugin_commands().get(cmd_name)
        if found is None:
            return None
        if _is_switched_off(found.plugin):
            return _refusal(cmd_name, found.plugin)
        return _load(found.place)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in _places().items()])


def _load(place: str) -> click.Command:
    module, _, name = place.partition(":")
    command: click.Command = getattr(import_module(module), name)
    return command


def _is_switched_off(plugin: str) -> bool:
    # Slow to import, and `gateway --help` needs no settings.
    from gateway.settings.loader import read_disabled_plugins  # noqa: PLC0415

    try:
        return is_disabled(plugin, read_disabled_plugins())
    except SettingsError:
        # A command that needs the settings reports this itself; the others work without them.
        return False


def _refusal(name: str, plugin: str) -> click.Command:
    """Return a command that only says that its plugin is disabled."""
    sentence = f"`gateway {name}` belongs to {plugin}, which GATEWAY_PLUGINS_DISABLED disables."

    def refuse() -> None:
        click.echo(f"gateway: {sentence}", err=True)
        sys.exit(1)

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, context_settings=anything, add_help_option=False)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["--help", "-h"]})
@click.version_option(VERSION, prog_name="gateway")
def main() -> None:
    """Sell AI generations per request for USDC on Base."""
