"""The shop of tests/unit/tasks, for tests that also need a server or a child process."""

from tests.unit.tasks.conftest import _short_pauses, api, jobs, shop

__all__ = ["_short_pauses", "api", "jobs", "shop"]
