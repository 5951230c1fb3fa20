"""Facilitators to test against: the official package's own, on a port, with faults."""

import itertools
import json
import threading

import attrs
from eth_account import Account
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response
from x402 import x402FacilitatorSync
from x402.mechanisms.evm import FacilitatorWeb3Signer
from x402.mechanisms.evm.exact import ExactEvmFacilitatorScheme
from x402.mechanisms.evm.exact.v1.facilitator import ExactEvmSchemeV1
from x402.schemas.helpers import parse_payment_payload, parse_payment_requirements

_numbers = itertools.count(1)


class OfficialFacilitator:
    """The official `x402` package's facilitator, sending on the embedded chain."""

    def __init__(self, chain, versions=(1, 2)) -> None:
        self.account = Account.create()
        chain.fund(self.account.address, eth_wei=10**18, usdc_units=0)
        signer = FacilitatorWeb3Signer(self.account.key.hex(), chain.rpc_url)
        self._facilitator = x402FacilitatorSync()
        if 2 in versions:
            self._facilitator.register(["eip155:8453"], ExactEvmFacilitatorScheme(signer))
        if 1 in versions:
            self._facilitator.register_v1(["base"], ExactEvmSchemeV1(signer))

    def supported(self, _: Request) -> dict:
        return self._facilitator.get_supported().model_dump()

    def verify(self, request: Request) -> dict:
        return self._facilitator.verify(*_parsed(request)).model_dump(exclude_none=True)

    def settle(self, request: Request) -> dict:
        return self._facilitator.settle(*_parsed(request)).model_dump(exclude_none=True)


def _parsed(request: Request):
    body = request.get_json()
    terms = parse_payment_requirements(body["x402Version"], body["paymentRequirements"])
    return parse_payment_payload(body["paymentPayload"]), terms


@attrs.frozen
class Seen:
    """One received request."""

    method: str
    path: str  # without the prefix
    body: dict | None
    headers: dict


class FacilitatorSite:
    """A facilitator on a port; `faults` has the fault of each path."""

    def __init__(self, server: HTTPServer, official: OfficialFacilitator | None = None) -> None:
        self.official = official
        self.faults = {}
        self.seen: list[Seen] = []
        self.healed = threading.Event()
        # Coinbase's URL has a path too; a unique one rejects late requests of another test.
        self._prefix = f"/{next(_numbers)}/platform/v2/x402"
        self.url = server.url_for(self._prefix)
        for path in ("/supported", "/verify", "/settle"):
            server.expect_request(self._prefix + path).respond_with_handler(self._answer)

    def heal(self) -> None:
        self.faults.clear()
        self.healed.set()

    def count(self, path: str) -> int:
        return sum(seen.path == path for seen in self.seen)

    def bodies(self, path: str) -> list:
        return [seen.body for seen in self.seen if seen.path == path]

    def really(self, request: Request) -> dict:
        """Handle the request, and return the correct response."""
        return getattr(self.official, self._path(request)[1:])(request)

    def _answer(self, request: Request) -> Response:
        path = self._path(request)
        body = request.get_json() if request.method == "POST" else None
        self.seen.append(Seen(request.method, path, body, dict(request.headers)))
        fault = self.faults.get(path)
        return fault(self, request) if fault else answer(self.really(request))

    def _path(self, request: Request) -> str:
        return request.path.removeprefix(self._prefix)


def answer(body, status=200, **headers) -> Response:
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    return Response(text, status, headers, content_type="application/json")


# -- faults


def says(body, status=200, **headers):
    """Respond with this and do nothing."""
    return lambda site, request: answer(body, status, **headers)


def settles_but_says(body, status=200, **headers):
    """Handle the request, then respond with this."""

    def fault(site, request):
        site.really(request)
        return answer(body, status, **headers)

    return fault


def hangs(site, request):
    site.healed.wait(30)
    return answer({}, 503)


def settles_and_hangs(site, request):
    site.really(request)
    return hangs(site, request)


def settles_and_changes(**changes):
    """Handle the request, and change some fields of the correct response."""
    return lambda site, request: answer(site.really(request) | changes)


# -- false responses, all within a client's limits

NEVER_MINED = "0x" + "ab" * 32
REFUSED = {
    "success": False,
    "errorReason": "unexpected_settle_error",
    "transaction": "",
    "network": "base",
}
SUCCESS = {"success": True, "transaction": NEVER_MINED, "network": "eip155:8453", "payer": "0x"}

LIES = {
    "success false": (REFUSED,),
    "pending": (REFUSED | {"errorReason": "settlement_pending", "transaction": NEVER_MINED},),
    "400 success false": (REFUSED, 400),
    "a hash that never lands": (SUCCESS,),
    "another network": (SUCCESS | {"network": "eip155:84532"},),
    "no network": ({"success": True, "transaction": NEVER_MINED},),
    "no hash": (SUCCESS | {"transaction": ""},),
    "half a hash": (SUCCESS | {"transaction": "0xabc"},),
    "a number as hash": (SUCCESS | {"transaction": 7},),
    "success as text": (SUCCESS | {"success": "true"},),
    "an empty object": ({},),
    "a list": ([],),
    "no JSON": ("<html>Bad Gateway</html>",),
    "not UTF-8": (b"\xff\xfe{",),
    "nested": ("[" * 50_000,),
    "oversized": (" " * 70_000 + "{}",),
    "401": ({"error": "unauthorized"}, 401),
    "402": ({"error": "pay me"}, 402),
    "404": ("", 404),
    "429": ({}, 429),
    "500": ({"error": "oops"}, 500),
    "503": ("", 503),
    "a redirect": (SUCCESS, 307),
}
