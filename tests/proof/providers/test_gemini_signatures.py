"""Responses of the Gemini API with signatures as large as their pictures.

Evidence, not seen live: a recorded response of gemini-3-pro-image at 1K (pydantic-ai's cassettes,
MIT, 2025-12) has 1.14 MB of picture in Base64 and two signatures of 1.10 MB each. So a response
with a 4K picture, which has up to 45 MB, may be longer than 130 MB.
"""

import base64
import tracemalloc

import msgspec
import pytest
from gemini_site import BOAT, SUBMIT, Google, candidate, part
from pytest_httpserver import HTTPServer
from vendor_site import PlainJob

from gateway_gemini.answers import Generation, first_picture
from tests.conftest import PNG

ENCODED = base64.b64encode(PNG).decode()


@pytest.fixture
def google():
    with HTTPServer(threaded=True) as server:
        yield Google(server)


async def test_a_picture_is_sold_whose_answer_is_longer_than_any_picture(google):
    signature = "A" * 45_000_000
    body = candidate(
        part("AAAA", thought=True, thoughtSignature=signature),
        part(ENCODED, thoughtSignature=signature),
    )
    google.answers("POST", SUBMIT, (200, body))
    endpoint, provider = google.on_sale()[google.slug]
    result = await provider.submit(BOAT, PlainJob(endpoint))
    await provider.close()
    assert result.outputs[0].data == PNG


def test_signatures_are_skipped_and_never_built():
    signed = part(ENCODED, thoughtSignature="A" * 30_000_000)
    body = msgspec.json.encode(candidate(signed))
    tracemalloc.start()
    try:
        generation = msgspec.json.decode(body, type=Generation)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert first_picture(generation).data == ENCODED
    assert most < 1_000_000
