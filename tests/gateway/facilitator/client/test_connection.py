"""The connection to a facilitator: silence, limits, certificates, and proxies."""

import asyncio
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

from gateway import Settings
from gateway_facilitator_settler.client import FacilitatorClient, FacilitatorUnavailable
from tests.gateway.facilitator.client.conftest import SECRET, WALLET
from tests.gateway.facilitator.facilitators import answer, says
from tests.unit.facilitator_settler.test_facilitator_pace import Moment


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
        "from gateway_facilitator_settler.settler import FacilitatorSettler\n"
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
