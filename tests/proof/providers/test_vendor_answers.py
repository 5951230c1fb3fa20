"""Each adapter against re-typed responses of its vendor, with their sources.

`answers/<vendor>.toml` has shapes: fields and words of the API, no pictures, ids or texts. Each has
its source, version, licence, the date on which it was read, and its kind of evidence:

- `recorded`: a real response, in a public recording;
- `issue`: a real response, quoted in a public issue;
- `sdk-type`: declared by the vendor's own client or server;
- `docs`: from the vendor's documentation;
- `third-party`: from others' code and pages.

No vendor was called. A response may belong to another slug than its file's, such as one for edits.
`{url}` is replaced by the fake's URL, `{picture}` by a picture in Base64.
"""

import base64
import datetime as dt
import importlib
import json
import tomllib
from pathlib import Path

import attrs
import pytest
import vendor_site
from document_sales import document
from vendor_site import BOAT, PlainJob

import gateway
from gateway import Attachment, Handle, Pending, Result
from gateway.plugins.installed import BUNDLED, OPTIONAL_PARTS
from gateway_testing.provider.samples import PICTURE
from tests.conftest import PNG

FILES = sorted((Path(__file__).parent / "answers").glob("*.toml"))
KINDS = {"recorded", "issue", "sdk-type", "docs", "third-party"}
SAID = ("name", "source", "version", "licence", "seen", "kind", "expected")
RETURNED = (Result, Pending, Handle)
# These use no vendor.
EMBEDDED = {"gateway_documents", "gateway_pictures", "gateway_sandbox_image", "gateway_speech"}
# The answers of ComfyUI are in tests/proof/comfyui.
OTHERS = {"gateway_comfyui", "gateway_http", "gateway_media"}


def _cases():
    for file in FILES:
        vendor = tomllib.loads(file.read_text())
        for answer in vendor["answer"]:
            yield pytest.param(vendor, answer, id=f"{file.stem}: {answer['name']}")


CASES = tuple(_cases())


@pytest.mark.parametrize(("vendor", "answer"), CASES)
async def test_an_adapter_reads_what_its_vendor_says(httpserver, vendor, answer):
    httpserver.no_handler_status_code = 404
    url = httpserver.url_for("").rstrip("/")
    is_submit = "post" in answer
    others = [vendor.get("upload"), None if is_submit else vendor["begin"], answer.get("then")]
    for reply in [answer, *filter(None, others)]:
        serve(httpserver, url, reply)
    values = {name: filled(text, url) for name, text in vendor["settings"].items()}
    found = vendor_site.on_sale(importlib.import_module(vendor["plugin"]), **values)
    endpoint, provider = found[answer.get("slug", vendor["slug"])]
    job = PlainJob(endpoint)
    try:
        came = await provider.submit(_request_to(endpoint), job)
        if not is_submit:
            came = await provider.poll(came, job)
    except gateway.errors.ProviderError as error:
        came = error
    finally:
        await provider.close()
    assert type(came).__name__ == answer["expected"], came
    if "cost_micros" in answer:
        assert came.cost_micros == answer["cost_micros"]
    httpserver.check_assertions()


@pytest.mark.parametrize(("vendor", "answer"), CASES)
def test_every_answer_says_where_it_comes_from(vendor, answer):
    assert all(answer.get(name) for name in SAID)
    assert answer["kind"] in KINDS
    assert isinstance(answer["seen"], dt.date)
    returned = {kind.__name__ for kind in RETURNED}
    assert answer["expected"] in returned | set(dir(gateway))
    assert len(answer["body"]) < 1_000


def test_every_adapter_of_a_vendor_has_answers():
    recorded = {tomllib.loads(file.read_text())["plugin"] for file in FILES}
    payments = {"gateway_x402", "gateway_mpp", "gateway_usdc_direct"}
    settlers = {name for name in BUNDLED if name.endswith("_settler")}
    assert recorded == set(BUNDLED) - EMBEDDED - OTHERS - payments - settlers - set(OPTIONAL_PARTS)


def _request_to(endpoint):
    if endpoint.edits_pictures:
        return attrs.evolve(BOAT, attachment=Attachment(name="photo.png", data=PICTURE))
    if endpoint.extracts_data:
        return attrs.evolve(document(), prompt="When is it due?")
    return document() if endpoint.takes_file else BOAT


def serve(server, url, reply):
    method, path = ("POST", reply["post"]) if "post" in reply else ("GET", reply["get"])
    body = filled(reply["body"], url)
    if body:
        json.loads(body)
    server.expect_request(path, method=method).respond_with_data(
        body,
        reply.get("status", 200),
        {name: filled(text, url) for name, text in reply.get("headers", {}).items()},
        content_type="application/json",
    )


def filled(text, url):
    return text.replace("{url}", url).replace("{picture}", base64.b64encode(PNG).decode())
