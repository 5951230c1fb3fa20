"""Outputs on disk: written whole, hashed, handed out by links that expire, deleted on time."""
# ruff: noqa: ASYNC110 - tests look from outside, where no event tells

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from gateway import Output, Result, retention
from gateway.artifacts import LocalArtifacts
from gateway.errors import NotFound
from gateway.store import SqliteStore
from gateway.testing.store_facts import NOW, leased
from tests.conftest import PNG

PICTURE = Result(outputs=(Output(data=PNG, media_type="image/png", width=1, height=1),))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "outputs"


@pytest.fixture
def artifacts(folder):
    return LocalArtifacts(folder, "secret")


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def opened(artifacts, link, *, now=NOW) -> Path:
    """Open a link as the route does."""
    path, _, query = link.partition("?")
    asked = dict(part.split("=") for part in query.split("&"))
    return artifacts.open(path.removeprefix("/files/"), **asked, now=now)


# -- saving


async def test_an_output_is_kept_with_its_hash_and_size(artifacts, folder):
    stored = await artifacts.save("task", PICTURE)
    (output,) = stored.outputs
    assert (folder / output.key).read_bytes() == PNG
    assert output.sha256 == hashlib.sha256(PNG).hexdigest()
    assert (output.size_bytes, output.width, output.media_type) == (len(PNG), 1, "image/png")
    assert files(folder) == [output.key]


async def test_text_is_an_output_as_well(artifacts, folder):
    stored = await artifacts.save("task", Result(outputs=PICTURE.outputs, text="# Größe\n"))
    assert stored.text == "# Größe\n"
    assert [output.media_type for output in stored.outputs] == ["image/png", "text/markdown"]
    assert (folder / stored.outputs[1].key).read_text("utf-8") == "# Größe\n"


async def test_an_unknown_kind_of_file_is_kept(artifacts, folder):
    odd = Output(data=b"x", media_type="../../etc/passwd")
    stored = await artifacts.save("task", Result(outputs=(odd,)))
    assert stored.outputs[0].key.endswith(".bin")
    assert len(files(folder)) == 1


async def test_the_bytes_are_on_the_disk_before_the_name_is(artifacts, folder, monkeypatch):
    """File synced, then renamed, then both folders synced."""
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
    await artifacts.save("task", PICTURE)
    assert steps[:2] == [("sync", ".partial"), ("rename", ".partial")]
    assert {name for kind, name in steps[2:] if kind == "sync"} == {"task", "outputs"}


async def test_a_write_that_fails_leaves_no_output(artifacts, folder, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        await artifacts.save("task", PICTURE)
    assert [name for name in files(folder) if not name.endswith(".partial")] == []


async def test_saving_again_after_a_crash_replaces_what_was_there(artifacts, folder):
    (folder / "task").mkdir(parents=True)
    (folder / "task" / "0.partial").write_bytes(b"half")
    stored = await artifacts.save("task", PICTURE)
    assert (folder / stored.outputs[0].key).read_bytes() == PNG


# -- links


async def test_a_link_opens_its_output_until_it_expires(artifacts, folder):
    (output,) = (await artifacts.save("task", PICTURE)).outputs
    link = artifacts.link(output, expires_at=NOW + 10)
    assert link.startswith("/files/")
    assert opened(artifacts, link, now=NOW + 9) == folder / output.key
    for late in (10, 11, 10**6):
        with pytest.raises(NotFound):
            opened(artifacts, link, now=NOW + late)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.png", "1.png"),
        ("task/", "other/"),
        ("task/", "../task/"),
        ("expires=", "expires=9"),
        ("expires=", "expires=+"),
        ("expires=", "expires=%20"),
        ("signature=", "signature=A"),
    ],
)
async def test_a_changed_link_opens_nothing(artifacts, old, new):
    (output,) = (await artifacts.save("task", PICTURE)).outputs
    await artifacts.save("other", PICTURE)
    link = artifacts.link(output, expires_at=NOW + 10)
    with pytest.raises(NotFound):
        opened(artifacts, link.replace(old, new))


@pytest.mark.parametrize(
    "key",
    ["../secret.txt", "/etc/passwd", "task/../../secret.txt", "", ".", "task", "a\0b", "%2e%2e/s"],
)
async def test_a_link_leads_nowhere_else(artifacts, folder, key):
    (folder.parent / "secret.txt").write_text("secret")
    for signature in ("", "x", "." * 10):
        with pytest.raises(NotFound):
            artifacts.open(key, expires=str(int(NOW) + 10), signature=signature, now=NOW)


async def test_a_link_of_another_secret_opens_nothing(artifacts, folder):
    (output,) = (await artifacts.save("task", PICTURE)).outputs
    link = LocalArtifacts(folder, "another").link(output, expires_at=NOW + 10)
    with pytest.raises(NotFound):
        opened(artifacts, link)


async def test_a_link_to_a_deleted_output_opens_nothing(artifacts):
    (output,) = (await artifacts.save("task", PICTURE)).outputs
    link = artifacts.link(output, expires_at=NOW + 10)
    await artifacts.delete([output])
    with pytest.raises(NotFound):
        opened(artifacts, link)


async def test_deleting_removes_the_folder_and_may_be_repeated(artifacts, folder):
    stored = await artifacts.save("task", Result(outputs=PICTURE.outputs, text="text"))
    await artifacts.delete(stored.outputs[:1])
    assert files(folder) == [stored.outputs[1].key]
    await artifacts.delete(stored.outputs)
    await artifacts.delete(stored.outputs)
    assert list(folder.iterdir()) == []


# -- retention


@pytest.fixture
async def store(tmp_path):
    async with SqliteStore(tmp_path / "gateway.db") as opened_store:
        yield opened_store


async def kept(store, artifacts, number, *, expires_at=NOW + 10):
    lease = await leased(store, number)
    stored = await artifacts.save(lease.task_id, PICTURE)
    await store.complete(lease, stored, expires_at=expires_at, now=NOW)
    return lease.task_id


async def test_a_sweep_deletes_what_is_past_its_time_and_marks_its_task(store, artifacts, folder):
    old = await kept(store, artifacts, 1)
    new = await kept(store, artifacts, 2, expires_at=NOW + 30)
    assert await retention.sweep(store, artifacts, NOW + 9) == 0
    assert await retention.sweep(store, artifacts, NOW + 20) == 1
    assert await retention.sweep(store, artifacts, NOW + 20) == 0
    assert all(name.startswith(new) for name in files(folder))
    assert (await store.task(old)).outputs_gone
    assert not (await store.task(new)).outputs_gone


async def test_a_crash_between_deleting_and_marking_is_swept_again(
    store, artifacts, folder, monkeypatch
):
    task_id = await kept(store, artifacts, 1)
    forget = store.forget_outputs

    async def crashes(task_ids):
        raise OSError("the process ends here")

    monkeypatch.setattr(store, "forget_outputs", crashes)
    with pytest.raises(OSError, match="ends here"):
        await retention.sweep(store, artifacts, NOW + 20)
    assert files(folder) == []
    monkeypatch.setattr(store, "forget_outputs", forget)
    assert await retention.sweep(store, artifacts, NOW + 20) == 1
    assert (await store.task(task_id)).outputs_gone


async def test_more_than_a_batch_is_swept_batch_by_batch(store, artifacts, folder, monkeypatch):
    monkeypatch.setattr(retention, "_BATCH", 2)
    for number in range(1, 6):
        await kept(store, artifacts, number)
    sweeper = asyncio.create_task(retention.sweep_forever(store, artifacts, lambda: NOW + 20))
    async with asyncio.timeout(5):
        while files(folder):
            await asyncio.sleep(0.01)
    sweeper.cancel()
    await asyncio.gather(sweeper, return_exceptions=True)


async def test_one_file_that_cannot_be_deleted_keeps_no_other(store, artifacts, folder):
    stuck = await kept(store, artifacts, 1)
    await kept(store, artifacts, 2)
    (path,) = [folder / name for name in files(folder) if name.startswith(stuck)]
    path.unlink()
    path.mkdir()  # a folder cannot be unlinked
    for _ in range(2):
        try:
            await retention.sweep(store, artifacts, NOW + 20)
        except OSError:
            continue
    assert files(folder) == []


# -- through the app


async def bought(gateway, payer):
    body = {"slug": "picture", "prompt": "a boat", "txHash": payer.transfer(20_000)}
    answer = await gateway.client.post("/api/proxy-generate", json=body)
    return await gateway.wait((await answer.get_json())["taskId"])


async def test_a_result_is_downloaded_by_the_link_in_its_task(gateway, payer):
    task = await bought(gateway, payer)
    (output,) = task["result"]["outputs"]
    answer = await gateway.client.get(output["url"].removeprefix("http://gateway.test"))
    assert (answer.status_code, await answer.get_data()) == (200, PNG)
    assert answer.headers["Content-Type"] == "image/png"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert hashlib.sha256(PNG).hexdigest() == output["sha256"]


async def test_after_its_retention_a_task_says_that_its_outputs_are_gone(gateway, payer, clock):
    task = await bought(gateway, payer)
    (output,) = task["result"]["outputs"]
    clock.offset_s = 7 * 86_400 + 1
    services = gateway.services
    assert await retention.sweep(services.store, services.artifacts, clock()) == 1
    shown = await (await gateway.client.get(f"/api/task/{task['taskId']}")).get_json()
    assert shown["status"] == "completed"
    assert shown["result"]["outputs"][0]["expired"] is True
    assert shown["result"]["outputs"][0]["url"] is None
    gone = await gateway.client.get(output["url"].removeprefix("http://gateway.test"))
    assert (gone.status_code, (await gone.get_json())["code"]) == (404, "NOT_FOUND")
