"""secp256k1 in C for eth_keys, by which the embedded chain and eth-account sign and recover.

By itself eth_keys takes coincurve, which has no wheel for Python 3.14, or else computes in Python,
which takes milliseconds for each signature.
"""

from btclib_secp256k1 import keys, recovery
from eth_keys.backends.native.main import NativeECCBackend
from eth_keys.datatypes import PrivateKey, PublicKey, Signature
from eth_keys.exceptions import BadSignature


class Curve(NativeECCBackend):
    """Signs and recovers in C; the rest, which nothing here needs to be fast, is eth_keys' own."""

    def ecdsa_sign(self, msg_hash: bytes, private_key: PrivateKey) -> Signature:
        """Return the signature of a digest of 32 bytes."""
        signature, recovery_id = recovery.sign(msg_hash, private_key.to_bytes())
        return Signature(signature + bytes([recovery_id]), backend=self)

    def ecdsa_recover(self, msg_hash: bytes, signature: Signature) -> PublicKey:
        """Return the key that signed; raises `BadSignature`."""
        packed = signature.to_bytes()
        try:
            public = recovery.recover(msg_hash, packed[:64], packed[64], compressed=False)
        except ValueError as error:
            raise BadSignature(str(error)) from error
        return PublicKey(public[1:], backend=self)

    def private_key_to_public_key(self, private_key: PrivateKey) -> PublicKey:
        """Return the public key of a private key."""
        public = keys.pubkey_from_prvkey(private_key.to_bytes(), compressed=False)
        return PublicKey(public[1:], backend=self)
