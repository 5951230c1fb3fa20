"""`gateway plugins licences`."""

import json
import sys
from types import ModuleType, SimpleNamespace

from click.testing import CliRunner

from gateway.cli import main


def listed(*options: str) -> str:
    result = CliRunner().invoke(main, ["plugins", "licences", *options], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_without_models_it_says_how_to_get_them(monkeypatch):
    monkeypatch.setattr("gateway_check.licences.find_spec", lambda _: None)
    assert listed() == "No models are installed: pip install 'generation-gateway[models]'\n"
    assert json.loads(listed("--json")) == []


def test_it_lists_the_weights_and_the_packages_that_run_them(monkeypatch):
    weights = SimpleNamespace(
        name="net.onnx", licence="Apache-2.0", source="example.org/net", sha256="ab" * 32
    )
    package = ModuleType("generation_gateway_models")
    package.licences = lambda: (weights,)
    monkeypatch.setitem(sys.modules, "generation_gateway_models", package)
    monkeypatch.setattr("gateway_check.licences.find_spec", lambda _: True)
    first, *packages = json.loads(listed("--json"))
    assert first == vars(weights)
    licences = {row["name"].partition(" ")[0]: row["licence"] for row in packages}
    assert "MIT" in licences["onnxruntime"]
    assert licences["numpy"].startswith("BSD-3-Clause")
    assert not {"generation-gateway", "generation-gateway-models", "quart"} & licences.keys()
