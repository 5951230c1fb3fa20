"""Secrets of a facilitator's platform in each form that an operator may have."""

import base64

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

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
