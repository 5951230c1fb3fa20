"""Tokens for a facilitator go with every request, and one that is refused stops selling."""

import base64

import attrs
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from tests.conftest import buy, running
from tests.gateway.facilitator.facilitators import says

KEY_ID = "organizations/0a1b/apiKeys/2c3d"
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def pem(key, form=serialization.PrivateFormat.TraditionalOpenSSL, password=None) -> str:
    locked = serialization.BestAvailableEncryption(password) if password else None
    return key.private_bytes(
        serialization.Encoding.PEM, form, locked or serialization.NoEncryption()
    ).decode()


def ed25519_secret(key=ED_KEY) -> str:
    return base64.b64encode(key.private_bytes_raw() + key.public_key().public_bytes_raw()).decode()


SECRETS = {
    "ES256": (pem(EC_KEY), EC_KEY, "ES256"),
    "ES256 in PKCS 8": (pem(EC_KEY, serialization.PrivateFormat.PKCS8), EC_KEY, "ES256"),
    "ES256 on one line": (pem(EC_KEY).replace("\n", "\\n"), EC_KEY, "ES256"),
    "Ed25519": (ed25519_secret(), ED_KEY, "EdDSA"),
}


def each_secret():
    return pytest.mark.parametrize(
        ("secret", "key", "algorithm"), SECRETS.values(), ids=SECRETS.keys()
    )


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


async def test_a_facilitator_that_refuses_the_token_stops_selling(gateway, payer, site):
    site.faults["/supported"] = says({"error": "unauthorized"}, 401)
    answer = await buy(gateway, payer.header())
    assert answer.status_code == 500
    assert (await answer.get_json())["code"] == "EXECUTION_ERROR"
