"""Saved files get names from the buyer, and overwrite nothing."""

import pytest

from gateway.domain.capabilities import DECLARED
from gateway_buyer.errors import NotBought, Unfinished
from gateway_buyer.files import Destination
from gateway_media import capabilities

TASK = "6f1c2f5e-9d0b-4c57-8f0e-3d1a5b7c9e21"


def into(path, *, may_overwrite=False):
    return Destination(path=path, may_overwrite=may_overwrite)


def test_a_folder_gets_a_name_from_slug_task_and_type(tmp_path):
    (path,) = into(tmp_path).choose_paths("my-model.v2", TASK, ["image/PNG; q=1"])
    assert path == tmp_path / "my-model.v2-6f1c2f5e.png"


def test_a_result_of_every_bundled_capability_gets_its_own_ending(tmp_path):
    bundled = (*DECLARED.values(), *capabilities.ALWAYS, *capabilities.WITH_SOUND)
    types = {
        media_type: ending
        for capability in bundled
        for kind in capability.results
        for media_type, ending in kind.media_types.items()
    }
    for media_type, ending in types.items():
        (path,) = into(tmp_path).choose_paths("a", TASK, [media_type])
        assert path.suffix == f".{ending}"


@pytest.mark.parametrize("slug", ["../../etc/passwd", "/etc/passwd", "a/b", "", "..", "a\0b", "ü"])
def test_a_strangers_slug_is_no_path(tmp_path, slug):
    (path,) = into(tmp_path).choose_paths(slug, TASK, ["../../sh"])
    assert path == tmp_path / "task-6f1c2f5e.bin"


def test_several_outputs_are_numbered(tmp_path):
    types = ["image/png", "text/markdown"]
    assert [path.name for path in into(tmp_path).choose_paths("a", TASK, types)] == [
        "a-6f1c2f5e-1.png",
        "a-6f1c2f5e-2.md",
    ]
    named = into(tmp_path / "b.png").choose_paths("a", TASK, types)
    assert [path.name for path in named] == ["b.png", "b-2.png"]


def test_a_file_that_exists_is_refused_before_the_payment(tmp_path):
    taken = tmp_path / "taken.png"
    taken.write_bytes(b"mine")
    with pytest.raises(NotBought, match=r"exists\. Name another file by --out, or .*--force"):
        into(taken).check()
    into(taken, may_overwrite=True).check()


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    taken = tmp_path / "taken.png"
    taken.write_bytes(b"mine")
    with pytest.raises(Unfinished, match="exists"):
        into(taken).save(taken, b"bought")
    assert (taken.read_bytes(), list(tmp_path.iterdir())) == (b"mine", [taken])


def test_what_was_saved_before_is_saved(tmp_path):
    path = tmp_path / "bought.png"
    into(path).save(path, b"bought")
    into(path).save(path, b"bought")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"bought", [path])


def test_a_link_with_that_name_is_not_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link.png"
    link.symlink_to(target)
    with pytest.raises(NotBought, match="exists"):
        into(link).check()
    into(link, may_overwrite=True).save(link, b"bought")
    assert (link.is_symlink(), link.read_bytes(), target.exists()) == (False, b"bought", False)


def test_force_replaces_a_file(tmp_path):
    taken = tmp_path / "taken.png"
    taken.write_bytes(b"mine")
    into(taken, may_overwrite=True).save(taken, b"bought")
    assert (taken.read_bytes(), list(tmp_path.iterdir())) == (b"bought", [taken])


def test_a_missing_folder_is_refused_before_the_payment(tmp_path):
    with pytest.raises(NotBought, match="Nothing can be saved in"):
        into(tmp_path / "missing" / "a.png").check()
