"""The adapter of docling-serve against its real HTTP layer, queue and judgement of a file.

Only readers of documents have stand-ins (`docling_server`).
"""

import asyncio
import base64
import os
import subprocess
import sys
import time
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import attrs
import httpx
import pytest
from test_docling import CONVERSION, NOBODYS, NOT_FOUND, SUBMIT, TASK, UNAUTHORIZED
from vendor_site import PlainJob, on_sale

import gateway_docling
from gateway import (
    AccountProblem,
    GenerationRequest,
    Handle,
    HandleLost,
    InvalidInput,
    JobFailed,
    Pending,
)
from gateway.domain import Attachment
from tests.proof.kit.test_kit_docling import DoclingApi
from tests.vendors.docling_server import BROKEN, CRASH
from tests.vendors.orders import documents_of, orders, submit_all

KEY = "dk-never-to-be-seen"
# A second of work takes minutes on a busy machine.
START_S, ANSWER_S, CONVERT_S = 300.0, 60.0, 60.0
# An operator's settings for each, after DOCLING_SERVE_.
SERVERS = {
    "plain": {"API_KEY": KEY, "MAX_FILE_SIZE": "1000"},
    "with a store": {
        "ARTIFACT_STORAGE_ENABLED": "true",
        "ARTIFACT_STORAGE_ENDPOINT": "127.0.0.1:9",
        "ARTIFACT_STORAGE_BUCKET": "results",
        "ARTIFACT_STORAGE_ACCESS_KEY": "a",
        "ARTIFACT_STORAGE_SECRET_KEY": "s",
    },
    "small pictures": {"MAX_IMAGES_SCALE": "1"},
    "no text": {"ALLOWED_TARGET_TYPES": '["zip"]'},
}


@pytest.fixture(params=["docling"], autouse=True)
def adapter(request):
    """Adapter that these tests count for in the summary."""
    return request.param


@pytest.fixture(scope="module")
def urls(tmp_path_factory):
    """Start every server; return their addresses by name."""
    folder = tmp_path_factory.mktemp("docling")
    with ExitStack() as stack:
        running = {name: _start(stack, folder / name, SERVERS[name]) for name in SERVERS}
        yield {name: _url(server, folder / name) for name, server in running.items()}


def _start(stack, log, settings):
    program = Path(__file__).with_name("docling_server.py")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DOCLING_")}
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", program],
        stdout=subprocess.PIPE,
        stderr=stack.enter_context(log.open("wb")),
        env=clean | {f"DOCLING_SERVE_{name}": value for name, value in settings.items()},
    )
    stack.enter_context(server)
    stack.callback(server.terminate)
    return server


def _url(server, log):
    port = server.stdout.readline().decode().strip()
    assert port, log.read_text()
    url = f"http://127.0.0.1:{port}"
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            httpx.get(f"{url}/health", timeout=START_S)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return url
    raise AssertionError(log.read_text())


@attrs.define
class Buyer:
    """Buys from an endpoint with one server."""

    url: str
    key: str
    endpoint: object = attrs.field(init=False)
    provider: object = attrs.field(init=False)

    def __attrs_post_init__(self):
        settings = {"docling_base_url": self.url, "docling_api_key": self.key}
        ((self.endpoint, self.provider),) = on_sale(gateway_docling, **settings).values()

    async def submit(self, data, name="a.pdf"):
        request = GenerationRequest(attachment=Attachment(name=name, data=data), pages=1)
        return await self.provider.submit(request, PlainJob(self.endpoint))

    async def poll(self, handle):
        return await self.provider.poll(handle, PlainJob(self.endpoint))

    async def result(self, handle):
        """Poll until the task is not pending."""
        async with asyncio.timeout(CONVERT_S):
            while True:
                if not isinstance(found := await self.poll(handle), Pending):
                    return found
                await asyncio.sleep(0.05)


@asynccontextmanager
async def buying(url, key=KEY):
    """A buyer, whose provider is closed at the end."""
    found = Buyer(url, key)
    try:
        yield found
    finally:
        await found.provider.close()


@pytest.fixture
async def buyer(urls):
    async with buying(urls["plain"]) as found:
        yield found


async def test_a_document_is_bought(buyer):
    handle = await buyer.submit(b"# Report", "Secret Report.PDF")
    assert (await buyer.result(handle)).text == "# Report"


async def test_an_empty_document_is_an_empty_text(buyer):
    assert (await buyer.result(await buyer.submit(b""))).text == ""


async def test_health_looks_at_the_key(urls, buyer):
    await buyer.provider.health()


@pytest.mark.parametrize("key", ["", "wrong"])
async def test_a_refused_key_is_the_operators_problem(urls, key):
    async with buying(urls["plain"], key) as other:
        for asked in (
            other.provider.health(),
            other.submit(b"x"),
            other.poll(Handle(id="any")),
        ):
            with pytest.raises(AccountProblem):
                await asked


async def test_health_finds_out_that_nothing_is_at_the_address(urls):
    async with buying(f"{urls['plain']}/elsewhere") as other:
        with pytest.raises(AccountProblem):
            await other.provider.health()


async def test_an_unknown_task_is_lost(buyer):
    with pytest.raises(HandleLost):
        await buyer.poll(Handle(id="3c1a0b9e-7a4f-4f0f-9b8f-0a51b2d8c7aa"))


@pytest.mark.parametrize(
    ("data", "name", "error"),
    [
        (BROKEN, "a.pdf", InvalidInput),
        # Above the operator's limit.
        (b"x" * 1001, "a.pdf", InvalidInput),
        # Docling recognizes neither the name nor the bytes.
        (b"\0\1\2", "a.zzz", InvalidInput),
        (CRASH, "a.pdf", JobFailed),
    ],
)
async def test_a_file_that_is_not_converted(buyer, data, name, error):
    handle = await buyer.submit(data, name)
    with pytest.raises(error) as raised:
        await buyer.result(handle)
    assert type(raised.value) is error


def schemas_of(url):
    """The server's schemas of its input, by name."""
    return httpx.get(f"{url}/openapi.json", timeout=ANSWER_S).json()["components"]["schemas"]


def test_a_server_with_a_store_keeps_the_text_there_unless_it_is_told(urls):
    order = schemas_of(urls["with a store"])["ConvertSourcesRequest"]
    assert order["properties"]["target"]["default"] == {"kind": "presigned_url"}


async def test_a_server_with_a_store_gives_the_text(urls):
    async with buying(urls["with a store"], key="") as buyer:
        assert (await buyer.result(await buyer.submit(b"# Report"))).text == "# Report"


@pytest.mark.parametrize("name", ["small pictures", "no text"])
async def test_a_policy_of_the_operators_is_not_the_buyers_fault(urls, name):
    async with buying(urls[name], key="") as buyer:
        with pytest.raises(AccountProblem):
            await buyer.submit(b"x")


# -- requests, and answers of the fakes


async def test_every_request_is_taken(urls):
    settings = {"docling_base_url": urls["plain"], "docling_api_key": KEY}
    assert all(await submit_all(gateway_docling, bool, documents_of, **settings))


async def test_the_server_knows_every_field(urls, begin):
    """The server ignores unknown fields, so its schema is checked."""
    schemas = await asyncio.to_thread(schemas_of, urls["plain"])

    def fields(name):
        return set(schemas[name]["properties"])

    sent = await orders(begin(DoclingApi(), "accepted"), gateway_docling, bool, documents_of)
    for order in (ask.json for ask in sent):
        assert set(order) <= fields("ConvertSourcesRequest")
        assert set(order["options"]) <= fields("ConvertDocumentsOptions")
        (source,) = order["sources"]
        assert set(source) <= fields("FileSourceRequest")
        assert set(order["target"]) <= fields("InBodyTarget")


def order_of(data):
    return {
        "options": {"to_formats": ["md"], "image_export_mode": "placeholder"},
        "sources": [
            {
                "kind": "file",
                "base64_string": base64.b64encode(data).decode(),
                "filename": "document.pdf",
            }
        ],
        "target": {"kind": "inbody"},
    }


def resembles(fake, real):
    """Check that a fake has only fields of the real answer, with values of the same type."""
    if isinstance(fake, dict):
        assert set(fake) <= set(real)
        for name, value in fake.items():
            if value is not None and real[name] is not None:
                resembles(value, real[name])
    else:
        assert isinstance(fake, float | int) == isinstance(real, float | int)
        assert isinstance(fake, str | list) == isinstance(real, str | list)


def test_the_answers_of_the_fakes_are_those_of_the_server(urls):
    key = {"X-Api-Key": KEY}
    with httpx.Client(base_url=urls["plain"], headers=key, timeout=ANSWER_S) as client:
        task = client.post(SUBMIT, json=order_of(b"# Report")).json()
        resembles(TASK, task)
        until = time.monotonic() + CONVERT_S
        while client.get(f"/v1/status/poll/{task['task_id']}").json()["task_status"] != "success":
            assert time.monotonic() < until
            time.sleep(0.05)
        resembles(CONVERSION, client.get(f"/v1/result/{task['task_id']}").json())
        unknown = client.get(NOBODYS)
        assert (unknown.status_code, unknown.json()) == (404, NOT_FOUND)
        refused = client.get(NOBODYS, headers={"X-Api-Key": "wrong"})
        assert (refused.status_code, refused.json()) == (401, UNAUTHORIZED)
        wrong = order_of(b"x") | {"options": {"to_formats": ["markdown"]}}
        refused = client.post(SUBMIT, json=wrong)
        assert refused.status_code == 422
        assert refused.json()["detail"][0]["loc"] == ["body", "options", "to_formats", 0]
