"""The command `gateway plugins`: list what is loaded, begin a plugin of your own."""

from pathlib import Path

import click

from gateway.terminal import one_sentence, print_rows


@click.group(invoke_without_command=True)
@click.option("--no-health", is_flag=True, help="Ask no provider anything: stay off the network.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.pass_context
@one_sentence
def plugins(context: click.Context, *, no_health: bool, as_json: bool) -> None:
    """List the plugins: where they come from, what they sell, and why one is off."""
    if context.invoked_subcommand is not None:
        return
    from gateway.plugin_list import rows, table  # noqa: PLC0415 - other commands start faster

    found = rows(ask_health=not no_health)
    print_rows(found if as_json else table(found), as_json=as_json)


@plugins.command()
@click.argument("name")
@one_sentence
def new(*, name: str) -> None:
    """Write a project for a plugin, with tests that pass, into ./gateway-NAME."""
    from gateway.scaffold import write_project  # noqa: PLC0415

    folder = write_project(name, Path.cwd())
    click.echo(
        f"{folder.name} is there. Its tests pass:\n"
        f"  cd {folder.name}\n"
        "  pip install -e '.[test]'\n"
        "  pytest"
    )
