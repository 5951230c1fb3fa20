"""Payment headers that must not buy anything: each gets a 402 with its standard reason."""

import base64
import json
import time

import pytest
from eth_account import Account

from gateway.contracts.chain import CallReverted
from gateway_demo.chain import FAUCET_KEY, OTHER_TOKEN
from tests.authorizations import cancel, decoded, header_of, payload_of
from tests.cases import each
from tests.conftest import WALLET, Payer, buy, nothing_charged

URL = "/api/x402/picture"
CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
STRANGER = "0x" + "9" * 40
NOW = int(time.time())
SIGNATURE = "invalid_exact_evm_payload_signature"
RECIPIENT = "invalid_exact_evm_payload_recipient_mismatch"
VALUE = "invalid_exact_evm_payload_authorization_value_mismatch"
AFTER = "invalid_exact_evm_payload_authorization_valid_after"
BEFORE = "invalid_exact_evm_payload_authorization_valid_before"
BALANCE = "invalid_exact_evm_insufficient_balance"
SPENT = "invalid_exact_evm_nonce_already_used"


async def refusal(gateway, header: str) -> str:
    """Send a payment that must be refused; return the reason."""
    answer = await gateway.client.post(
        URL, json={"prompt": "a boat"}, headers={"X-PAYMENT": header}
    )
    body = await answer.get_json()
    assert answer.status_code == 402, body
    assert "code" not in body
    assert body["accepts"][0]["amount"] == "20000"
    challenge = decoded(answer.headers["PAYMENT-REQUIRED"])
    assert challenge["error"] == body["error"]
    assert challenge["accepts"][0]["amount"] == "20000"
    return body["error"]


def raw(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


OPEN = '{"x402Version":1,"scheme":"exact","network":"base","payload":'
MALFORMED = {
    "not Base64": "!!!!",
    "not ASCII": "é",
    "one letter too many": "a",
    "not JSON": raw("hello"),
    "not UTF-8": raw(b'{"x402Version":\xff}'),
    "a number": raw("5"),
    "null": raw("null"),
    "a list": raw("[]"),
    "a string": raw('"x"'),
    "NaN": raw('{"x402Version":NaN}'),
    "Infinity": raw(OPEN + "Infinity}"),
    "a long number": raw(OPEN + "1" * 5_000 + "}"),
    "nested lists": raw("[" * 8_000),
    "nested objects": raw(OPEN + '{"payload":' * 700),
    "payload is text": raw(OPEN + '"x"}'),
    "payload is empty": raw(OPEN + "{}}"),
    "payload is null": raw(OPEN + "null}"),
    "no authorization": raw(OPEN + '{"signature":"0x","authorization":5}}'),
    "v2 without accepted": raw('{"x402Version":2,"payload":{}}'),
    "over a thousand brackets": raw(OPEN + '{"a":[' + "{}," * 1_000 + "{}]}}"),
    "over 32 KiB": raw(OPEN + "{}" + " " * 33_000 + "}"),
    "over 32 KiB of Base64": "A" * 50_000,
}


@each("header", MALFORMED)
async def test_a_malformed_header_is_invalid(gateway, chain, header):
    async with nothing_charged(gateway, chain):
        assert await refusal(gateway, header) == "invalid_payload"


async def test_a_good_payment_of_over_32_kib_is_refused(gateway, payer, chain):
    async with nothing_charged(gateway, chain):
        header = header_of(payer.payload() | {"padding": "x" * 32 * 1024})
        assert await refusal(gateway, header) == "invalid_payload"


async def test_only_versions_1_and_2_exist(gateway, payer, chain):
    for version in (None, 0, 3, -1, "1", 1.5, True, [1], {}, 10**30):
        async with nothing_charged(gateway, chain):
            header = header_of(payer.payload() | {"x402Version": version})
            assert await refusal(gateway, header) == "invalid_x402_version", version


FIELDS = {
    "from": [None, 5, "", "0x12", "0x" + "g" * 40, "0x" + "1" * 41, " 0x" + "1" * 40],
    "to": [None, "0x", "0x" + "1" * 39],
    "value": [
        None,
        "",
        "-1",
        -1,
        "0x4e20",
        2e4,
        20000.5,
        " 20000",
        "2_0000",
        "٢٠٠٠٠",
        2**256,
        True,
    ],
    "validAfter": [None, "soon", -1, 1e400],
    "validBefore": [None, "", [], "9" * 79],
    "nonce": [None, "", "0x", "0x" + "1" * 62, "0x" + "1" * 66, 7],
}


@each("name", list(FIELDS))
async def test_a_field_of_the_wrong_shape_is_invalid(gateway, payer, chain, name):
    for value in FIELDS[name]:
        payload = payer.payload()
        payload["payload"]["authorization"][name] = value
        async with nothing_charged(gateway, chain):
            assert await refusal(gateway, header_of(payload)) == "invalid_payload", value


TERMS = {  # of the envelope: (version, changes, reason)
    "scheme": (1, {"scheme": "upto"}, "unsupported_scheme"),
    "v1 network": (1, {"network": "ethereum"}, "invalid_network"),
    "v1 network by its v2 name": (1, {"network": "eip155:8453"}, "invalid_network"),
    "v1 without scheme": (1, {"scheme": None}, "invalid_payload"),
    "v2 scheme": (2, {"scheme": "batch-settlement"}, "unsupported_scheme"),
    "v2 network": (2, {"network": "eip155:1"}, "invalid_network"),
    "v2 other token": (2, {"asset": OTHER_TOKEN}, "invalid_payload"),
    "v2 pays somebody else": (2, {"payTo": STRANGER}, RECIPIENT),
    "v2 accepted less": (2, {"amount": "19999"}, VALUE),
    "v2 accepted more": (2, {"amount": "20001"}, VALUE),
    "v2 without amount": (2, {"amount": None}, "invalid_payload"),
}


@each("version, changes, reason", TERMS)
async def test_terms_that_are_not_ours_are_refused(gateway, payer, chain, version, changes, reason):
    payload = payer.payload(version=version)
    (payload if version == 1 else payload["accepted"]).update(changes)
    async with nothing_charged(gateway, chain):
        assert await refusal(gateway, header_of(payload)) == reason


SIGNED = {  # signed as it stands, and still not for us
    "too little": ({"units": 19_999}, VALUE),
    "too much": ({"units": 20_001}, VALUE),
    "nothing": ({"units": 0}, VALUE),
    "to somebody else": ({"to": STRANGER}, RECIPIENT),
    "valid in the future": ({"valid_after": NOW + 3_600}, AFTER),
    "expired": ({"valid_before": NOW - 1}, BEFORE),
    "expires in a moment": ({"valid_before": NOW + 15}, BEFORE),
    "valid for too long": ({"valid_before": NOW + 7_200}, BEFORE),
    "valid for ever": ({"valid_before": 2**256 - 1}, BEFORE),
}


@each("version", [1, 2])
@each("changes, reason", SIGNED)
async def test_an_authorization_for_something_else_is_refused(
    gateway, payer, chain, version, changes, reason
):
    payload = payer.payload(version=version, **changes)
    if version == 2:  # the envelope itself is in order
        payload["accepted"] |= {"amount": "20000", "payTo": WALLET}
    async with nothing_charged(gateway, chain):
        assert await refusal(gateway, header_of(payload)) == reason


@each("version", [1, 2])
@each(
    "seconds, status", [(19, 402), (20, 200), (601, 200), (3_600, 200), (3_900, 200), (3_901, 402)]
)
async def test_the_window_is_20_seconds_to_65_minutes(
    gateway, payer, clock, version, seconds, status
):
    clock.frozen_at = float(int(time.time()))
    header = payer.header(version=version, valid_before=int(clock()) + seconds)
    answer = await buy(gateway, header)
    assert answer.status_code == status
    if status == 402:
        body = await answer.get_json()
        assert body["error"] == BEFORE
        assert "20 to 3900 seconds" in body["details"]


# All fields in order, as the official Go client signed and sent them before 2026-08-31:
# `CreateValidityWindow(time.Hour)` of go/mechanisms/evm/exact/client/scheme.go @0bd61fd.
async def test_the_hour_that_older_clients_in_go_sign_is_bought_with(gateway, payer, clock):
    clock.frozen_at = float(int(time.time()))
    asked = decoded((await buy(gateway, None)).headers["PAYMENT-REQUIRED"])
    signed = payer.payload(
        version=2, valid_after=int(clock()) - 30, valid_before=int(clock()) + 3_600
    )["payload"]
    sent = {
        "x402Version": 2,
        "payload": {
            "authorization": dict(sorted(signed["authorization"].items())),
            "signature": signed["signature"],
        },
        "accepted": asked["accepts"][0],
        "resource": asked["resource"],
        "extensions": asked["extensions"],
    }
    assert (await buy(gateway, header_of(sent), name="PAYMENT-SIGNATURE")).status_code == 200


async def test_a_good_signature_is_never_called_a_bad_one(gateway, payer, chain):
    """Valid since this second: the chain's newest block may be older and still refuse it."""
    # By default the chain makes five blocks a second.
    chain.set_automine(False)
    chain.mine()
    header = payer.header(valid_after=chain.block.timestamp)
    assert await refusal(gateway, header) == AFTER


async def test_what_the_chains_clock_has_expired_is_no_bad_signature(gateway, payer, chain):
    """By the gateway's own clock it is valid for minutes."""
    header = payer.header()
    # The next check would stop all sales, because the clocks differ.
    await gateway.silence_background()
    chain.advance(700)
    assert await refusal(gateway, header) == BEFORE


async def test_a_block_after_the_refusal_makes_no_signature_a_bad_one(
    gateway, payer, chain, monkeypatch
):
    """By the newer block the authorization is valid, and the payer has the money."""
    call = gateway.services.chain.call
    changes = []

    async def call_before_a_change(*arguments, **more):
        try:
            return await call(*arguments, **more)
        except CallReverted:
            changes.pop()()
            raise

    monkeypatch.setattr(gateway.services.chain, "call", call_before_a_change)
    chain.set_automine(False)
    chain.mine()
    changes.append(lambda: chain.advance(1))
    early = payer.header(valid_after=chain.block.timestamp)
    assert await refusal(gateway, early) == AFTER
    poor = Payer(chain)
    chain.set_automine(True)
    poor.transfer(100_000_000, STRANGER)
    changes.append(lambda: chain.fund(poor.account.address))
    assert await refusal(gateway, poor.header()) == BALANCE
    assert changes == []


def _high_s(signature: bytes) -> bytes:
    s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])  # 27 <-> 28


FORGERIES = {
    "empty": lambda signature: b"",
    "64 bytes": lambda signature: signature[:64],
    "66 bytes": lambda signature: signature + b"\0",
    "v 0 or 1": lambda signature: signature[:64] + bytes([signature[64] - 27]),
    "the other v": lambda signature: signature[:64] + bytes([55 - signature[64]]),
    "v 29": lambda signature: signature[:64] + b"\x1d",
    "high s": _high_s,
    "r tampered": lambda signature: bytes([signature[0] ^ 1]) + signature[1:],
    "s tampered": lambda signature: signature[:63] + bytes([signature[63] ^ 1, signature[64]]),
    "zeros": lambda signature: bytes(64) + b"\x1b",
    "r is the order": lambda signature: CURVE_ORDER.to_bytes(32, "big") + signature[32:],
    "s is zero": lambda signature: signature[:32] + bytes(32) + signature[64:],
    "ERC-6492": lambda signature: bytes(64) + bytes.fromhex("6492" * 16),
}


@each("forge", FORGERIES)
async def test_a_forged_signature_is_refused(gateway, payer, chain, forge):
    signed = payer.authorization()
    signature = forge(signed.sign(payer.account.key, chain.chain_id, chain.usdc))
    async with nothing_charged(gateway, chain):
        assert await refusal(gateway, header_of(payload_of(signed, signature))) == SIGNATURE


@each("signature", [None, 5, "", "11" * 65, "0x1", "0xzz"])
async def test_a_signature_that_is_no_hex_is_invalid(gateway, payer, chain, signature):
    payload = payer.payload()
    payload["payload"]["signature"] = signature
    async with nothing_charged(gateway, chain):
        assert await refusal(gateway, header_of(payload)) == "invalid_payload"


async def test_a_foreign_signer_is_refused(gateway, payer, chain):
    signed = payer.authorization()
    signature = signed.sign(Account.create().key, chain.chain_id, chain.usdc)
    async with nothing_charged(gateway, chain):
        assert await refusal(gateway, header_of(payload_of(signed, signature))) == SIGNATURE


@pytest.mark.parametrize(
    ("chain_id", "token"),
    [(1, None), (84532, None), (8453, OTHER_TOKEN)],
    ids=["Ethereum", "Sepolia", "another token"],
)
async def test_a_signature_for_another_domain_is_refused(gateway, payer, chain, chain_id, token):
    signed = payer.authorization()
    signature = signed.sign(payer.account.key, chain_id, token or chain.usdc)
    async with nothing_charged(gateway, chain):
        assert await refusal(gateway, header_of(payload_of(signed, signature))) == SIGNATURE


async def test_a_changed_field_breaks_the_signature(gateway, payer, chain):
    for name, value in (("nonce", "0x" + "1" * 64), ("validAfter", "1"), ("from", STRANGER)):
        payload = payer.payload()
        payload["payload"]["authorization"][name] = value
        async with nothing_charged(gateway, chain):
            assert await refusal(gateway, header_of(payload)) == SIGNATURE


async def test_an_empty_wallet_cannot_pay(gateway, payer, chain):
    payer.transfer(100_000_000 - 19_999, STRANGER)
    async with nothing_charged(gateway, chain):
        assert await refusal(gateway, payer.header()) == BALANCE
    chain.fund(payer.account.address, usdc_units=1)
    header = payer.header()
    answer = await gateway.client.post(URL, json={"prompt": "a"}, headers={"X-PAYMENT": header})
    assert answer.status_code == 200


async def test_a_nonce_that_paid_somebody_else_is_spent(gateway, payer, chain):
    theirs = payer.authorization(to=STRANGER)
    signature = theirs.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(FAUCET_KEY, chain.usdc, theirs.call(signature))
    assert chain.usdc_balance(STRANGER) == 20_000
    assert await refusal(gateway, payer.header(nonce=theirs.nonce)) == SPENT
    await _nothing_is_owed(gateway, chain)


async def test_a_nonce_that_paid_us_too_little_is_spent(gateway, payer, chain):
    small = payer.authorization(units=5_000)
    signature = small.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(FAUCET_KEY, chain.usdc, small.call(signature))
    assert await refusal(gateway, payer.header(nonce=small.nonce)) == SPENT
    counts = await gateway.services.store.counts()
    assert "settled" not in counts["payments"]


async def test_a_cancelled_nonce_is_spent(gateway, payer, chain):
    signed = payer.authorization()
    cancel(chain, payer, signed.nonce)
    header = payer.header(nonce=signed.nonce)
    assert await refusal(gateway, header) == SPENT
    assert await refusal(gateway, header) == SPENT  # and stays so
    await _nothing_is_owed(gateway, chain)


async def _nothing_is_owed(gateway, chain) -> None:
    counts = await gateway.services.store.counts()
    assert set(counts["payments"]) <= {"released"}
    assert set(counts["tasks"]) <= {"dropped"}
    assert chain.usdc_balance(WALLET) == 0


async def test_a_refused_payment_may_be_mended_and_sent_again(gateway, payer, chain):
    payload = payer.payload()
    good = json.dumps(payload)
    payload["scheme"] = "upto"
    await refusal(gateway, header_of(payload))
    answer = await gateway.client.post(URL, json={"prompt": "a"}, headers={"X-PAYMENT": raw(good)})
    assert answer.status_code == 200
    assert chain.usdc_balance(WALLET) == 20_000
