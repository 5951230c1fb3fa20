"""A lease returns the task's file, and reads no other one."""

from gateway.domain import Attachment, GenerationRequest
from gateway_testing.facts import NOW, queued
from tests.unit.store.conftest import on_writer


async def test_a_lease_reads_the_files_of_its_tasks_only(store):
    read = []

    def seen(data):
        read.append(data)
        return data

    def watch(db):
        # Of the suspects, the one that is due last comes first.
        db.execute("UPDATE tasks SET restarts = 9 - rowid, due_at = due_at + rowid / 100.0")
        db.create_function("seen", 1, seen)
        db.execute(
            "CREATE TEMP VIEW task_files AS SELECT task_id, seen(data) AS data FROM main.task_files"
        )

    for number in range(1, 5):
        file = Attachment(name="a.png", data=f"file {number}".encode())
        await queued(store, number, request=GenerationRequest(prompt="a boat", attachment=file))
    assert len(await store.queue.lease(4, lease_s=1, now=NOW)) == 4
    await on_writer(store, watch)
    # Each lease has expired, so its task is a suspect.
    (lease,) = await store.queue.lease(1, lease_s=60, now=NOW + 9, which="suspects")
    assert [lease.request.attachment.data] == read
