"""The requests to a facilitator, and all kinds of responses."""

import contextlib

import attrs
import pytest

from gateway import ChainUnavailable, ExecutionError, PaymentRequired, PluginContext
from gateway.contracts import Quote
from gateway.domain import Endpoint
from gateway.domain.eip3009 import BASE
from gateway_facilitator_settler.settler import FacilitatorSettler, FacilitatorTiming
from tests.gateway.facilitator.client.conftest import SECRET, V1, V2, WALLET
from tests.gateway.facilitator.facilitators import LIES, NEVER_MINED, says
from tests.unit.facilitator_settler.test_facilitator_pace import Journal, Moment, Unspent, payment

USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"


@pytest.fixture
async def settler(settings):
    opened = made(settings)
    yield opened
    await opened.close()


def made(settings) -> FacilitatorSettler:
    context = PluginContext(settings=settings, chain=Unspent(), journal=Journal([]), now=Moment())
    return FacilitatorSettler(context, timing=FacilitatorTiming(answer_s=20))


def quote() -> Quote:
    unused = dict.fromkeys(field.name for field in attrs.fields(Endpoint) if field.init)
    endpoint = Endpoint(**unused | {"slug": "picture", "price_units": 20_000})
    return Quote(
        endpoint=endpoint, price_units=20_000, wallet=WALLET, network=BASE, resource_url=""
    )


async def verify(settler) -> None:
    await settler.check(payment().authorization, quote())


SIGNED = {
    "signature": "0x" + "00" * 65,
    "authorization": {
        "from": "0x2222222222222222222222222222222222222222",
        "to": WALLET,
        "value": "20000",
        "validAfter": "0",
        "validBefore": "1800000300",
        "nonce": "0x" + "1".rjust(64, "0"),
    },
}
DOMAIN = {"name": "USD Coin", "version": "2"}
TERMS_V1 = {
    "scheme": "exact",
    "network": "base",
    "maxAmountRequired": "20000",
    "resource": "https://gateway.test/api/x402/picture",
    "description": "Generation Gateway",
    "mimeType": "application/json",
    "payTo": WALLET,
    "maxTimeoutSeconds": 300,
    "asset": USDC,
    "extra": DOMAIN,
}
TERMS_V2 = {
    "scheme": "exact",
    "network": "eip155:8453",
    "asset": USDC,
    "amount": "20000",
    "payTo": WALLET,
    "maxTimeoutSeconds": 300,
    "extra": DOMAIN | {"paymentFlow": "upfront"},
}
BODY_V1 = {
    "x402Version": 1,
    "paymentPayload": V1 | {"payload": SIGNED},
    "paymentRequirements": TERMS_V1,
}
BODY_V2 = {
    "x402Version": 2,
    "paymentPayload": {
        "x402Version": 2,
        "payload": SIGNED,
        "accepted": TERMS_V2,
        "resource": {
            "url": "https://gateway.test/api/x402/picture",
            "description": "Generation Gateway",
            "mimeType": "application/json",
            "serviceName": "Generation Gateway",
            "iconUrl": "https://gateway.test/favicon.ico",
        },
    },
    "paymentRequirements": TERMS_V2,
}


@pytest.mark.parametrize(
    ("kinds", "body"),
    [([V1], BODY_V1), ([V2], BODY_V2), ([V1, V2], BODY_V2)],
    ids=["v1", "v2", "both"],
)
async def test_both_posts_carry_exactly_the_form_of_their_version(settler, site, kinds, body):
    site.faults["/supported"] = says({"kinds": kinds, "extensions": [], "signers": {}})
    site.faults["/verify"] = says({"isValid": True, "payer": "0x"})
    settled = {"success": True, "transaction": NEVER_MINED, "network": "base"}
    site.faults["/settle"] = says(settled)
    await verify(settler)
    assert await settler.submit(payment()) == NEVER_MINED
    assert site.bodies("/verify") == [body]
    assert site.bodies("/settle") == [body]
    assert [(seen.method, seen.path) for seen in site.seen] == [
        ("GET", "/supported"),
        ("POST", "/verify"),
        ("POST", "/settle"),
    ]
    for seen in site.seen:
        assert seen.headers["Authorization"] == f"Bearer {SECRET}"
        assert seen.headers["Accept-Encoding"] == "identity"
        assert seen.headers["Content-Type"] == "application/json"


async def test_without_a_token_there_is_no_authorization(settings, site):
    settler = made(attrs.evolve(settings, facilitator_token=""))
    await settler.check_ready()
    assert "Authorization" not in site.seen[0].headers


async def test_a_trailing_slash_of_the_address_changes_nothing(settings, site):
    await made(attrs.evolve(settings, facilitator_url=site.url + "/")).check_ready()
    assert [seen.path for seen in site.seen] == ["/supported"]


@pytest.mark.parametrize("name", LIES)
async def test_nothing_but_a_hash_on_our_network_is_taken_from_settle(settler, site, name):
    site.faults["/settle"] = says(*LIES[name])
    found = None
    with contextlib.suppress(ChainUnavailable):
        found = await settler.submit(payment())
    names_one = name in ("pending", "a hash that never lands")
    assert found == (NEVER_MINED if names_one else None)


UNKNOWN = {name: LIES[name] for name in ("429", "500", "503", "no JSON", "oversized", "401")}


@pytest.mark.parametrize("response", UNKNOWN.values(), ids=UNKNOWN.keys())
async def test_no_answer_to_settle_is_an_unknown_outcome(settler, site, response):
    site.faults["/settle"] = says(*response)
    with pytest.raises(ChainUnavailable) as unknown:
        await settler.submit(payment())
    assert SECRET not in str(unknown.value)
    assert site.url not in str(unknown.value)


REASONS = {
    "invalid_exact_evm_payload_signature": "invalid_exact_evm_payload_signature",
    "invalid_exact_evm_payload_recipient_mismatch": "invalid_exact_evm_payload_recipient_mismatch",
    "invalid_network": "invalid_network",
    "insufficient_funds": "invalid_exact_evm_insufficient_balance",
    "invalid_scheme": "unsupported_scheme",
    "invalid_exact_evm_payload_authorization_value": (
        "invalid_exact_evm_payload_authorization_value_mismatch"
    ),
    "invalid_exact_evm_payload_authorization_typed_data_message": (
        "invalid_exact_evm_payload_signature"
    ),
    "invalid_exact_evm_payload_signature_address": "invalid_exact_evm_payload_signature",
    "invalid_exact_evm_payload_authorization_from_address_kyt": "invalid_payload",
    "something new": "invalid_payload",
    None: "invalid_payload",
    5: "invalid_payload",
}


@pytest.mark.parametrize("status", [200, 400, 402])
@pytest.mark.parametrize(("invalid_reason", "reason"), REASONS.items())
async def test_a_refusal_is_a_402_with_a_standard_reason(
    settler, site, invalid_reason, reason, status
):
    site.faults["/verify"] = says({"isValid": False, "invalidReason": invalid_reason}, status)
    with pytest.raises(PaymentRequired) as refused:
        await verify(settler)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    "invalid_reason",
    [
        "invalid_exact_evm_nonce_already_used",
        "nonce_already_used",
        "authorization_already_used",
        "invalid_exact_evm_authorization_already_used",
    ],
)
async def test_a_spent_nonce_is_no_refusal_since_it_may_have_paid_us(settler, site, invalid_reason):
    site.faults["/verify"] = says({"isValid": False, "invalidReason": invalid_reason})
    await verify(settler)


NO_VERDICT = LIES | {
    "valid, but 400": ({"isValid": True}, 400),
    "invalid, but 500": ({"isValid": False, "invalidReason": "insufficient_funds"}, 500),
    "valid as text": ({"isValid": "true"},),
    "valid as 1": ({"isValid": 1},),
    "its own trouble": ({"isValid": False, "invalidReason": "unexpected_verify_error"},),
    "our own fault": ({"isValid": False, "invalidReason": "missing_eip712_domain"},),
}


@pytest.mark.parametrize("response", NO_VERDICT.values(), ids=NO_VERDICT.keys())
async def test_no_verdict_charges_nothing(settler, site, response):
    site.faults["/verify"] = says(*response)
    with pytest.raises(ExecutionError, match="cannot settle") as error:
        await verify(settler)
    assert SECRET not in f"{error.value} {error.value.details}"
    assert "127.0.0.1" not in f"{error.value} {error.value.details}"


@pytest.mark.parametrize("path", ["/supported", "/verify", "/settle"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(settler, site, path, status):
    elsewhere = site.url + ("/verify" if path == "/settle" else "/settle")
    site.faults[path] = says({"isValid": True, "kinds": [V2]}, status, Location=elsewhere)
    with pytest.raises((ExecutionError, ChainUnavailable)):
        await (settler.submit(payment()) if path == "/settle" else verify(settler))
    assert {seen.path for seen in site.seen} == {"/supported", path}


async def test_another_path_of_the_same_host_never_gets_the_token(settler, site):
    site.faults["/verify"] = says({}, 302, Location=f"{site.url}/settle")
    with pytest.raises(ExecutionError):
        await verify(settler)
    assert site.count("/settle") == 0
