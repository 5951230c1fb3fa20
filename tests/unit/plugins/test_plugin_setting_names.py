"""Two plugins with different prefixes and the same setting name: each would read the other's."""

import types

import attrs
import pytest
import typed_settings as ts

from gateway import Settings, SettingsError, hookimpl, secret
from gateway.plugins.manager import PluginManager


@attrs.frozen(kw_only=True)
class AzureSettings:
    documents_key: ts.SecretStr = secret("Ours, we thought.")


def test_a_name_that_two_plugins_read_stops_the_start():
    plugin = types.ModuleType("gateway_azure")

    @hookimpl
    def register_settings(register):
        register("azure", AzureSettings)

    plugin.register_settings = register_settings
    manager = PluginManager([plugin])
    with pytest.raises(SettingsError, match="AZURE_DOCUMENTS_KEY"):
        manager.catalog(Settings())
