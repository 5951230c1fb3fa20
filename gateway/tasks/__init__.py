"""Works on the durable queue: a task goes through its provider to the output_store."""

from gateway.tasks.pool import WorkerPool

__all__ = ["WorkerPool"]
