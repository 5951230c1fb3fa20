"""Databases and rate limits of plugins, found by the scheme of an address."""

from importlib.metadata import EntryPoint

import attrs
import pytest

from gateway import installed
from gateway.errors import SettingsError
from gateway.outputs import DiskOutputs, open_outputs
from gateway.running.rate_limits import make_limits
from gateway.settings import check_database, check_openers, load_settings
from gateway.store.data_folder import open_store

_POSTGRES = "postgresql://gateway:hunter2@db.example.com/gateway"
_WALLET = "0x" + "b2" * 20
_REDIS = "redis://:hunter2@db.example.com/0"


@pytest.fixture
def shared(settings):
    """The settings of a node whose limits are shared, too."""
    outputs = "s3://my-bucket/outputs"
    return attrs.evolve(settings, database_url=_POSTGRES, limits_url=_REDIS, outputs_url=outputs)


@pytest.mark.parametrize("name", ["gateway_nodes", "gateway-nodes"])
def test_a_database_of_a_disabled_plugin_stops_the_start(shared, name):
    bare = attrs.evolve(shared, plugins_disabled=("gateway_mcp", name))
    refusal = "needs gateway_nodes, but GATEWAY_PLUGINS_DISABLED names it. Take it out of that list"
    for start in (check_database, open_store):
        with pytest.raises(SettingsError, match=f"GATEWAY_DATABASE_URL {refusal}"):
            start(bare)
    for start in (check_openers, lambda found: make_limits(found, lambda: 0.0, "secret")):
        with pytest.raises(SettingsError, match=f"GATEWAY_LIMITS_URL {refusal}"):
            start(bare)


@pytest.mark.parametrize("name", ["gateway_bucket", "gateway-bucket"])
def test_a_bucket_of_a_disabled_plugin_stops_the_start(shared, name):
    bare = attrs.evolve(shared, plugins_disabled=(name,))
    refusal = "GATEWAY_OUTPUTS_URL needs gateway_bucket, but GATEWAY_PLUGINS_DISABLED names it"
    for start in (check_openers, lambda found: open_outputs(found, "secret")):
        with pytest.raises(SettingsError, match=refusal):
            start(bare)


def test_with_the_plugins_all_are_fine(shared):
    check_database(shared)
    check_openers(shared)
    assert open_store(shared).nodes.has_others


def test_a_plugin_that_is_not_there_is_named(shared, monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"and none is installed\. Install gateway_nodes"):
        open_store(shared)


def test_a_value_without_a_scheme_is_not_shown():
    with pytest.raises(SettingsError, match=r"GATEWAY_LIMITS_URL needs a plugin for it") as refusal:
        installed.load_opener("gateway.limits", "GATEWAY_LIMITS_URL", "hunter2", ())
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("group", "value"),
    [
        ("gateway.outputs", "s3"),
        ("gateway.stores", "postgresql"),
        ("gateway.limits", "redis"),
        ("gateway.servers", "uvicorn:"),
        ("gateway.servers", "uvicorn://x"),
    ],
)
def test_a_scheme_alone_is_no_address_and_an_address_no_name(group, value):
    assert installed.find_opener(group, value) == ""


def test_without_an_address_no_plugin_is_asked_for(settings, monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda _: None)
    check_database(settings)
    check_openers(settings)
    assert isinstance(open_outputs(settings, "secret"), DiskOutputs)
    assert not open_store(settings).nodes.has_others


def test_a_third_partys_entry_point_is_found_by_its_scheme(monkeypatch):
    entry = EntryPoint("acme", "gateway_testing.facts:queued", "gateway.stores")
    monkeypatch.setattr(installed, "entry_points", lambda _: [entry])
    found = installed.load_opener("gateway.stores", "GATEWAY_DATABASE_URL", "acme://db/x", ())
    assert found.__name__ == "queued"


@pytest.mark.parametrize(
    ("name", "group", "bundled"),
    [
        ("database_url", "gateway.stores", "postgres, postgresql"),
        ("limits_url", "gateway.limits", "redis, rediss"),
        ("outputs_url", "gateway.outputs", "s3"),
    ],
)
def test_a_scheme_is_right_if_an_installed_plugin_opens_it(monkeypatch, name, group, bundled):
    address = {name: "acme://hunter2@db.example.com"}
    remedy = f"Install one with an entry point acme in the group {group}, or set an address of "
    with pytest.raises(SettingsError, match=remedy + bundled) as refusal:
        load_settings(wallet=_WALLET, **address)
    assert "hunter2" not in str(refusal.value)
    entry = EntryPoint("acme", "gateway_testing.facts:queued", group)
    monkeypatch.setattr(installed, "entry_points", lambda asked: [entry] if asked == group else [])
    # It needs no library of a bundled plugin either.
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    settings = load_settings(wallet=_WALLET, **{"outputs_url": "s3://my-bucket"} | address)
    for check in (check_database, check_openers):
        check(settings)


@pytest.mark.parametrize("name", ["database_url", "limits_url", "outputs_url"])
def test_a_value_without_a_scheme_gets_an_example(name):
    with pytest.raises(SettingsError, match=rf"is not right\..* Example: GATEWAY_{name.upper()}="):
        load_settings(wallet=_WALLET, **{name: "acme"})
