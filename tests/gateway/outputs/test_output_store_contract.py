"""The contract of output stores: the disk, a bucket, both, and both with the bucket down."""

import hashlib
import threading
import time

import pytest

from gateway import Output, Result
from gateway.contracts.outputs import OutputStoreUnavailable
from gateway.errors import NotFound
from gateway.outputs import disk as local_module
from gateway.outputs.keys import MediaTypes
from gateway_bucket import outputs as bucket_module
from tests.conftest import PNG
from tests.plugins.gateway_bucket.app.conftest import fetch
from tests.unit.outputs.conftest import LEASE, PICTURE, found, listed

SOON = time.time() + 3600
LATER = time.time() + 86_400


async def shown(output_store, output, *, expires_at=SOON):
    """Fetch an output as a buyer does: (content, media type, file name)."""
    (link,) = await output_store.links([output], now=time.time(), expires_at=expires_at)
    if not link.startswith("/files/"):
        answer = await fetch(link)
        kept = {name.lower(): value for name, value in answer.headers.items()}
        if answer.status != 200:
            raise NotFound("gone")
        return answer.body, kept["content-type"], kept["content-disposition"]
    path, _, query = link.partition("?")
    asked = dict(part.split("=") for part in query.split("&"))
    key = path.removeprefix("/files/")
    file = output_store.open(key, **asked, now=time.time())
    headers = MediaTypes().headers_of(key)  # as the route sends it
    return file.read_bytes(), headers["Content-Type"], headers["Content-Disposition"]


async def test_an_output_is_kept_with_its_hash_and_size(output_store):
    (output,) = (await output_store.save(LEASE, PICTURE)).outputs
    assert output.sha256 == hashlib.sha256(PNG).hexdigest()
    assert (output.size_bytes, output.width, output.media_type) == (len(PNG), 1, "image/png")
    data, kind, name = await shown(output_store, output)
    assert (data, kind, name) == (PNG, "image/png", 'inline; filename="task-1-1.png"')


async def test_an_output_is_read_back_until_it_is_deleted(output_store):
    (output,) = (await output_store.save(LEASE, PICTURE)).outputs
    assert await output_store.read(output) == PNG
    await output_store.delete([output])
    with pytest.raises(OutputStoreUnavailable):
        await output_store.read(output)


async def test_text_is_an_output_as_well(output_store):
    stored = await output_store.save(LEASE, Result(outputs=PICTURE.outputs, text="# Größe\n"))
    assert stored.text == "# Größe\n"
    assert [output.media_type for output in stored.outputs] == ["image/png", "text/markdown"]
    data, kind, name = await shown(output_store, stored.outputs[1])
    assert data.decode() == "# Größe\n"
    assert (kind, name) == ("text/markdown; charset=utf-8", 'attachment; filename="task-1-2.md"')


@pytest.mark.parametrize(
    "kind", ["../../etc/passwd", "text/html", "image/svg+xml", "a\r\nSet-Cookie: b", ""]
)
async def test_a_kind_that_a_browser_may_run_is_only_saved_to_a_file(output_store, kind):
    odd = Output(data=b"<script>", media_type=kind)
    (output,) = (await output_store.save(LEASE, Result(outputs=(odd,)))).outputs
    assert output.key.endswith(f"{LEASE}/0.bin")
    assert await shown(output_store, output) == (
        b"<script>",
        "application/octet-stream",
        'attachment; filename="task-1-1.bin"',
    )


async def test_saving_again_replaces_what_is_there(output_store):
    await output_store.save(LEASE, Result(outputs=(Output(data=b"x", media_type="image/png"),)))
    (output,) = (await output_store.save(LEASE, PICTURE)).outputs
    assert (await shown(output_store, output))[0] == PNG
    assert await listed(output_store, LATER) == [output.key]


@pytest.mark.parametrize("odd", [None, "text", Output(data="text", media_type="image/png")])
async def test_what_is_no_output_is_the_providers_fault(output_store, odd):
    with pytest.raises(TypeError):
        await output_store.save(LEASE, Result(outputs=(odd,)))
    assert await listed(output_store, LATER) == []


async def test_a_large_output_is_hashed_off_the_loop(output_store, monkeypatch):
    threads = []
    for module in (local_module, bucket_module):

        def recorded(key, output, describe_output=module.describe_output):
            threads.append(threading.get_ident())
            return describe_output(key, output)

        monkeypatch.setattr(module, "describe_output", recorded)
    data = bytes(6_000_000)  # more than a piece of an upload in pieces
    large = Result(outputs=(Output(data=data, media_type="image/png"),))
    (output,) = (await output_store.save(LEASE, large)).outputs
    assert (await shown(output_store, output))[0] == data
    assert threads
    assert threading.get_ident() not in threads


async def test_links_stand_in_the_order_of_their_outputs(output_store):
    stored = await output_store.save(LEASE, Result(outputs=PICTURE.outputs * 3, text="text"))
    links = await output_store.links(stored.outputs, now=time.time(), expires_at=SOON)
    for link, output in zip(links, stored.outputs, strict=True):
        assert output.key.removeprefix("s3:") in link


async def test_what_is_deleted_is_gone_and_may_be_deleted_again(output_store):
    stored = await output_store.save(LEASE, Result(outputs=PICTURE.outputs, text="text"))
    picture, text = stored.outputs
    await output_store.delete([picture])
    with pytest.raises(NotFound):
        await shown(output_store, picture)
    assert (await shown(output_store, text))[0] == b"text"
    await output_store.delete(stored.outputs)
    await output_store.delete(stored.outputs)
    await output_store.delete([])


async def test_what_is_kept_is_listed_with_its_task_once_it_is_old(output_store):
    names = [f"task-{number}-0123456789abcdef" for number in range(250)]
    stored = [await output_store.save(name, Result(text="x")) for name in names]
    assert await listed(output_store, time.time() - 3600) == []
    old = await found(output_store, LATER)
    assert sorted(kept.key for kept in old) == sorted(one.outputs[0].key for one in stored)
    assert {kept.task_id for kept in old} == {f"task-{number}" for number in range(250)}
    await output_store.delete(old)
    assert await listed(output_store, LATER) == []


async def test_nothing_kept_is_an_empty_list(output_store):
    assert await listed(output_store, LATER) == []


async def test_a_probe_tells_where_outputs_go_and_leaves_nothing(output_store, folder):
    try:
        assert "check" not in await output_store.probe()
    except OutputStoreUnavailable:
        assert not folder.exists()  # the bucket that is down
    assert await listed(output_store, LATER) == []
