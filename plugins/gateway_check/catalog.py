"""Loads the catalog from the current settings, for the commands that list it."""

import logging

import structlog

from gateway.catalog.catalog import Catalog
from gateway.plugins.manager import PluginManager
from gateway.settings import load_settings
from gateway.store.page_settings import with_page_settings


def catalog_of_settings(*, needs_wallet: bool = True) -> tuple[Catalog, PluginManager]:
    """Return the catalog of the current settings, and the manager that loaded its plugins."""
    silence_logs()
    settings = with_page_settings(load_settings(needs_wallet=needs_wallet))
    manager = PluginManager(disabled=settings.plugins_disabled)
    return manager.catalog(settings), manager


def silence_logs() -> None:
    """Disable logs: the table shows why a plugin failed, and `--json` must print only JSON."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
