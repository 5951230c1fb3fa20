"""Runs paid tasks, from the queue through a provider to the stored result.

The queue itself is in `gateway.store`; payments and refunds are in `gateway.payments`.
"""

from gateway.tasks.pool import WorkerPool
from gateway.tasks.timing import TaskTiming

__all__ = ["TaskTiming", "WorkerPool"]
