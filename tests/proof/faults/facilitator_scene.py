"""A gateway with a facilitator that fails on demand, for many cases in turn."""

import socket
import struct
import threading

from pytest_httpserver import HTTPServer

from gateway_facilitator_settler.client import TIMEOUTS_S, FacilitatorClient
from gateway_facilitator_settler.settler import FacilitatorTiming
from tests.gateway.facilitator.facilitators import (
    NEVER_MINED,
    REFUSED,
    SUCCESS,
    FacilitatorSite,
    OfficialFacilitator,
    answer,
    hangs,
    says,
    settles_and_changes,
    settles_and_hangs,
    settles_but_says,
)
from tests.proof.faults.scene import Scene

FAST = FacilitatorTiming(answer_s=0.2, pause_s=0.1, hash_pause_s=0.2, unreadable_s=0.0)
_TIMEOUT_S = 0.3  # of the call that hangs, and of no other


def reset(site, request):
    """Close the connection instead of responding."""
    connection = request.environ["werkzeug.socket"]
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.shutdown(socket.SHUT_RDWR)
    return answer({})


FAULTS = {
    "null": says(None),
    "time-out": hangs,
    "reset": reset,
    "429": says({}, 429),
    "500": says({"error": "oops"}, 500),
    "503": says("", 503),
    "garbage": says("<html>Bad Gateway</html>"),
    "huge body": says(" " * 70_000 + "{}"),
    "redirect": says(SUCCESS, 307, Location="http://127.0.0.1:9/"),
    "says no": says(
        REFUSED | {"isValid": False, "invalidReason": "insufficient_funds", "kinds": []}
    ),
    "no hash": says(SUCCESS | {"transaction": ""}),
    "never lands": says(SUCCESS | {"transaction": NEVER_MINED}),
    "done, then 500": settles_but_says({"error": "oops"}, 500),
    "done, then time-out": settles_and_hangs,
    "done, then no": settles_but_says(REFUSED),
    "other network": settles_and_changes(network="eip155:84532"),
}


class FacilitatorProxy:
    """The facilitator with the faults of `cases`; calls are named by method and path."""

    def __init__(self, site: FacilitatorSite, client: FacilitatorClient) -> None:
        self._site = site
        self._client = client

    @property
    def seen(self) -> list[str]:
        return [f"{seen.method} {seen.path}" for seen in self._site.seen]

    def break_call(self, call: str, fault) -> None:
        path = call.partition(" ")[2]
        self._site.seen.clear()
        self._site.healed = threading.Event()
        self._site.faults[path] = fault
        if fault in (hangs, settles_and_hangs):
            self._client.timeouts_s = {**TIMEOUTS_S, path: _TIMEOUT_S}

    def heal(self) -> None:
        self._client.timeouts_s = TIMEOUTS_S
        self._site.heal()


class FacilitatorScene(Scene):
    """A scene whose settler is the facilitator's."""

    def __init__(self) -> None:
        self._server = HTTPServer(threaded=True)
        self._server.start()
        self._site = FacilitatorSite(self._server)
        super().__init__(endpoints=1, settlement="facilitator", facilitator_url=self._site.url)
        self._site.official = OfficialFacilitator(self.chain)
        client = self.gateway.services.settlements.settler._client
        self.facilitator = FacilitatorProxy(self._site, client)

    def forget_checks(self, *, timeout_s: float) -> None:
        """Let the gateway read /supported again."""
        settler = self.gateway.services.settlements.settler
        settler._cached_until = settler._quiet_until = 0.0

    def close(self) -> None:
        self._site.heal()
        super().close()
        self._server.clear()
        self._server.stop()
