"""Every request to a facilitator has a token, and a refused token stops sales."""

import attrs
import jwt

from tests.conftest import buy, running
from tests.facilitator_secrets import KEY_ID, each_secret
from tests.gateway.facilitator.facilitators import says


@each_secret()
async def test_every_request_of_a_purchase_is_signed_for_itself(
    settings, provider, payer, site, secret, key, algorithm
):
    signing = attrs.evolve(settings, facilitator_key_id=KEY_ID, facilitator_key_secret=secret)
    async with running(signing, provider) as gateway:
        assert (await buy(gateway, payer.header())).status_code == 200
    host = site.url.removeprefix("http://")
    signed_for = []
    for seen in site.seen:
        kind, _, token = seen.headers["Authorization"].partition(" ")
        assert kind == "Bearer"
        claims = jwt.decode(token, key.public_key(), algorithms=[algorithm], issuer="cdp")
        signed_for.append(claims["uri"])
    assert signed_for == [
        f"GET {host}/supported",
        f"POST {host}/verify",
        f"POST {host}/settle",
    ]


async def test_a_token_of_the_settings_goes_with_every_request(settings, provider, payer, site):
    async with running(attrs.evolve(settings, facilitator_token="fct_1"), provider) as gateway:
        assert (await buy(gateway, payer.header())).status_code == 200
    assert [seen.headers.get("Authorization") for seen in site.seen] == ["Bearer fct_1"] * 3


async def test_a_facilitator_that_refuses_the_token_stops_selling(settings, provider, payer, site):
    # Set before the start, because the start's check is cached for a while.
    site.faults["/supported"] = says({"error": "unauthorized"}, 401)
    async with running(settings, provider) as gateway:
        answer = await buy(gateway, payer.header())
        assert answer.status_code == 500
        assert (await answer.get_json())["code"] == "EXECUTION_ERROR"
