"""Outputs on disk: complete after a power cut, and behind tamper-proof links."""

import os
import shutil
from pathlib import Path

import pytest

from gateway import Result
from gateway.contracts.outputs import OutputStoreUnavailable
from gateway.domain import StoredOutput
from gateway.errors import NotFound
from gateway.outputs import DiskOutputs
from gateway_testing.facts import NOW
from tests.conftest import PNG
from tests.unit.outputs.conftest import LEASE, PICTURE, listed


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def link_to(output_store, output, *, expires_at=NOW + 10):
    (link,) = await output_store.links([output], now=NOW, expires_at=expires_at)
    return link


def opened(output_store, link, *, now=NOW) -> Path:
    """Open a link as the route does."""
    path, _, query = link.partition("?")
    asked = dict(part.split("=") for part in query.split("&"))
    return output_store.open(path.removeprefix("/files/"), **asked, now=now)


# -- durably


@pytest.fixture
def steps(monkeypatch) -> list[tuple[str, str]]:
    """The syncs and renames, in order."""
    steps = []
    fsync, replace = os.fsync, Path.replace

    def recorded_fsync(handle):
        target = Path(f"/proc/self/fd/{handle}").readlink()
        steps.append(("sync", target.suffix or target.name))
        fsync(handle)

    def recorded_replace(self, target):
        steps.append(("rename", self.suffix))
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    return steps


ONE_FILE = [("sync", ".partial"), ("rename", ".partial")]


async def test_the_bytes_are_on_the_disk_before_the_name_is(local, folder, steps):
    """File synced, then renamed, then every folder with a new name in it synced."""
    folders = [("sync", LEASE), ("sync", "outputs")]
    await local.save(LEASE, PICTURE)
    assert steps == [("sync", folder.parent.name), *ONE_FILE, *folders]
    steps.clear()
    await local.save(LEASE, Result(outputs=PICTURE.outputs, text="a picture"))
    assert steps == [*ONE_FILE, *ONE_FILE, *folders]


async def test_an_outputs_folder_that_was_removed_is_made_durably_again(local, folder, steps):
    await local.save(LEASE, PICTURE)
    shutil.rmtree(folder)
    steps.clear()
    (output,) = (await local.save(LEASE, PICTURE)).outputs
    assert steps[0] == ("sync", folder.parent.name)
    assert (folder / output.key).read_bytes() == PNG


async def test_a_folder_whose_sync_failed_is_synced_by_the_next_save(
    local, folder, steps, monkeypatch
):
    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OutputStoreUnavailable):
            await local.save(LEASE, PICTURE)
    await local.save(LEASE, PICTURE)
    assert steps[0] == ("sync", folder.parent.name)


async def test_a_full_disk_is_not_the_providers_fault_and_leaves_no_output(
    local, folder, monkeypatch
):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputStoreUnavailable, match="No space left on device"):
        await local.save(LEASE, PICTURE)
    assert [name for name in files(folder) if not name.endswith(".partial")] == []


async def test_saving_again_after_a_crash_replaces_the_half(local, folder):
    (folder / LEASE).mkdir(parents=True)
    (folder / LEASE / "0.partial").write_bytes(b"half")
    (output,) = (await local.save(LEASE, PICTURE)).outputs
    assert files(folder) == [output.key]
    assert (folder / output.key).read_bytes() == PNG


async def test_deleting_removes_the_folder(local, folder):
    stored = await local.save(LEASE, PICTURE)
    await local.delete(stored.outputs)
    assert list(folder.iterdir()) == []


async def test_a_file_that_cannot_be_deleted_is_told(local, folder):
    (output,) = (await local.save(LEASE, PICTURE)).outputs
    (folder / output.key).unlink()
    (folder / output.key).mkdir()  # a folder cannot be unlinked
    with pytest.raises(OutputStoreUnavailable):
        await local.delete([output])


async def test_only_the_gateways_own_files_are_listed(local, folder):
    stored = await local.save(LEASE, PICTURE)
    (folder / LEASE / "notes.txt").write_text("the operator's")
    (folder / LEASE / "deeper").mkdir()
    (folder / "loose.png").write_bytes(PNG)
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "0.png").write_bytes(PNG)
    (folder / "linked").symlink_to(elsewhere)
    (folder / "task-2-0123456789abcdef").mkdir()  # a crash came before the file
    (folder / "task-3-0123456789abcdef").mkdir()
    (folder / "task-3-0123456789abcdef" / "0.partial").write_bytes(b"half")
    assert await listed(local, NOW * 2) == [
        stored.outputs[0].key,
        "task-2-0123456789abcdef/0.partial",
        "task-3-0123456789abcdef/0.partial",
    ]


# -- links


async def test_a_link_opens_its_output_until_it_expires(local, folder):
    (output,) = (await local.save(LEASE, PICTURE)).outputs
    link = await link_to(local, output)
    assert link.startswith("/files/")
    assert opened(local, link, now=NOW + 9) == folder / output.key
    for late in (10, 11, 10**6):
        with pytest.raises(NotFound):
            opened(local, link, now=NOW + late)


async def test_a_link_is_the_same_from_poll_to_poll_and_lasts_at_least_an_hour(local):
    (output,) = (await local.save(LEASE, PICTURE)).outputs
    hour = NOW // 3600 * 3600
    links = {
        (await local.links([output], now=hour + second, expires_at=NOW * 2))[0]
        for second in (0, 2, 1800, 3599)
    }
    assert len(links) == 1
    assert opened(local, links.pop(), now=hour + 3599 + 3600)


@pytest.mark.parametrize("key", ["7b6a1c1e-5d0f-4c43-9d53-0a1b2c3d4e5f/0.png", f"{LEASE}/12.md"])
async def test_the_keys_and_links_of_earlier_versions_still_open(local, folder, key):
    (folder / key).parent.mkdir(parents=True)
    (folder / key).write_bytes(PNG)
    older = StoredOutput(key=key, media_type="image/png", size_bytes=1, sha256="0")
    signature = {  # as the first version signed it, until 1800003600
        "7b6a1c1e-5d0f-4c43-9d53-0a1b2c3d4e5f/0.png": "5mBOZyitwAE8m8WJynV04pDCo9GnlO21qcQAofKCKnM",
        f"{LEASE}/12.md": "KMmg_7LgR_3drtZ_10A0ZQZ8x9p46fR7kPc39WisrKA",
    }[key]
    link = f"/files/{key}?expires=1800003600&signature={signature}"
    assert opened(local, link) == folder / key
    assert await link_to(local, older, expires_at=1_800_003_600) == link
    (kept,) = [kept async for batch in local.written_before(NOW * 2) for kept in batch]
    assert kept.task_id == key.partition("/")[0].removesuffix("-0123456789abcdef")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.png", "1.png"),
        ("task-1-", "task-2-"),
        ("task-1-", "../outputs/task-1-"),
        ("expires=", "expires=9"),
        ("expires=", "expires=+"),
        ("expires=", "expires=%20"),
        ("signature=", "signature=A"),
    ],
)
async def test_a_changed_link_opens_nothing(local, old, new):
    (output,) = (await local.save(LEASE, PICTURE)).outputs
    await local.save(LEASE.replace("task-1", "task-2"), PICTURE)
    link = await link_to(local, output)
    assert old in link
    with pytest.raises(NotFound):
        opened(local, link.replace(old, new))


@pytest.mark.parametrize(
    "key",
    ["../secret.txt", "/etc/passwd", "task/../../secret.txt", "", ".", "task", "a\0b", "%2e%2e/s"],
)
async def test_a_link_leads_nowhere_else(local, folder, key):
    folder.mkdir()
    (folder.parent / "secret.txt").write_text("secret")
    for signature in ("", "x", "." * 10):
        with pytest.raises(NotFound):
            local.open(key, expires=str(int(NOW) + 10), signature=signature, now=NOW)


async def test_a_link_of_another_secret_opens_nothing(local, folder):
    (output,) = (await local.save(LEASE, PICTURE)).outputs
    link = await link_to(DiskOutputs(folder, "another"), output)
    with pytest.raises(NotFound):
        opened(local, link)


async def test_a_link_to_a_deleted_output_opens_nothing(local):
    (output,) = (await local.save(LEASE, PICTURE)).outputs
    link = await link_to(local, output)
    await local.delete([output])
    with pytest.raises(NotFound):
        opened(local, link)
