"""`gateway plugins`: what is loaded, from where, what it sells, how it is, and why it is off."""

import asyncio
from collections.abc import Mapping

import attrs

from gateway.cli.check import catalog_of_settings
from gateway.contracts import Probing
from gateway.plugins.catalog import Catalog
from gateway.plugins.health import problem_of
from gateway.plugins.manager import LoadedPlugin
from gateway.plugins.upstream import Upstream
from gateway.settings import Settings, load_settings, missing_in, variable

_SELLS = "register_endpoints"
_OTHER_WORK = {
    "register_authorization_verifier": "takes payments that are signed first",
    "register_transfer_verifier": "takes transfers that were made before",
    "register_settlers": "settles signed payments",
}
_CORE_SWITCHES = {"gateway_sandbox_image": "sandbox"}  # bundled, and its setting is one of ours
_MAX_NOTE_CHARS = 300


def rows(*, ask_health: bool) -> list[dict[str, object]]:
    """Return a row for each plugin; `ask_health`: ask all providers on sale, at the same time."""
    settings = load_settings()
    catalog, manager = catalog_of_settings()
    view = _View(
        settings=settings,
        catalog=catalog,
        sections=manager.sections(),
        problems=asyncio.run(_problems(catalog)) if ask_health else None,
    )
    return [view.row(plugin) for plugin in manager.loaded]


def stacked(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row for a narrow terminal: what a plugin sells, and below it what else there is."""
    return {
        "plugin": row["plugin"],
        "from": row["from"],
        "health": row["health"],
        "what it does": "\n".join(str(row[name]) for name in ("endpoints", "note") if row[name]),
    }


async def _problems(catalog: Catalog) -> dict[int, str | None]:
    """Return what is wrong with each provider on sale, by its identity."""
    asked = catalog.on_sale()
    try:
        found = await asyncio.gather(*(problem_of(upstream) for upstream in asked))
    finally:
        await catalog.close()
    return {id(upstream): problem for upstream, problem in zip(asked, found, strict=True)}


@attrs.frozen(kw_only=True)
class _View:
    """Everything that a row is made from."""

    settings: Settings
    catalog: Catalog
    sections: Mapping[str, tuple[str, type]]
    problems: Mapping[int, str | None] | None  # None where nobody was asked

    def row(self, plugin: LoadedPlugin) -> dict[str, object]:
        """Return one plugin's row."""
        mine = [one for one in self.catalog.everything() if one.upstream.plugin == plugin.name]
        selling = [one for one in mine if self.catalog.is_enabled(one.endpoint.slug)]
        off = [one.endpoint.slug for one in mine if one not in selling]
        upstreams = list({id(one.upstream): one.upstream for one in selling}.values())
        unwell = self._unwell(upstreams)
        notes = [
            *([] if mine else [self._why_nothing(plugin)]),
            *([f"switched off by you: {', '.join(off)}"] if off else []),
            *unwell,
            *self._told(upstreams),
        ]
        return {
            "plugin": plugin.name,
            "from": plugin.source,
            "endpoints": ", ".join(one.endpoint.slug for one in selling),
            "health": "wrong" if unwell else self._health(upstreams),
            "note": "; ".join(notes)[:_MAX_NOTE_CHARS],
        }

    def _unwell(self, upstreams: list[Upstream]) -> list[str]:
        """Return what is wrong with providers, each once: several may have one key."""
        found = [(self.problems or {}).get(id(upstream)) for upstream in upstreams]
        return list(dict.fromkeys(problem for problem in found if problem is not None))

    def _told(self, upstreams: list[Upstream]) -> list[str]:
        """Return what providers tell of themselves: an attribute `notes`, where they have one."""
        found = [getattr(upstream.provider, "notes", ()) for upstream in upstreams]
        return list(dict.fromkeys(str(note) for notes in found for note in notes))

    def _health(self, upstreams: list[Upstream]) -> str:
        if not upstreams:
            return ""
        if not any(isinstance(upstream.provider, Probing) for upstream in upstreams):
            return "not told"
        return "ok" if self.problems is not None else "not asked"

    def _why_nothing(self, plugin: LoadedPlugin) -> str:
        """Return why a plugin sells nothing: it failed, lacks a setting, or does other work."""
        if plugin.problem is not None:
            return f"left out: {plugin.problem}"
        if _SELLS not in plugin.hooks:
            return "; ".join(_OTHER_WORK[hook] for hook in plugin.hooks if hook in _OTHER_WORK)
        missing = self._missing(plugin)
        if not missing:
            return "off: it put nothing on sale"
        return f"off: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set"

    def _missing(self, plugin: LoadedPlugin) -> list[str]:
        """Return the variables without a value that keep a plugin from selling."""
        values = self.settings.plugin_values
        missing = [
            name
            for prefix, (owner, kind) in self.sections.items()
            if owner == plugin.name
            for name in missing_in(values, prefix, kind)
        ]
        core = _CORE_SWITCHES.get(plugin.name)
        return [*missing, variable(core)] if core else missing
