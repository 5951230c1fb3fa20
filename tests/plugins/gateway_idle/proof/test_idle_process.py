"""`gateway serve` ends with code 0 when it is idle, and its next start sells."""

import pytest

from tests.conftest import Payer, one_server
from tests.proof.process.gateway_process import PATIENCE_S, until

# While the file `idle` exists, no request has come for ages. Alarms wait for half a minute.
_TIME_PASSES = """
import os, pathlib
import gateway_idle
from gateway_operator.alarms.watch import AlarmWatch

gateway_idle._EVERY_S = 0.1
check = gateway_idle.IdleWatch.check

async def check_if_idle(self):
    if (pathlib.Path(os.environ["SLOW_FOLDER"]) / "idle").exists():
        self._gateway.requests.used_at = -1e6
        await check(self)

async def find_nothing(_):
    return []

gateway_idle.IdleWatch.check = check_if_idle
AlarmWatch.find_pending = find_nothing
"""
# Work comes once the process has decided to end.
_LATE_WORK = """
find_pending = gateway_idle.find_pending

async def find_late_work(gateway):
    if gateway.lifecycle.asleep.is_set():
        return ["late"]
    return await find_pending(gateway)

check_end = gateway_idle.IdleWatch.check_end

async def check_end_after_a_request(self):
    self._gateway.requests.begun += 1
    await check_end(self)

gateway_idle.IdleWatch.check_end = check_end_after_a_request

gateway_idle.find_pending = find_late_work
"""


@pytest.fixture
def idling(served):
    served.environment["GATEWAY_EXIT_WHEN_IDLE"] = "10m"
    served.patch(_TIME_PASSES)
    return served


def _ends(served, chain) -> str:
    """Sell a task, let the process end, and return the task's id."""
    served.start()
    task_id = served.bought(Payer(chain).header())
    (served.folder / "idle").touch()
    until(lambda: ["tasks"] in [line["pending"] for line in served.events("idle.stays")])
    assert served.process.poll() is None
    served.let_go()
    assert served.process.wait(PATIENCE_S) == 0
    assert len(served.events("idle.ends")) == len(served.events("stopped")) == 1
    return task_id


@one_server
def test_an_idle_process_ends_with_code_0_and_loses_nothing(idling, chain):
    task_id = _ends(idling, chain)
    (idling.folder / "idle").unlink()
    idling.start()
    assert idling.task(task_id)["status"] == "completed"


@pytest.mark.full
@pytest.mark.parametrize("http_server", ["uvicorn"], indirect=True)
def test_so_does_the_other_server(idling, chain):
    _ends(idling, chain)


@pytest.mark.full
@one_server
def test_work_that_came_too_late_makes_the_exit_a_failure(idling):
    """Then a host with restart on failure starts it again."""
    idling.patch(_TIME_PASSES + _LATE_WORK)
    idling.start()
    (idling.folder / "idle").touch()
    assert idling.process.wait(PATIENCE_S) == 1
    assert "Work came while the gateway went to sleep (late)." in idling.log_text()
