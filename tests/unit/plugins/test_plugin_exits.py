"""A third party's plugin that exits or fails in a hook is left out like any that fails."""

import sys
import types
from importlib.metadata import EntryPoint

import pytest

from gateway import Settings, hookimpl
from gateway.plugins import manager


class Mute(RuntimeError):
    def __str__(self):
        raise SystemExit("no words")


def exit_now():
    sys.exit("ACME_API_KEY is missing")


def raise_mute():
    raise Mute


@pytest.mark.parametrize(
    ("fail", "problem"), [(exit_now, "ACME_API_KEY is missing"), (raise_mute, "Mute:")]
)
def test_a_plugin_that_fails_in_a_hook_is_left_out(monkeypatch, fail, problem):
    module = types.ModuleType("gateway_acme_exits")

    @hookimpl
    def register_endpoints(register, settings):
        fail()

    module.register_endpoints = register_endpoints
    monkeypatch.setitem(sys.modules, "gateway_acme_exits", module)
    real = manager.entry_points

    class Dist:
        name, version = "acme", "1"

    entry = EntryPoint("acme", "gateway_acme_exits", "gateway")._for(Dist())
    monkeypatch.setattr(manager, "entry_points", lambda group: [*real(group=group), entry])
    plugins = manager.PluginManager()
    plugins.catalog(Settings())
    assert any(p.problem and problem in p.problem for p in plugins.loaded)
