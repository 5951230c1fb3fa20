"""The shop of tests/unit/tasks, for tests that also need a server or a child process."""

from tests.unit.tasks.conftest import api, jobs, shop

__all__ = ["api", "jobs", "shop"]
