"""Scenes of the provider contract: the vendor reads, and bills, no more pages than were paid."""

import re
from collections import Counter

import pytest

from gateway_testing.fakes.api import Ask
from gateway_testing.provider.checks import accepting_answer, api_of
from gateway_testing.provider.gateway_under_test import GatewayUnderTest
from gateway_testing.provider.samples import PDF

_NUMBER = re.compile(rb"[0-9]+")
# Longer ones are parts of ids.
_MAX_DIGITS = 7
_ADVICE = (
    "Ask the vendor for the pages up to `gateway.vendors.paid_pages(request, job.endpoint)` only: "
    "a file may have more pages than the gateway counted. Where the API has no such field, say so: "
    "lacks = ('page_range',)."
)


class PageScenes:
    """What an adapter of documents asks for."""

    async def test_the_vendor_is_asked_for_the_paid_pages_only(
        self, gateway: GatewayUnderTest
    ) -> None:
        server, endpoint = api_of(gateway, "page_range"), gateway.sold.endpoint
        if not endpoint.counts_pages or ".pdf" not in endpoint.file_extensions:
            pytest.skip("the endpoint counts no pages")
        server.set_answers(accepting_answer(gateway), jobs=("made",))
        for gateway.pages in (2, 3):
            await gateway.buy_and_wait(file_name="letter.pdf", file=PDF)
        two, three = (_numbers_in(ask) for ask in server.submitted)
        # Some vendors count from 0. What differs between the same orders is the last page.
        fewer, more = two - three, three - two
        assert any(fewer[last] and more[last + 1] for last in (1, 2)), _ADVICE


def _numbers_in(ask: Ask) -> Counter[int]:
    """Return how often each short number stands in an order."""
    text = " ".join(ask.query.values()).encode() + b" " + ask.body
    return Counter(int(found) for found in _NUMBER.findall(text) if len(found) < _MAX_DIGITS)
