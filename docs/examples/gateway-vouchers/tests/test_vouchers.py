"""Vouchers pass the gateway's tests of payment methods, and some of their own."""

import asyncio
import base64
import json
import secrets
import stat
from pathlib import Path
from typing import ClassVar

import gateway_vouchers
import pytest
from gateway_vouchers.__main__ import main
from gateway_vouchers.voucher import Seal, Voucher, decode

from gateway import MethodPayment, PaymentRequired, Refused, SettingsError, Taken
from gateway.testing import PaymentMethodContract

SECRET = 4 * "a secret for tests "
OTHER = 4 * "another secret "
DAY_S = 86_400


def voucher_of(**changes) -> Voucher:
    says = {
        "serial": secrets.token_hex(16),
        "value_units": 50_000,
        "expires": 1_800_000_000 + DAY_S,
        "gateway": "gateway",
    }
    return Voucher(**says | changes)


def token_of(secret=SECRET, **changes) -> str:
    return Seal(secret).token_of(voucher_of(**changes))


class TestVouchers(PaymentMethodContract):
    plugin = gateway_vouchers
    values: ClassVar = {"vouchers_secret": SECRET}

    def header(self, quote, now):
        return token_of(value_units=quote.price_units, expires=now + DAY_S)

    @pytest.mark.parametrize(
        ("token", "reason"),
        [
            (token_of(OTHER), "voucher_forged"),
            (token_of()[:-43] + "A" * 43, "voucher_forged"),
            (token_of().partition(".")[0], "voucher_forged"),
            (token_of().split(".")[0] + "." + token_of().split(".")[1], "voucher_forged"),
            (token_of(gateway="another"), "voucher_of_another_gateway"),
            (token_of(expires=1_800_000_000), "voucher_expired"),
        ],
    )
    @pytest.mark.asyncio
    async def test_a_bad_voucher_is_refused_with_its_reason(self, method, quote, token, reason):
        proof = method.read(token)
        with pytest.raises(PaymentRequired) as refused:
            await method.check(proof, quote, 1_800_000_000)
        assert refused.value.reason == reason
        assert f'error="{reason}"' in header_of(method, quote, reason)

    def test_a_402_says_what_a_voucher_must_be_worth(self, method, quote):
        said = header_of(method, quote, None)
        assert said == 'Voucher realm="gateway", price="0.020000", currency="USDC"'

    def test_a_reason_that_is_no_word_breaks_no_header(self, method, quote):
        assert "error" not in header_of(method, quote, 'a "sentence"\r\nof words')

    @pytest.mark.asyncio
    async def test_of_fifty_at_once_one_redeems_it(self, method, proof):
        asked = [asked_for(proof, task_id=f"task-{n}") for n in range(50)]
        answers = await asyncio.gather(*map(method.settle, asked))
        assert len([one for one in answers if isinstance(one, Taken)]) == 1
        assert answers.count(Refused("voucher_already_used")) == 49

    @pytest.mark.asyncio
    async def test_what_was_accepted_in_time_is_redeemed_after_it_has_expired(self, method):
        proof = method.read(token_of(expires=1_800_000_001))
        assert isinstance(await method.settle(asked_for(proof)), Taken)
        late = method.read(token_of(expires=1_800_000_000))
        assert await method.settle(asked_for(late)) == Refused("voucher_expired")

    @pytest.mark.asyncio
    async def test_what_was_accepted_is_redeemed_after_the_secret_was_changed(
        self, method, proof, tmp_path
    ):
        self.values = {"vouchers_secret": OTHER}
        renewed = self.started(tmp_path)
        assert isinstance(await renewed.settle(asked_for(proof)), Taken)
        assert renewed.read(proof.data.decode()) == proof

    @pytest.mark.asyncio
    async def test_a_ledger_that_cannot_be_written_is_no_answer(self, method, proof, tmp_path):
        (tmp_path / "vouchers.db").mkdir()
        with pytest.raises(OSError, match=r"vouchers\.db"):
            await method.settle(asked_for(proof))
        (tmp_path / "vouchers.db").rmdir()
        assert isinstance(await method.settle(asked_for(proof)), Taken)

    @pytest.mark.asyncio
    async def test_only_its_owner_may_read_the_ledger(self, method, proof, tmp_path):
        assert not list(tmp_path.glob("vouchers.db*")), "A start opens nothing."
        await method.settle(asked_for(proof))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in ledger_files(tmp_path)}
        assert modes["vouchers.db"] == 0o600
        assert set(modes.values()) == {0o600}

    @pytest.mark.parametrize(
        ("values", "says"),
        [
            ({"vouchers_secret": "short"}, "GATEWAY_VOUCHERS_SECRET has fewer than 32"),
            ({"vouchers_secret": SECRET, "vouchers_name": 'a"b'}, "GATEWAY_VOUCHERS_NAME is not"),
        ],
    )
    def test_a_setting_that_cannot_be_right_stops_the_start(self, tmp_path, values, says):
        self.values = values
        with pytest.raises(SettingsError, match=says):
            self.started(tmp_path)

    def test_without_a_secret_no_voucher_is_taken(self, tmp_path):
        self.values = {}
        with pytest.raises(AssertionError, match="registered 0"):
            self.started(tmp_path)


def asked_for(proof, task_id="a-task") -> MethodPayment:
    return MethodPayment(
        claim=f"voucher:{proof.key}",
        data=proof.data,
        value_units=proof.value_units,
        price_units=20_000,
        task_id=task_id,
        reserved_at=1_800_000_000.0,
    )


def header_of(method, quote, reason) -> str:
    return method.challenge(quote, reason, 2).headers["WWW-Authenticate"]


def ledger_files(folder: Path) -> list[Path]:
    return list(folder.glob("vouchers.db*"))


# -- the token


def respelled(**changes) -> str:
    """Return a token with changed JSON."""
    said, _, seal = token_of().partition(".")
    members = json.loads(base64.urlsafe_b64decode(said + "=="))
    raw = json.dumps(members | changes, separators=(",", ":"), sort_keys=True).encode()
    return f"{base64.urlsafe_b64encode(raw).decode().rstrip('=')}.{seal}"


@pytest.mark.parametrize(
    "changes",
    [
        {"serial": "short"},
        {"serial": "A" * 32},
        {"value_units": 0},
        {"value_units": -1},
        {"value_units": True},
        {"value_units": 50_000.0},
        {"value_units": "50000"},
        {"value_units": 10**11},
        {"expires": None},
        {"gateway": 'a"b'},
        {"refund_to": "0x" + "0" * 40},
        {"refund_to": "0xabc"},
        {"refund_to": None},
        {"more": 1},
        {"serial": "a" * 2000},
    ],
)
def test_what_no_voucher_says_is_no_token(changes):
    with pytest.raises(ValueError, match=r"^(the token|\w+ is not) "):
        decode(respelled(**changes))


@pytest.mark.parametrize("raw", [b'{"a":' * 150, b"[" * 700, b'{"serial":"a","serial":"b"}', b"1"])
def test_json_that_is_no_voucher_is_no_token(raw):
    with pytest.raises(ValueError, match=r"."):
        decode(base64.urlsafe_b64encode(raw).decode().rstrip("=") + ".seal")


def test_a_voucher_has_one_spelling():
    said, _, seal = token_of().partition(".")
    raw = base64.urlsafe_b64decode(said + "==")
    for other in (raw.replace(b",", b", "), raw.replace(b"gateway", b"\\u0067ateway", 1), raw * 2):
        with pytest.raises(ValueError, match=r"."):
            decode(f"{base64.urlsafe_b64encode(other).decode().rstrip('=')}.{seal}")
    with pytest.raises(ValueError, match="spelled otherwise"):
        decode(f"{said}=.{seal}")


# -- the command


def made(capsys, monkeypatch, *arguments, secret=SECRET) -> list[str]:
    monkeypatch.setenv("GATEWAY_VOUCHERS_SECRET", secret)
    main(arguments)
    return capsys.readouterr().out.split()


def test_the_command_prints_vouchers_that_differ(capsys, monkeypatch):
    refund_to = "0x" + "ab" * 20
    asked = ("--value", "0.05", "--count", "10", "--days", "2", "--refund-to", refund_to)
    tokens = made(capsys, monkeypatch, *asked)
    vouchers = [decode(token) for token in tokens]
    assert len({voucher.serial for voucher in vouchers}) == 10
    assert {(one.value_units, one.gateway, one.refund_to) for one in vouchers} == {
        (50_000, "gateway", refund_to)
    }
    assert all(Seal(SECRET).is_on(token) for token in tokens)


@pytest.mark.parametrize(
    ("arguments", "secret", "says"),
    [
        (("--value", "0.05"), "", "GATEWAY_VOUCHERS_SECRET is not set"),
        (("--value", "0.05"), "short", "fewer than 32 characters"),
        (("--value", "nothing"), SECRET, "'nothing' is not a USDC amount"),
        (("--value", "20000"), SECRET, "value_units is not 1 to 10000000000 millionths of a USDC"),
        (("--value", "1", "--count", "0"), SECRET, "'0' is not 1 to 10000"),
        (("--value", "1", "--days", "x"), SECRET, "'x' is not 1 to 3650"),
        (("--value", "1", "--refund-to", "me"), SECRET, "refund_to is not an address"),
    ],
)
def test_the_command_says_in_a_sentence_what_is_wrong(capsys, monkeypatch, arguments, secret, says):
    with pytest.raises(SystemExit) as ended:
        made(capsys, monkeypatch, *arguments, secret=secret)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
