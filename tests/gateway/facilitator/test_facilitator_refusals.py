"""Before T1: if the facilitator refuses or cannot respond, nothing is taken."""

import asyncio

import attrs
import pytest
import structlog
import typed_settings as ts

from gateway_facilitator_settler.client import TIMEOUTS_S
from tests.authorizations import cancel
from tests.conftest import WALLET, buy, nothing_charged, running
from tests.gateway.facilitator.facilitators import LIES, Seen, answer, hangs, says
from tests.patience import PATIENCE_S

NAMES = ("500", "429", "401", "404", "no JSON", "oversized", "a redirect", "an empty object")
TROUBLES = {name: says(*LIES[name]) for name in NAMES} | {"hangs": hangs}


@pytest.fixture
def facilitator_calls_s(request):
    """Short if a call hangs; otherwise long enough for a slow machine."""
    asked = getattr(request.node, "callspec", None)
    if asked is None or asked.params.get("trouble") is not hangs:
        return TIMEOUTS_S
    return {**TIMEOUTS_S, asked.params["path"]: 0.5}


@pytest.mark.parametrize("path", ["/supported", "/verify"])
@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES.keys())
async def test_a_facilitator_in_trouble_is_a_500_and_nothing_is_charged(
    settings, provider, payer, chain, site, path, trouble
):
    # Set before the start, because the start's check is cached for a while.
    site.faults[path] = trouble
    async with running(settings, provider) as gateway:
        async with nothing_charged(gateway, chain):
            answer = await buy(gateway, payer.header())
        body = await answer.get_json()
        assert (answer.status_code, body["code"]) == (500, "EXECUTION_ERROR")
        assert "nothing was charged" in body["error"]
        assert site.count("/settle") == 0


async def test_without_a_payment_the_price_is_told_though_the_facilitator_is_down(gateway, site):
    site.faults["/supported"] = says("", 503)
    assert (await buy(gateway, None)).status_code == 402


async def test_after_its_trouble_the_same_header_buys(gateway, payer, site):
    header = payer.header()
    site.faults["/verify"] = says("", 500)
    assert (await buy(gateway, header)).status_code == 500
    site.heal()
    assert (await buy(gateway, header)).status_code == 200


@pytest.mark.parametrize(
    ("invalid_reason", "reason"),
    [
        ("insufficient_funds", "invalid_exact_evm_insufficient_balance"),
        ("invalid_exact_evm_payload_signature", "invalid_exact_evm_payload_signature"),
        ("invalid_exact_evm_payload_authorization_to_address_kyt", "invalid_payload"),
    ],
)
async def test_a_refusal_is_a_402_and_nothing_is_charged(
    gateway, payer, chain, site, invalid_reason, reason
):
    site.faults["/verify"] = says({"isValid": False, "invalidReason": invalid_reason})
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, payer.header())
    assert answer.status_code == 402
    assert (await answer.get_json())["error"] == reason
    assert site.count("/settle") == 0


def spent_before_its_check(**said):
    """A third party submits the authorization between our read of the chain and /verify."""

    def fault(site, request):
        if not site.count("/settle"):
            site.seen.append(Seen("POST", "/settle", None, {}))  # once is enough
            site.official.settle(request)
        return answer(site.official.verify(request) | said)

    return fault


@pytest.mark.parametrize(
    "verdict", [{}, {"invalidReason": "insufficient_funds"}], ids=["honest", "by its balance"]
)
async def test_an_authorization_that_paid_us_meanwhile_is_no_402(
    gateway, payer, chain, site, verdict
):
    """A 402 would make the client sign again, and pay twice."""
    site.faults["/verify"] = spent_before_its_check(**verdict)
    answered = await buy(gateway, payer.header())
    assert answered.status_code == 200
    task = await gateway.wait((await answered.get_json())["taskId"])
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert chain.usdc_balance(WALLET) == 20_000


async def test_an_authorization_cancelled_meanwhile_is_a_402(gateway, payer, chain, site):
    nonce = bytes(range(32))

    def cancelled(site, request):
        cancel(chain, payer, nonce)
        return answer(site.official.verify(request))

    site.faults["/verify"] = cancelled
    gateway.services.payments.outcome_s = PATIENCE_S
    answered = await buy(gateway, payer.header(nonce=nonce))
    assert answered.status_code == 402
    assert (await answered.get_json())["error"] == "invalid_exact_evm_nonce_already_used"
    assert chain.usdc_balance(WALLET) == 0


async def test_the_same_header_twice_at_once_is_one_task_and_never_a_402(
    gateway, payer, chain, site
):
    header = payer.header()
    both = await asyncio.gather(*(buy(gateway, header) for _ in range(4)))
    assert {answered.status_code for answered in both} == {200}
    assert len({(await answered.get_json())["taskId"] for answered in both}) == 1
    assert chain.usdc_balance(WALLET) == 20_000
    assert site.count("/settle") == 1


async def test_what_we_refuse_ourselves_never_reaches_the_facilitator(gateway, payer, site):
    assert (await buy(gateway, payer.header(19_999))).status_code == 402
    assert site.count("/verify") == 0


async def test_secrets_are_in_no_log_line_and_in_no_answer(settings, provider, payer, site):
    """The token, and the URL's path, which contains the key at some facilitators."""
    settings = attrs.evolve(settings, facilitator_token=ts.SecretStr("fct_never_to_be_seen"))
    bodies = []
    with structlog.testing.capture_logs() as lines:
        async with running(settings, provider) as gateway:
            for path, fault in {"/verify": says("", 500), "/settle": says("x")}.items():
                site.heal()
                site.faults[path] = fault
                answer = await buy(gateway, payer.header())
                bodies.append(await answer.get_data(as_text=True))
            settler = gateway.services.settlements.settler
    assert [line["event"] for line in lines].count("payment.not_sent") > 0
    text = f"{lines} {bodies} {settler!r} {settler.about} {settings.facilitator_token!r}"
    assert "fct_never" not in text
    assert "/platform/v2" not in text
