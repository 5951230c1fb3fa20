"""Loads the catalog from the current settings, for the commands that list it."""

import logging

import attrs
import click
import structlog

from gateway.catalog.catalog import Catalog
from gateway.errors import SettingsError
from gateway.plugins.manager import PluginManager
from gateway.settings import Settings, load_settings
from gateway.settings.page_values import make_readable
from gateway.store.page_settings import with_page_settings


@attrs.frozen
class Loaded:
    """The current settings, their catalog, and the manager that loaded its plugins."""

    settings: Settings
    catalog: Catalog
    manager: PluginManager


def load_catalog(*, needs_wallet: bool = True, needs_page: bool = False) -> Loaded:
    """Return the catalog of the current settings, without values of the page that are refused.

    If the database cannot be read, a sentence says so, or with `needs_page` raises `SettingsError`.
    """
    silence_logs()
    settings = load_settings(needs_wallet=needs_wallet)
    try:
        settings = with_page_settings(settings)
    except SettingsError as error:
        if needs_page:
            raise
        click.echo(f"gateway: {error} What is set on the page is not shown.", err=True)
    manager = PluginManager(disabled=settings.plugins_disabled)
    return Loaded(*make_readable(settings, manager.catalog), manager)


def silence_logs() -> None:
    """Disable logs: the table shows why a plugin failed, and `--json` must print only JSON."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
