"""`gateway serve` ends with code 0 when it is idle, and its next start sells."""

from tests.conftest import Payer, one_server
from tests.proof.process.gateway_process import PATIENCE_S, until

# A minute without use passes in a second, and is checked for five times a second.
_HURRY = """
import time
import gateway.web.server.serve
import gateway_idle
from gateway_operator.alarms.watch import AlarmWatch

gateway_idle._EVERY_S = 0.2
AlarmWatch.find_pending = lambda _: _nothing()
find_idle_s = gateway_idle.idle_s_of
gateway_idle.idle_s_of = lambda settings: find_idle_s(settings) / 60

async def _nothing():
    return []
"""


@one_server
def test_an_idle_process_ends_with_code_0_and_loses_nothing(served, chain, key):
    served.environment["GATEWAY_EXIT_WHEN_IDLE"] = "2m"
    served.patch(_HURRY)
    served.start()
    task_id = served.bought(Payer(chain).header())
    until(lambda: served.events("idle.stays"))
    assert served.events("idle.stays")[0]["pending"] == ["tasks"]
    assert served.process.poll() is None
    served.let_go()
    assert served.process.wait(PATIENCE_S) == 0
    assert [line["event"] for line in served.events("idle.ends")] == ["idle.ends"]
    assert served.events("stopped")
    served.start()
    assert served.task(task_id)["status"] == "completed"
