"""Fixtures: a fake ComfyUI, a folder of workflows, and a gateway that sells them."""

import pytest

from gateway.sandbox.kinds import ResultChecks
from gateway_testing.fakes.server import serving
from tests.proof.comfyui import graphs
from tests.proof.comfyui.selling import make_provider, selling
from tests.proof.comfyui.server import ComfyServer


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """A busy machine, and the start of a real ComfyUI, take long."""
    monkeypatch.setattr("gateway_testing.provider.gateway_under_test.PATIENCE_S", 600.0)


@pytest.fixture(scope="session")
def _http():
    with serving() as one, serving() as other:
        yield one, other


@pytest.fixture(scope="session")
def results():
    """The checks of results; their processes are slow to start."""
    found = ResultChecks()
    yield found
    found.close()


@pytest.fixture
def comfy(_http):
    found = ComfyServer(_http[0])
    yield found
    found.gate.set()


@pytest.fixture
def comfy_2(_http):
    found = ComfyServer(_http[1])
    yield found
    found.gate.set()


@pytest.fixture
def folder(tmp_path):
    return graphs.write_all(tmp_path / "workflows")


@pytest.fixture
async def sales(comfy, folder, tmp_path, results):
    async with selling([comfy.url], folder, tmp_path / "data", results) as found:
        yield found


@pytest.fixture
async def provider(comfy, folder):
    """The provider alone, without a gateway."""
    found = make_provider(comfy.url, folder=folder)
    yield found
    await found.close()
