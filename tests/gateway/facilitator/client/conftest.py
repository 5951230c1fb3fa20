"""Fixtures: a facilitator on a port, and the settings of its client."""

import pytest

from gateway import Settings
from tests.gateway.facilitator.facilitators import FacilitatorSite, says

WALLET = "0x1111111111111111111111111111111111111111"
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
