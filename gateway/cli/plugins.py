"""The command `gateway plugins`: list what is loaded, begin a plugin of your own."""

from pathlib import Path

import click

from gateway.cli.terminal import json_option, one_sentence, print_rows, wide_option


@click.group(invoke_without_command=True)
@click.option("--no-health", is_flag=True, help="Ask no provider anything: stay off the network.")
@json_option
@wide_option
@click.pass_context
@one_sentence
def plugins(context: click.Context, *, no_health: bool, as_json: bool, wide: bool) -> None:
    """List the plugins: where they come from, what they sell, and why one is off."""
    if context.invoked_subcommand is not None:
        return
    from gateway.cli.plugin_rows import rows, stacked  # noqa: PLC0415 - other commands start faster

    found = rows(ask_health=not no_health)
    print_rows(found, as_json=as_json, wide=wide, stacked=stacked)


@plugins.command()
@click.argument("name")
@one_sentence
def new(*, name: str) -> None:
    """Write a project for a plugin, with tests that pass, into ./gateway-NAME."""
    from gateway.cli.new_plugin import write_project  # noqa: PLC0415

    folder = write_project(name, Path.cwd())
    click.echo(
        f"{folder.name} is there. Its tests pass:\n"
        f"  cd {folder.name}\n"
        "  pip install -e '.[test]'\n"
        "  pytest"
    )
