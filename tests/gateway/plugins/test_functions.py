"""Functions of capabilities that cannot be loaded are found before a sale, in their own process."""

import sys

import attrs
import pytest

from gateway import Capability, FileKind, InSandbox, ResultKind
from gateway.catalog.catalog import Catalog
from gateway.catalog.functions import DeclaredFunctions
from gateway.errors import ExecutionError
from gateway.sandbox import Sandbox, SandboxBroken, SandboxLost
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider

MODULE = """
import sys
sys.stdout.write("loaded")
A_NUMBER = 3

def check(*_):
    return b""
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "acme_functions.py").write_text(MODULE)
    (tmp_path / "acme_broken.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "acme_exits.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def capability(check="acme_functions:check", read=None):
    read = read and InSandbox(function=read)
    files = (FileKind(name="song", endings=(".wav",), read=read),) if read else ()
    kind = ResultKind(
        name="song", media_types={"audio/wav": "wav"}, check=InSandbox(function=check)
    )
    return Capability(name="text-to-song", results=(kind,), files=files)


def sold(declared):
    catalog = Catalog({})
    catalog.declare(declared, "acme")
    song = attrs.evolve(ENDPOINT, slug="song", capability=declared.name, declared=declared)
    catalog.register(song, ScriptedProvider(), "acme")
    catalog.register(ENDPOINT, ScriptedProvider(), "other")
    return catalog, DeclaredFunctions(catalog)


async def test_one_that_loads_is_sold_and_not_imported_here(module):
    catalog, functions = sold(capability())
    await functions.begin()
    assert catalog.runnable_slugs() == [ENDPOINT.slug]
    await functions.ensure(catalog["song"].endpoint)
    assert catalog.runnable_slugs() == ["song", ENDPOINT.slug]
    assert catalog["song"].sells_now
    assert "acme_functions" not in sys.modules


@pytest.mark.parametrize(
    ("functions", "words"),
    [
        ({"check": "acme_functions:no_such"}, "has no attribute 'no_such'"),
        ({"check": "acme_functions:A_NUMBER"}, "is no function"),
        ({"check": "acme_missing:check"}, "No module named 'acme_missing'"),
        ({"check": "acme_broken:check"}, "No module named 'nothing_of_this_name'"),
        ({"check": "acme_exits:check"}, "SystemExit: 3"),
        ({"read": "acme_functions:no_such"}, "has no attribute 'no_such'"),
    ],
)
async def test_one_that_does_not_is_off_sale_with_its_reason(module, functions, words):
    catalog, found = sold(capability(**functions))
    await found.begin()
    with pytest.raises(ExecutionError, match="cannot be checked"):
        await found.ensure(catalog["song"].endpoint)
    assert not catalog["song"].sells_now
    assert words in catalog["song"].unchecked
    # Its tasks wait for a node that checks them; others go on.
    assert catalog.runnable_slugs() == [ENDPOINT.slug]
    catalog.change({})
    assert not catalog["song"].sells_now
    with pytest.raises(ExecutionError, match="cannot be checked"):
        await found.ensure(catalog["song"].endpoint)


async def test_nothing_is_loaded_for_one_that_no_endpoint_names(module):
    catalog, functions = sold(capability())
    unnamed = attrs.evolve(
        capability("acme_missing:check"), name="text-to-opera", output_formats=("wav",)
    )
    catalog.declare(unnamed, "acme")
    await functions.check_all()
    assert catalog["song"].sells_now
    assert "wav" not in catalog.output_formats
    opera = attrs.evolve(ENDPOINT, slug="opera", capability=unnamed.name, declared=unnamed)
    catalog.register(opera, ScriptedProvider(), "other")
    await functions.check_all()
    assert "No module named 'acme_missing'" in catalog["opera"].unchecked
    assert "wav" in catalog.output_formats


async def test_it_is_back_on_sale_once_it_loads(module):
    (module / "acme_later.py").write_text("")
    catalog, found = sold(capability("acme_later:check"))
    await found.check_all()
    assert not catalog["song"].sells_now
    (module / "acme_later.py").write_text("def check(*_):\n    return b''\n# and a longer file\n")
    await found.check_all()
    assert catalog["song"].sells_now


async def test_a_process_that_does_not_start_is_no_fault_of_the_function(module, monkeypatch):
    tries = []

    async def lost(self):
        tries.append(self)
        raise SandboxLost("no process", has_begun=False)

    monkeypatch.setattr(Sandbox, "load", lost)
    # However slow the machine is.
    monkeypatch.setattr("gateway.catalog.functions._UNKNOWN_S", 3600.0)
    catalog, found = sold(capability())
    await found.begin()
    for _ in range(9):
        with pytest.raises(ExecutionError, match="Try again later"):
            await found.ensure(catalog["song"].endpoint)
    # Requests start no process while nothing was known just now.
    assert len(tries) == 1
    assert not catalog["song"].unchecked
    # Paid tasks wait until it is known.
    assert catalog.runnable_slugs() == [ENDPOINT.slug]


async def test_a_process_that_ends_at_each_trial_takes_the_endpoint_off_sale(module, monkeypatch):
    (module / "acme_dies.py").write_text("import os\nos._exit(1)\n")
    catalog, found = sold(capability("acme_dies:check"))
    monkeypatch.setattr("gateway.catalog.functions._UNKNOWN_S", 0.0)
    await found.begin()
    for _ in range(3):
        with pytest.raises(ExecutionError, match="Try again later"):
            await found.ensure(catalog["song"].endpoint)
    assert "cannot be loaded" in catalog["song"].unchecked
    assert not catalog["song"].sells_now
    (module / "acme_dies.py").write_text("def check(*_):\n    return b''\n# longer\n")
    await found.ensure(catalog["song"].endpoint)
    assert catalog["song"].sells_now


async def test_a_command_names_one_whose_process_ends(module):
    (module / "acme_dies.py").write_text("import os\nos._exit(1)\n")
    catalog, found = sold(capability("acme_dies:check"))
    await found.check_all()
    assert "cannot be loaded" in catalog["song"].unchecked


async def test_a_call_of_one_that_cannot_be_loaded_names_the_reason(module):
    sandbox = Sandbox(function="acme_functions:no_such")
    try:
        for _ in range(2):
            with pytest.raises(SandboxBroken, match="no attribute 'no_such'"):
                await sandbox.call(b"x" * 3_000_000)
    finally:
        sandbox.close()
