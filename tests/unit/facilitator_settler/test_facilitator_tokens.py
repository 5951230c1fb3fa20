"""The bearer tokens: static, or a JWT for each request as Coinbase's platform requires."""

import base64

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from gateway import Settings, SettingsError
from gateway.app import create_app
from gateway_facilitator_settler.client import FacilitatorClient
from gateway_facilitator_settler.tokens import bearer_of
from tests.facilitator_secrets import (
    EC_KEY,
    KEY_ID,
    each_secret,
    ed25519_secret,
    pem,
)
from tests.unit.facilitator_settler.test_facilitator_pace import Moment

NOW = 1_800_000_000


def of(**settings) -> Settings:
    return Settings(facilitator_url="https://facilitator.test", **settings)


@each_secret()
def test_a_key_signs_the_token_that_the_platform_documents(secret, key, algorithm):
    bearer = bearer_of(of(facilitator_key_id=KEY_ID, facilitator_key_secret=secret))
    request = "POST api.cdp.coinbase.com/platform/v2/x402/settle"
    token = bearer(request, NOW)
    claims = jwt.decode(
        token,
        key.public_key(),
        algorithms=[algorithm],
        options={"verify_exp": False, "verify_nbf": False, "verify_iat": False},
        issuer="cdp",
    )
    assert claims == {
        "iss": "cdp",
        "sub": KEY_ID,
        "iat": NOW,
        "nbf": NOW,
        "exp": NOW + 120,
        "uri": request,
        "uris": [request],
    }
    header = jwt.get_unverified_header(token)
    assert header["alg"] == algorithm
    assert header["kid"] == KEY_ID
    assert header["typ"] == "JWT"
    assert len(header["nonce"]) >= 16
    again = jwt.get_unverified_header(bearer(request, NOW))
    assert again["nonce"] != header["nonce"]


def test_the_host_is_named_without_scheme_and_in_lower_case():
    """As in "POST api.cdp.coinbase.com/platform/v2/x402/verify"."""
    settings = Settings(
        facilitator_url="https://API.cdp.coinbase.com/platform/v2/x402/",
        facilitator_key_id=KEY_ID,
        facilitator_key_secret=ed25519_secret(),
    )
    client = FacilitatorClient(settings, Moment())
    assert client._base == "https://api.cdp.coinbase.com/platform/v2/x402"
    assert client._host == "api.cdp.coinbase.com/platform/v2/x402"


NO_KEYS = {
    "nonsense": "nonsense",
    "not ASCII": "schlüssel",
    "32 bytes": base64.b64encode(bytes(32)).decode(),
    "halves that do not match": base64.b64encode(bytes(64)).decode(),
    "a broken PEM": "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
    "an unknown curve": "-----BEGIN EC PRIVATE KEY-----\n"
    + base64.b64encode(
        bytes.fromhex("302c0201010420" + "01".rjust(64, "0") + "a00506032a0304")
    ).decode()
    + "\n-----END EC PRIVATE KEY-----\n",
    "another curve": pem(ec.generate_private_key(ec.SECP256K1())),
    "an RSA key": pem(rsa.generate_private_key(65537, 2048)),
    "a locked PEM": pem(EC_KEY, serialization.PrivateFormat.PKCS8, password=b"locked"),
    "a public key": EC_KEY.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode(),
}


@pytest.mark.parametrize("secret", NO_KEYS.values(), ids=NO_KEYS.keys())
def test_a_key_that_cannot_sign_stops_the_start(secret):
    with pytest.raises(SettingsError) as error:
        bearer_of(of(facilitator_key_id=KEY_ID, facilitator_key_secret=secret))
    assert "GATEWAY_FACILITATOR_KEY_SECRET" in str(error.value)
    assert "Example: " in str(error.value)
    assert secret not in str(error.value)


WRONG = {
    "token and key": (
        {
            "facilitator_token": "fct_1",
            "facilitator_key_id": KEY_ID,
            "facilitator_key_secret": ed25519_secret(),
        },
        "GATEWAY_FACILITATOR_TOKEN and GATEWAY_FACILITATOR_KEY_ID",
    ),
    "token and half a key": (
        {"facilitator_token": "fct_1", "facilitator_key_id": KEY_ID},
        "GATEWAY_FACILITATOR_TOKEN",
    ),
    "no secret": ({"facilitator_key_id": KEY_ID}, "GATEWAY_FACILITATOR_KEY_SECRET is not set"),
    "no id": (
        {"facilitator_key_secret": ed25519_secret()},
        "GATEWAY_FACILITATOR_KEY_ID is not set",
    ),
    "a token with a line's end": ({"facilitator_token": "fct_1\n"}, "GATEWAY_FACILITATOR_TOKEN"),
    "a token with a space": ({"facilitator_token": "fct 1"}, "GATEWAY_FACILITATOR_TOKEN"),
    "a token with an umlaut": ({"facilitator_token": "fctü"}, "GATEWAY_FACILITATOR_TOKEN"),
    "no address": ({"facilitator_url": ""}, "GATEWAY_FACILITATOR_URL is not set"),
    **{
        f"address {url}": ({"facilitator_url": url}, "GATEWAY_FACILITATOR_URL is wrong")
        for url in (
            "facilitator.test",
            "ftp://facilitator.test",
            "https://",
            "https://user:pass@facilitator.test",
            "https://facilitator.test/x402?key=1",
            "https://facilitator.test/x402#a",
            "https://facilitator.test/a b",
            "https://facilitator.test:port",
        )
    },
}


@pytest.mark.parametrize(("changes", "says"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_setting_stops_the_start_with_one_sentence(tmp_path, changes, says):
    settings = Settings(
        wallet="0x" + "11" * 20,
        data_dir=tmp_path,
        settlement="facilitator",
        **{"facilitator_url": "https://facilitator.test"} | changes,
    )
    with pytest.raises(SettingsError) as error:
        create_app(settings)
    message = str(error.value)
    assert says in message
    assert "Example: " in message or "Remove one of them" in message
    assert "fct" not in message.replace("fct_0123456789abcdef", "")
    assert "user:pass" not in message


def test_without_the_libraries_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jwt", None)
    with pytest.raises(SettingsError, match=r"generation-gateway\[facilitator\]"):
        bearer_of(of(facilitator_key_id=KEY_ID, facilitator_key_secret=ed25519_secret()))
