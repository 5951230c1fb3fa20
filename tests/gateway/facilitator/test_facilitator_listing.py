"""The data for a facilitator's Bazaar at each settlement, and the status that it returns."""

import base64
import json

import attrs
import pytest
from x402.extensions.bazaar.facilitator import extract_discovery_info

from gateway.settings import EndpointOverride
from gateway_facilitator_settler.listings import read
from tests.authorizations import decoded, header_of
from tests.conftest import WALLET, buy, running
from tests.gateway.facilitator.facilitators import answer, says

PRICE = 20_000
URL = "http://gateway.test/api/x402/picture"
EVIL = "https://evil.example/api"


@pytest.fixture
def versions():
    return (2,)


def echo_of(payer, challenge: dict, **changes) -> str:
    """Return the header of a client that echoes the challenge's resource and extensions."""
    echo = {"resource": challenge["resource"], "extensions": challenge["extensions"]}
    return header_of(payer.payload(version=2) | echo | changes)


async def challenge_of(gateway) -> dict:
    return decoded((await buy(gateway, None)).headers["PAYMENT-REQUIRED"])


async def test_the_facilitator_hears_what_the_402_says(gateway, payer, site):
    challenge = await challenge_of(gateway)
    assert (await buy(gateway, echo_of(payer, challenge))).status_code == 200
    (verified,), (settled,) = site.bodies("/verify"), site.bodies("/settle")
    assert verified == settled
    payload = settled["paymentPayload"]
    assert payload["resource"] == challenge["resource"]
    assert payload["extensions"] == {"bazaar": challenge["extensions"]["bazaar"]}
    assert payload["accepted"] == settled["paymentRequirements"]


async def test_the_official_bazaar_lists_each_endpoint_at_its_own_address(gateway, payer, site):
    file = {"fileBase64": "aGk=", "fileName": "a.txt"}
    await buy(gateway, payer.header(version=2))
    cheap = {"X-PAYMENT": payer.header(10_000, version=2)}
    assert (
        await gateway.client.post("/api/x402/paper", json=file, headers=cheap)
    ).status_code == 200
    found = [
        extract_discovery_info(body["paymentPayload"], body["paymentRequirements"])
        for body in site.bodies("/settle")
    ]
    assert [(one.resource_url, one.method, one.tags[0]) for one in found] == [
        (URL, "POST", "text-to-image"),
        ("http://gateway.test/api/x402/paper", "POST", "document-parsing"),
    ]


async def test_nothing_of_a_buyers_echo_reaches_the_facilitator(gateway, payer, site):
    challenge = await challenge_of(gateway)
    poisoned = json.loads(json.dumps(challenge["extensions"]).replace("lighthouse", "evil"))
    poisoned["bazaar"]["routeTemplate"] = "/evil"
    poisoned["evil"] = {"info": EVIL}
    resource = {"url": EVIL, "description": "evil", "serviceName": "evil", "tags": ["evil"]}
    header = echo_of(payer, challenge, extensions=poisoned, resource=resource)
    assert (await buy(gateway, header)).status_code == 200
    for path in ("/verify", "/settle"):
        assert "evil" not in json.dumps(site.bodies(path))
    payload = site.bodies("/settle")[0]["paymentPayload"]
    assert payload["extensions"] == {"bazaar": challenge["extensions"]["bazaar"]}


async def begin_and_stop(settings, provider, payer, site) -> str:
    """Buy while the facilitator fails, and stop the gateway; return the task's id."""
    site.faults["/settle"] = says({}, 500)
    async with running(settings, provider) as gateway:
        bought = await buy(gateway, payer.header(version=2))
        assert bought.status_code == 200
        task_id = (await bought.get_json())["taskId"]
    assert site.count("/settle") >= 1
    site.heal()
    return task_id


async def test_after_a_restart_the_same_bytes_are_sent_again(
    settings, provider, payer, chain, site
):
    task_id = await begin_and_stop(settings, provider, payer, site)
    async with running(settings, provider) as gateway:
        assert (await gateway.wait(task_id))["status"] == "completed"
    verified, *settled = site.bodies("/verify") + site.bodies("/settle")
    assert len(settled) >= 2
    assert settled == [verified] * len(settled)
    assert chain.usdc_balance(WALLET) == PRICE


async def test_an_endpoint_that_is_gone_after_a_restart_is_settled_without_a_listing(
    settings, provider, payer, chain, site
):
    task_id = await begin_and_stop(settings, provider, payer, site)
    before = site.count("/settle")
    gone = {"picture": EndpointOverride(enabled=False)}
    async with running(attrs.evolve(settings, endpoints=gone), provider) as gateway:
        task = await gateway.wait(task_id)
    assert task["payment"]["transaction"] is not None
    assert chain.usdc_balance(WALLET) == PRICE
    payload = site.bodies("/settle")[before]["paymentPayload"]
    assert payload["resource"]["url"] == URL
    assert payload["accepted"]["amount"] == str(PRICE)
    assert "extensions" not in payload


# -- the Bazaar's status


def responses(said: object) -> str:
    return base64.b64encode(json.dumps(said).encode()).decode()


def settles_and_adds(header: str):
    return lambda site, request: answer(site.really(request), **{"EXTENSION-RESPONSES": header})


async def test_the_operator_is_told_what_the_bazaar_says_and_the_buyer_is_not(gateway, payer, site):
    refused = {"bazaar": {"status": "rejected", "rejectedReason": "description is too long"}}
    site.faults["/settle"] = settles_and_adds(responses(refused))
    bought = await buy(gateway, payer.header(version=2))
    assert bought.status_code == 200
    assert "EXTENSION-RESPONSES" not in bought.headers
    assert "too long" not in json.dumps(await bought.get_json())
    assert gateway.services.settlements.about.endswith(
        "its Bazaar said: picture rejected (description is too long)"
    )
    site.faults["/settle"] = settles_and_adds(responses({"bazaar": {"status": "success"}}))
    assert (await buy(gateway, payer.header(version=2), prompt="another")).status_code == 200
    assert gateway.services.settlements.about.endswith("its Bazaar said: picture success")


UNREADABLE = {
    "nothing": "",
    "not Base64": "!!!",
    "not ASCII": "é",
    "not JSON": base64.b64encode(b"{").decode(),
    "not UTF-8": base64.b64encode(b'"\xff"').decode(),
    "nested": base64.b64encode(b"[" * 5_000).decode(),
    "too long": responses({"bazaar": {"status": "success", "padding": "x" * 9_000}}),
    "a list": responses([]),
    "another extension": responses({"other": {"status": "success"}}),
    "Bazaar is text": responses({"bazaar": "success"}),
    "no status": responses({"bazaar": {}}),
    "a number as status": responses({"bazaar": {"status": 5}}),
}


@pytest.mark.parametrize("header", UNREADABLE.values(), ids=UNREADABLE)
def test_a_header_that_says_nothing_readable_is_ignored(header):
    assert read(header) is None


def test_what_is_kept_is_short_and_printable():
    problem = read(
        responses({"bazaar": {"status": "rejected", "rejectedReason": "\x1b[2J\n" * 999}})
    )
    assert len(str(problem)) < 250
    assert str(problem).isprintable()


async def test_a_broken_header_stops_no_sale(gateway, payer, site, chain):
    site.faults["/settle"] = settles_and_adds("!!!")
    assert (await buy(gateway, payer.header(version=2))).status_code == 200
    assert chain.usdc_balance(WALLET) == PRICE
