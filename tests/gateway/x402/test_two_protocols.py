"""Two protocols of signed payments side by side: headers choose, and one 402 has both."""

import json

import attrs
import pytest

from gateway import Challenge, hookimpl
from gateway.payments import PaymentMethods
from gateway_x402.verifier import X402Verifier
from tests.authorizations import decoded
from tests.cases import each
from tests.conftest import buy, nothing_charged, running

URL = "/api/x402/picture"
BODY = {"prompt": "a boat"}
NOTE = "Note"


class SecondVerifier(X402Verifier):
    """A protocol with x402's payment in another header, under its own scheme."""

    header_names = ("Authorization: Note", "X-Note")

    def challenge(self, quote, reason, version):
        headers = {"WWW-Authenticate": f'Note price="{quote.price_units}"'}
        if reason is None:
            return Challenge(body={}, headers=headers)
        headers["Content-Type"] = "application/problem+json"
        return Challenge(body={"detail": f"note: {reason}"}, headers=headers)

    def receipt_headers(self, proof, payment):
        return {"Note-Receipt": payment.paid_tx or "unknown"}


class SecondPlugin:
    @hookimpl
    def register_authorization_verifier(self, register, context):
        register(SecondVerifier(context.settings.chain, context.chain))


@pytest.fixture
async def gateway(settings, provider, clock):
    async with running(settings, provider, [SecondPlugin()], now=clock) as gateway:
        yield gateway


@pytest.fixture
async def alone(settings, provider, clock, tmp_path):
    settings = attrs.evolve(settings, data_dir=tmp_path / "alone")
    async with running(settings, provider, now=clock) as gateway:
        yield gateway


def note(header):
    return {"Authorization": f"{NOTE} {header}"}


async def post(gateway, headers=None, **fields):
    return await gateway.client.post(URL, json=BODY | fields, headers=headers or {})


# -- the 402


@pytest.mark.parametrize("headers", [{}, {"X-Unusual": "%"}, {"Accept": "a", "Expect": "b"}])
async def test_one_402_has_both_challenges_and_the_body_of_the_first(gateway, alone, headers):
    """A request for the fast path, and two for Quart."""
    both, single = await post(gateway, headers), await post(alone, headers)
    assert both.status_code == single.status_code == 402
    assert both.headers["WWW-Authenticate"] == 'Note price="20000"'
    assert both.headers["PAYMENT-REQUIRED"] == single.headers["PAYMENT-REQUIRED"]
    assert await both.get_data() == await single.get_data()
    assert both.headers["Content-Type"] == "application/json"
    assert "WWW-Authenticate" not in single.headers


async def test_crawlers_see_both_by_get(gateway):
    answer = await gateway.client.get(URL)
    assert answer.status_code == 402
    assert "WWW-Authenticate" in answer.headers
    assert "PAYMENT-REQUIRED" in answer.headers


async def test_the_first_alone_makes_its_402_as_it_is(alone):
    quote = alone.services.quote(alone.services.catalog["picture"].endpoint)
    methods = alone.services.payments.methods
    assert methods.challenge(quote, None, 2) is methods.first.challenge(quote, None, 2)


# -- the choice


@pytest.mark.parametrize("name", ["Authorization", "authorization", "X-Note"])
async def test_a_header_chooses_the_protocol_that_answers(gateway, payer, name):
    value = payer.header() if name == "X-Note" else f"nOTe  {payer.header()}"
    answer = await post(gateway, {name: value})
    assert answer.status_code == 200
    assert answer.headers["Note-Receipt"].startswith("0x")
    assert "X-PAYMENT-RESPONSE" not in answer.headers
    assert (await gateway.wait((await answer.get_json())["taskId"]))["status"] == "completed"


@each("value", ["Bearer abc", "Basic YTpi", "Notes abc", "Note", "Note ", "", "note"])
async def test_another_scheme_of_authorization_is_no_payment(gateway, payer, value):
    unpaid = await post(gateway, {"Authorization": value})
    assert unpaid.status_code == 402
    assert "detail" not in await unpaid.get_json()
    paid = await post(gateway, {"Authorization": value, "X-PAYMENT": payer.header()})
    assert paid.status_code == 200
    assert "X-PAYMENT-RESPONSE" in paid.headers


async def test_payments_of_two_protocols_are_one_clear_400(gateway, chain, payer):
    async with nothing_charged(gateway, chain):
        answer = await post(gateway, {"X-PAYMENT": payer.header(), **note(payer.header())})
    assert answer.status_code == 400
    error = (await answer.get_json())["error"]
    assert error.startswith("The request has two payments, in the headers X-PAYMENT and Authoriz")
    # Neither of them was looked up.
    assert "charged" not in error


async def test_two_headers_of_one_protocol_are_one_payment(gateway, payer):
    first = payer.header()
    answer = await post(gateway, note(first) | {"X-Note": "garbage"})
    assert answer.status_code == 200


async def test_a_payment_by_get_is_refused_in_either_header(gateway, payer):
    for headers in ({"X-PAYMENT": payer.header()}, note(payer.header())):
        assert (await gateway.client.get(URL, headers=headers)).status_code == 405


async def test_a_payment_in_either_header_counts_as_one(settings, provider, payer):
    limited = attrs.evolve(settings, limit_x402="1/60s", limit_price="100/60s")
    async with running(limited, provider, [SecondPlugin()]) as gateway:
        assert (await post(gateway, note("garbage"))).status_code == 402
        assert (await post(gateway, {"X-PAYMENT": "garbage"})).status_code == 429
        assert (await post(gateway, {"Authorization": "Bearer a"})).status_code == 402


# -- refusals


async def test_the_protocol_whose_payment_was_refused_adds_to_the_body(gateway, chain, payer):
    async with nothing_charged(gateway, chain):
        answer = await post(gateway, note(payer.header(19_999)))
    body = await answer.get_json()
    reason = "invalid_exact_evm_payload_authorization_value_mismatch"
    assert answer.status_code == 402
    assert (body["error"], body["detail"]) == (reason, f"note: {reason}")
    assert body["accepts"][0]["amount"] == "20000"
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert decoded(answer.headers["PAYMENT-REQUIRED"])["error"] == reason
    assert answer.headers["Cache-Control"] == "no-store"


async def test_a_refusal_of_the_first_leaves_the_second_as_it_was(gateway, chain, payer):
    async with nothing_charged(gateway, chain):
        answer = await post(gateway, {"X-PAYMENT": payer.header(19_999)})
    assert "detail" not in await answer.get_json()
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["WWW-Authenticate"] == 'Note price="20000"'


# -- one authorization is one payment


@pytest.mark.parametrize("first", ["X-PAYMENT", "X-Note"])
async def test_one_authorization_by_two_protocols_is_one_payment(gateway, chain, payer, first):
    header, (second,) = payer.header(), {"X-PAYMENT", "X-Note"} - {first}
    bought = await (await buy(gateway, header, name=first)).get_json()
    async with nothing_charged(gateway, chain):
        again = await (await buy(gateway, header, name=second)).get_json()
        other = await buy(gateway, header, name=second, prompt="another boat")
    assert again["taskId"] == bought["taskId"]
    assert other.status_code == 402
    assert "nonce_already_used" in json.dumps(await other.get_json())


async def test_a_key_with_a_second_authorization_by_another_protocol_is_one_purchase(
    gateway, chain, payer
):
    key = {"Idempotency-Key": "my-purchase"}
    bought = await (await post(gateway, {"X-PAYMENT": payer.header()} | key)).get_json()
    async with nothing_charged(gateway, chain):
        again = await (await post(gateway, note(payer.header()) | key)).get_json()
    assert again["taskId"] == bought["taskId"]


async def test_a_receipt_that_fails_keeps_no_task_from_its_buyer(gateway, payer, monkeypatch):
    def fail(self, proof, payment):
        raise RuntimeError("no receipt")

    monkeypatch.setattr(SecondVerifier, "receipt_headers", fail)
    answer = await post(gateway, note(payer.header()))
    assert answer.status_code == 200
    assert (await gateway.wait((await answer.get_json())["taskId"]))["status"] == "completed"


# -- header names


def test_a_payment_is_found_by_the_header_and_scheme_of_its_way():
    class Verifier:
        def __init__(self, *names):
            self.header_names = names

    methods = PaymentMethods([Verifier("X-PAYMENT"), Verifier("Authorization: Note", "X-Note")])
    assert methods.choose({"Authorization": "Bearer a"}.get) is None
    assert not methods.is_paid({"Authorization": "Bearer a"}.get)
    assert methods.choose({"Authorization": "Note a b"}.get)[1] == "a b"


def test_pages_are_told_of_a_header_once_however_many_ways_have_it():
    class Way:
        header_names = ("X-Way",)
        answer_headers = ("WWW-Authenticate", "X-Receipt")

    methods = PaymentMethods([SecondVerifier, Way, Way])
    assert methods.further_answer_headers == ("WWW-Authenticate", "X-Receipt")
    assert methods.further_request_headers == ("X-Way",)
