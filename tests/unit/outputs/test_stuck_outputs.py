"""Outputs that cannot be deleted do not block the deletion of others."""

from gateway.contracts import OutputStoreUnavailable
from gateway.contracts.outputs import StoredFile
from gateway.outputs import DiskOutputs, retention

STUCK = 100  # as many as one step of the sweep takes


class Expired:
    """A store of expired outputs, the oldest first."""

    def __init__(self):
        self.tasks = [(f"task-{number:03}", [number]) for number in range(STUCK + 50)]

    async def expired_outputs(self, *, now, limit):
        return self.tasks[:limit]

    async def forget_outputs(self, gone):
        self.tasks = [task for task in self.tasks if task[0] not in gone]


class HalfClosed:
    """A place that refuses to delete the oldest outputs."""

    async def delete(self, outputs):
        if outputs[0] < STUCK:
            raise OutputStoreUnavailable("the bucket is closed to us")


async def test_what_can_be_deleted_is_although_a_hundred_before_it_cannot():
    store = Expired()
    assert await retention.sweep(store, HalfClosed(), 0) == 50
    assert [outputs for _, outputs in store.tasks] == [[number] for number in range(STUCK)]
    assert await retention.sweep(store, HalfClosed(), 0) == 0


async def test_a_gateway_without_its_bucket_keeps_the_records_of_the_objects(tmp_path):
    """The bucket's settings may be missing for one start only."""
    in_bucket = StoredFile(key="s3:shop/task-1/0.png", task_id="task-1", is_shared=True)
    store = Expired()
    store.tasks = [("task-1", [in_bucket])]
    assert await retention.sweep(store, DiskOutputs(tmp_path, "secret"), 0) == 0
    assert store.tasks == [("task-1", [in_bucket])]
