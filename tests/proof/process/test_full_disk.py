"""The real process on a volume that fills up: it alerts, stops selling, and sells again."""

import http.server
import json
import threading

import attrs
import pytest

from tests.conftest import WALLET, Payer, one_server
from tests.proof.process.gateway_process import PATIENCE_S, until
from tests.volumes import fill_bytes, fill_inodes, mounted, needs_root

# Half a second instead of the gateway's usual half minute.
FAST = """
import functools
import gateway.app as app
from gateway_operator.alarms import assembly, rounds
app.Timing = functools.partial(app.Timing, alarms_s=0.2)
rounds.HOLDS_S["check"] = 0.5
assembly.Heartbeat = functools.partial(assembly.Heartbeat, every_s=0.2)
"""
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@attrs.define
class Outside:
    """The operator's URLs: the posted alarms, and the number of heartbeats."""

    url: str = ""
    alarms: list[dict] = attrs.field(factory=list)
    beats: int = 0

    def told(self, key: str) -> list[dict]:
        return [one for one in self.alarms if one["key"] == key]


@pytest.fixture
def outside():
    found = Outside()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.beats += 1
            self.answer()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.alarms.append(json.loads(body)["data"])
            self.answer()

        def answer(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield found
        server.shutdown()
        serving.join()


@needs_root
@one_server
@pytest.mark.parametrize("fill", [fill_bytes, fill_inodes])
def test_a_full_disk_is_told_stops_heartbeat_and_sales_and_ends_when_freed(
    served, chain, outside, tmp_path, fill
):
    with mounted(tmp_path / "volume", "size=24m,nr_inodes=300") as folder:
        served.environment |= {
            "GATEWAY_DATA_DIR": str(folder),
            "GATEWAY_ALARM_WEBHOOK": f"{outside.url}/alarms",
            "GATEWAY_ALARM_WEBHOOK_SECRET": SECRET,
            "GATEWAY_HEARTBEAT_URL": f"{outside.url}/beat",
        }
        served.patch(FAST)
        served.start()
        served.let_go()
        served.bought(Payer(chain).header())
        until(lambda: outside.beats)
        held, paid = fill(folder), chain.usdc_balance(WALLET)
        for _ in range(3):
            status, body = served.buy(Payer(chain).header())
            assert (status, body["code"]) == (500, "EXECUTION_ERROR")
        assert served.request("GET", "/api/ready")[0] == 503
        (alarm,) = until(lambda: outside.told("check:disk"))
        assert alarm["urgency"] == "urgent"
        assert alarm["text"].startswith("The disk is full: free some space.")
        beats = outside.beats
        assert chain.usdc_balance(WALLET) == paid
        for path in held:
            path.unlink()
        until(lambda: served.request("GET", "/api/ready")[0] == 200)
        assert outside.beats == beats
        task_id = served.bought(Payer(chain).header())
        assert served.task(task_id, wait_s=20)["status"] == "completed"
        fill(folder)
        served.stop()
        assert served.process.wait(PATIENCE_S) == 0
