"""What the current settings put on sale, for the commands that list it.

`gateway_check` and `gateway.cli.plugins` ask the providers whether they work.
"""

import logging

import structlog

from gateway.catalog.catalog import Catalog
from gateway.plugins.manager import PluginManager
from gateway.settings import load_settings


def catalog_of_settings() -> tuple[Catalog, PluginManager]:
    """Return the catalog under the current settings, and the manager that loaded its plugins."""
    settings = load_settings()
    silence_logs()
    manager = PluginManager(disabled=settings.plugins_disabled)
    return manager.catalog(settings), manager


def silence_logs() -> None:
    """Log nothing: the rows say why a plugin failed, and `--json` must print nothing but JSON."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
