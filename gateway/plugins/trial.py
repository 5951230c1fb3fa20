"""Tries settings on the plugins before they are kept."""

import asyncio
from collections.abc import Iterable

from gateway.catalog.catalog import Catalog
from gateway.plugins.manager import PluginManager
from gateway.settings import Settings


async def try_catalog(settings: Settings, plugins: Iterable[object], running: Catalog) -> None:
    """Make a catalog of these settings, as the next start will, and drop it.

    Raises `SettingsError` for a value that a plugin refuses. `plugins` are those given to
    `create_app`. Providers that `running` uses too stay open.
    """
    # It takes 50 ms of computing.
    made = await asyncio.to_thread(_make, settings, plugins)
    in_use = {id(upstream.provider) for upstream in running.upstreams()}
    for upstream in (*made.upstreams(), *made.withdrawn):
        if id(upstream.provider) not in in_use:
            await upstream.close()


def _make(settings: Settings, plugins: Iterable[object]) -> Catalog:
    return PluginManager(plugins, disabled=settings.plugins_disabled).catalog(settings)
