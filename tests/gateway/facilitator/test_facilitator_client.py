"""The requests to a facilitator, and all kinds of responses."""

import asyncio
import contextlib
import datetime as dt
import functools
import os
import socket
import ssl
import subprocess
import sys

import attrs
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from werkzeug import Response

from gateway import ChainUnavailable, ExecutionError, PaymentRequired, PluginContext, Settings
from gateway.contracts import Quote
from gateway.domain import Endpoint
from gateway.domain.eip3009 import BASE
from gateway_facilitator_settler import (
    FacilitatorClient,
    FacilitatorSettler,
    FacilitatorTiming,
    FacilitatorUnavailable,
)
from tests.gateway.facilitator.facilitators import LIES, NEVER_MINED, FacilitatorSite, answer, says
from tests.unit.facilitator_settler.test_facilitator_pace import Journal, Moment, Unspent, payment

WALLET = "0x1111111111111111111111111111111111111111"
USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
V1 = {"x402Version": 1, "scheme": "exact", "network": "base"}
V2 = {"x402Version": 2, "scheme": "exact", "network": "eip155:8453"}
SECRET = "fct_never_to_be_seen"


@pytest.fixture
def site(facilitator_server):
    opened = FacilitatorSite(facilitator_server)
    opened.faults["/supported"] = says({"kinds": [V1, V2]})
    yield opened
    opened.heal()


@pytest.fixture
def settings(site):
    return Settings(
        base_url="https://gateway.test",
        wallet=WALLET,
        facilitator_url=site.url,
        facilitator_token=SECRET,
    )


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


# -- /settle: only a well-formed hash on our network is accepted


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


# -- /verify


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
    with pytest.raises(ExecutionError, match="nothing was charged") as error:
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


# -- the transport


@pytest.fixture
def client(settings):
    return FacilitatorClient(settings, Moment())


async def silence(client, path="/verify") -> FacilitatorUnavailable:
    with pytest.raises(FacilitatorUnavailable) as silent:
        await client.post(path, {})
    assert SECRET not in str(silent.value)
    assert "127.0.0.1" not in str(silent.value)
    return silent.value


async def test_a_time_out_is_silence(client, site):
    client.timeouts_s = {"/verify": 0.2}
    site.faults["/verify"] = lambda site, request: answer({"late": site.healed.wait(20)})
    await silence(client)


async def test_an_answer_that_drips_for_ever_is_cut_off_in_time(client, site):
    client.timeouts_s = {"/verify": 0.5}

    def drips(site, request):
        def pieces():
            while not site.healed.wait(0.05):
                yield b" "

        return Response(pieces())

    site.faults["/verify"] = drips
    await silence(client)


async def test_an_endless_answer_is_cut_off_at_the_limit(client, site):
    def endless(site, request):
        def pieces():
            while not site.healed.is_set():
                yield b" " * 4096

        return Response(pieces())

    site.faults["/verify"] = endless
    assert "65536 bytes" in str(await silence(client))


async def test_a_packed_answer_is_not_unpacked(client, site):
    import gzip

    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 65_536
    site.faults["/verify"] = says(bomb, 200, **{"Content-Encoding": "gzip"})
    assert "without JSON" in str(await silence(client))


async def test_a_closed_port_is_silence(settings):
    with socket.socket() as bound:  # and nobody listens
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        client = FacilitatorClient(attrs.evolve(settings, facilitator_url=url), Moment())
        assert "ConnectError" in str(await silence(client))


async def test_nothing_is_repeated_where_the_connection_breaks():
    """One POST, one connection, even if it closes without a response."""
    opened = 0

    async def hangs_up(reader, writer):
        nonlocal opened
        opened += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(hangs_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = Settings(wallet=WALLET, facilitator_url=f"http://127.0.0.1:{port}")
    async with server:
        await silence(FacilitatorClient(settings, Moment()), "/settle")
    assert opened == 1


async def test_a_certificate_that_nobody_vouches_for_is_silence(tmp_path):
    """Nothing is sent to an impostor of the facilitator."""
    asked = []

    async def answers(reader, writer):
        asked.append(await reader.read(10))
        writer.close()

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(self_signed(tmp_path / "localhost.pem"))
    server = await asyncio.start_server(answers, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    settings = Settings(wallet=WALLET, facilitator_url=f"https://localhost:{port}")
    async with server:
        assert "ConnectError" in str(await silence(FacilitatorClient(settings, Moment())))
    assert asked == []


def self_signed(path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    began = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(began)
        .not_valid_after(began + dt.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(secret + certificate.public_bytes(pem))
    return path


async def test_proxies_of_the_environment_are_not_used(client, site, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    site.faults["/verify"] = says({"isValid": True})
    assert (await client.post("/verify", {})).body == {"isValid": True}


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("0", 0), ("99999", 300), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("-5", 0), ("", 0)],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_heeded_up_to_five_minutes(client, site, status, header, seconds):
    site.faults["/verify"] = says({}, status, **{"Retry-After": header})
    assert (await silence(client)).retry_after_s == seconds


async def test_many_requests_at_once_each_get_their_own_answer(client, site):
    site.faults["/verify"] = lambda site, request: answer({"n": request.get_json()["n"]})
    ask = functools.partial(client.post, "/verify")
    answers = await asyncio.gather(*(ask({"n": n}) for n in range(20)))
    assert [given.body["n"] for given in answers] == list(range(20))


def test_a_start_imports_no_http_and_no_cryptography():
    """They come with the first request, in a thread; the server responds before that."""
    code = (
        "import sys; from gateway import PluginContext, Settings\n"
        "from gateway_facilitator_settler import FacilitatorSettler\n"
        "settings = Settings(facilitator_url='https://facilitator.test', facilitator_token='t')\n"
        "FacilitatorSettler(PluginContext(settings=settings, chain=None, journal=None, now=None))\n"
        "print({'httpx2', 'httpcore2', 'jwt', 'cryptography'} & sys.modules.keys())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.stdout.strip() == "set()"
