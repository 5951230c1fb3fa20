"""What a gateway reports of its plugins."""

import json

from gateway import Settings
from gateway.plugins.manager import PluginManager
from tests.conftest import WALLET


def listed(command, *arguments: str, module: str = "acme_plugin") -> dict:
    result = command("plugins", "--json", *arguments)
    assert result.exit_code == 0, result.output
    (row,) = [row for row in json.loads(result.stdout) if row["plugin"] == module]
    return row


def left_out(manager: PluginManager) -> dict[str, str]:
    return {plugin.name: plugin.problem for plugin in manager.loaded if plugin.problem}


def catalog_of(manager: PluginManager, **settings) -> set[str]:
    catalog = manager.catalog(Settings(wallet=WALLET, **settings))
    return {one.endpoint.slug for one in catalog.everything()}
