"""A plugin's project as `gateway plugins dev` finds it: no installation, and changes are seen."""

import importlib.metadata
import os

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.errors import SettingsError
from gateway_demo.rehearsal.project import Project, find_changes, stamps_of
from gateway_testing.new_plugin import KINDS, write_project

GROUPS = """
[project]
name = "gateway-ratings"
[project.entry-points.gateway]
ratings = "ratings.plugin"
[project.entry-points."gateway.migrations"]
ratings = "ratings.migrations"
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_project_needs_no_installation(tmp_path, kind):
    project = Project.read(write_project("acme-fast", tmp_path, kind))
    assert project.prefixes == ["acme_fast"]
    assert (project.source / "gateway_acme_fast.py").is_file()
    project.write_metadata(tmp_path / "site")
    (found,) = importlib.metadata.distributions(path=[str(tmp_path / "site")])
    (entry,) = found.entry_points
    assert found.name == "gateway-acme-fast"
    assert (entry.group, entry.name, entry.value) == ("gateway", "acme-fast", "gateway_acme_fast")


def test_all_groups_of_entry_points_are_found(tmp_path):
    (tmp_path / "pyproject.toml").write_text(GROUPS)
    project = Project.read(tmp_path)
    assert (project.prefixes, project.source) == (["ratings.plugin"], tmp_path)
    project.write_metadata(tmp_path / "site")
    (found,) = importlib.metadata.distributions(path=[str(tmp_path / "site")])
    assert {entry.group for entry in found.entry_points} == {"gateway", "gateway.migrations"}


def test_a_changed_new_or_removed_file_is_a_change(tmp_path):
    project = Project.read(write_project("acme", tmp_path))
    plugin = project.source / "gateway_acme.py"
    before = stamps_of(project.folder)
    assert find_changes(project.folder, before) == []
    os.utime(plugin, ns=(1, 1))
    (project.source / "more.py").write_text("")
    (project.folder / "toy_api.py").unlink()
    assert find_changes(project.folder, before) == [
        "src/gateway_acme.py",
        "src/more.py",
        "toy_api.py",
    ]


def test_what_a_test_or_the_gateway_writes_is_no_change(tmp_path):
    project = Project.read(write_project("acme", tmp_path))
    before = stamps_of(project.folder)
    for place in (".venv/x.py", "src/__pycache__/x.py", ".pytest_cache/x.py", "gateway-data/x.db"):
        (project.folder / place).parent.mkdir(parents=True)
        (project.folder / place).write_text("")
    os.utime(project.folder / "tests" / "test_acme.py", ns=(1, 1))
    assert find_changes(project.folder, before) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "gateway plugins new acme"),
        ("[project", "pyproject.toml cannot be read"),
        ('[project]\nname = "x"\n', "has no .project.entry-points.gateway."),
    ],
)
def test_a_folder_without_a_plugin_is_one_sentence(tmp_path, monkeypatch, text, sentence):
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(SettingsError, match=sentence):
        Project.read(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["plugins", "dev"])
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
