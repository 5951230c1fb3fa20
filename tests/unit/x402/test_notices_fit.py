"""The notice of money without value leaves the 402's header as small as the others'."""

import pytest

from gateway import Quote
from gateway.domain.eip3009 import BASE, BASE_SEPOLIA, play_network
from gateway.domain.refund_promise import RefundPromise
from gateway_x402.messages import challenge
from tests.bundled_endpoints import bundled_endpoints

# 60 characters.
ADDRESS = f"https://{'long-name-of-an-operator.' * 2}com"
REFUND = RefundPromise(on_failure="automatic", policy_url=f"{ADDRESS}/llms.txt")


def header_of(endpoint, network) -> str:
    quote = Quote(
        endpoint=endpoint,
        price_units=20_000,
        wallet="0x" + "11" * 20,
        network=network,
        resource_url=f"{ADDRESS}/api/x402/{endpoint.slug}",
        refund=REFUND,
    )
    name = "A gateway with a name of forty letters."
    return challenge(quote, None, 2, name=name).headers["PAYMENT-REQUIRED"]


@pytest.mark.parametrize("network", [BASE_SEPOLIA, play_network(BASE_SEPOLIA)], ids=str)
def test_each_header_with_a_notice_is_within_the_limit_of_all_headers(network):
    limit = max(len(header_of(one, BASE)) for one in bundled_endpoints().values())
    sizes = {slug: len(header_of(one, network)) for slug, one in bundled_endpoints().items()}
    assert {slug: size for slug, size in sizes.items() if size > max(limit, 2_780)} == {}
