"""A software authenticator, which makes and signs with passkeys as a browser does."""

import base64
import hashlib
import json
import secrets
import struct

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

_PRESENT, _VERIFIED, _NEW = 0x01, 0x04, 0x40


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Authenticator:
    """A passkey with an ES256 key, in a browser that shows a page of `origin`."""

    def __init__(self, origin: str, host: str) -> None:
        self.origin = origin
        self.host = host
        self.flags = _PRESENT | _VERIFIED
        self.count = 0
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = secrets.token_bytes(32)

    def make(self, options: dict) -> dict:
        """Answer `navigator.credentials.create`."""
        client = self._client_data("webauthn.create", options["challenge"])
        point = self.key.public_key().public_numbers()
        cose = {
            1: 2,
            3: -7,
            -1: 1,
            -2: point.x.to_bytes(32, "big"),
            -3: point.y.to_bytes(32, "big"),
        }
        new = bytes(16) + struct.pack(">H", len(self.id)) + self.id + cbor2.dumps(cose)
        data = self._authenticator_data(_NEW) + new
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        return self._answer(clientDataJSON=client, attestationObject=attestation)

    def sign(self, options: dict) -> dict:
        """Answer `navigator.credentials.get`."""
        self.count += 1
        client = self._client_data("webauthn.get", options["challenge"])
        data = self._authenticator_data()
        signed = data + hashlib.sha256(client).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._answer(clientDataJSON=client, authenticatorData=data, signature=signature)

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _authenticator_data(self, more: int = 0) -> bytes:
        host = hashlib.sha256(self.host.encode()).digest()
        return host + struct.pack(">BI", self.flags | more, self.count)

    def _answer(self, **parts: bytes) -> dict:
        response = {name: encode(part) for name, part in parts.items()}
        return {
            "id": encode(self.id),
            "rawId": encode(self.id),
            "type": "public-key",
            "response": response,
        }
