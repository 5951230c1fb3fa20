"""Works on the durable queue: a task goes through its provider to the artifacts."""

from gateway.tasks.pool import WorkerPool

__all__ = ["WorkerPool"]
