"""Works on paid tasks: from the durable queue through a provider to the stored result.

Does not belong here: the queue itself (`gateway.store`), payments and refunds (`gateway.payments`).
"""

from gateway.tasks.pool import WorkerPool
from gateway.tasks.timing import TaskTiming

__all__ = ["TaskTiming", "WorkerPool"]
