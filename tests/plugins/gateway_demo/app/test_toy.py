"""`gateway plugins dev` runs the project's toy vendor, unless the plugin has a real key."""

import os
import urllib.request

import pytest

from gateway_demo.rehearsal.develop import start_toy
from gateway_demo.rehearsal.project import Project
from gateway_demo.tour.errors import DemoError
from gateway_testing.new_plugin import write_project


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in filter(lambda name: name.startswith("GATEWAY_"), list(os.environ)):
        monkeypatch.delenv(name)
    folder = write_project("acme-fast", tmp_path, "jobs")
    monkeypatch.chdir(folder)
    return Project.read(folder)


def test_the_plugin_is_led_to_the_running_toy(project, tmp_path):
    with start_toy(project, tmp_path) as values:
        assert set(values) == {"GATEWAY_ACME_FAST_API_KEY", "GATEWAY_ACME_FAST_BASE_URL"}
        url = f"{values['GATEWAY_ACME_FAST_BASE_URL']}/v1/account"
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.status == 200
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=60)


def test_a_real_key_or_no_script_means_no_toy(project, tmp_path, monkeypatch):
    monkeypatch.setenv("GATEWAY_ACME_FAST_API_KEY", "sk-real")
    with start_toy(project, tmp_path) as values:
        assert values == {}
    monkeypatch.delenv("GATEWAY_ACME_FAST_API_KEY")
    (project.folder / "gateway.toml").write_text('acme_fast_api_key = "sk-real"\n')
    with start_toy(project, tmp_path) as values:
        assert values == {}
    (project.folder / "gateway.toml").unlink()
    (project.folder / "toy_api.py").unlink()
    with start_toy(project, tmp_path) as values:
        assert values == {}


def test_a_toy_that_fails_is_explained_by_its_last_lines(project, tmp_path):
    (project.folder / "toy_api.py").write_text("raise SystemExit('no Pillow here')\n")
    with (
        pytest.raises(DemoError, match="The toy vendor exited unexpectedly") as failed,
        start_toy(project, tmp_path),
    ):
        pass
    assert "no Pillow here" in failed.value.log
