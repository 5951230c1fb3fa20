"""A third party's plugin that calls sys.exit in a hook is left out like any that fails."""

import sys
import types
from importlib.metadata import EntryPoint

from gateway import Settings, hookimpl
from gateway.plugins import manager


def test_a_plugin_that_exits_in_a_hook_is_left_out(monkeypatch):
    module = types.ModuleType("gateway_acme_exits")

    @hookimpl
    def register_endpoints(register, settings):
        sys.exit("ACME_API_KEY is missing")

    module.register_endpoints = register_endpoints
    monkeypatch.setitem(sys.modules, "gateway_acme_exits", module)
    real = manager.entry_points

    class Dist:
        name, version = "acme", "1"

    entry = EntryPoint("acme", "gateway_acme_exits", "gateway")._for(Dist())
    monkeypatch.setattr(manager, "entry_points", lambda group: [*real(group=group), entry])
    plugins = manager.PluginManager()
    plugins.catalog(Settings())
    assert any(p.problem and "ACME_API_KEY" in p.problem for p in plugins.loaded)
