"""The command `gateway`, with one module per command, and helpers shared by commands.

Payment and task logic is in `gateway.payments` and `gateway.tasks`. Plugins have their own
commands.
"""

import sys
from pkgutil import resolve_name

import click

from gateway.errors import SettingsError
from gateway.installed import is_disabled
from gateway.plugins.installed import PluginCommand, find_commands
from gateway.version import VERSION

# Location and first help sentence of each command. The sentence is repeated here because `gateway
# --help` lists the commands without importing them: most import web3 or rich.
_COMMANDS = {
    "migrate": ("gateway.cli.migrate:migrate", "Migrate the database (`serve` does this too)."),
    "reload": (
        "gateway.cli.reload:reload",
        "Read the files of endpoints again, without a restart.",
    ),
    "serve": ("gateway.cli.serve:serve", "Run the gateway until SIGTERM."),
}


def _plugin_commands() -> dict[str, PluginCommand]:
    return find_commands(_COMMANDS, warn=lambda text: click.echo(f"gateway: {text}", err=True))


def _places() -> dict[str, tuple[str, str]]:
    """Return location and first sentence of every command, by name."""
    plugins = {name: (each.place, each.sentence) for name, each in _plugin_commands().items()}
    return dict(sorted((plugins | _COMMANDS).items()))


class _LazyGroup(click.Group):
    """Imports a command's module only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_places())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name in _COMMANDS:
            place = _COMMANDS[cmd_name][0]
        elif (found := _plugin_commands().get(cmd_name)) is None:
            return None
        elif _is_switched_off(found.plugin):
            return _refusal(cmd_name, found.plugin)
        else:
            place = found.place
        command: click.Command = resolve_name(place)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in _places().items()])


def _is_switched_off(plugin: str) -> bool:
    # Slow to import, and `gateway --help` needs no settings.
    from gateway.settings.loader import read_disabled_plugins  # noqa: PLC0415

    try:
        return is_disabled(plugin, read_disabled_plugins())
    except SettingsError:
        # Commands that need the settings report this themselves; the others work without them.
        return False


def _refusal(name: str, plugin: str) -> click.Command:
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
