"""The curve in C signs and recovers as eth_keys' own arithmetic does."""

import pytest
from eth_keys import KeyAPI
from eth_keys.backends.native.main import NativeECCBackend
from eth_keys.datatypes import PrivateKey, Signature
from eth_keys.exceptions import BadSignature
from eth_utils.crypto import keccak

from gateway.demo.chain.curve import Curve

OURS, THEIRS = KeyAPI(Curve()), KeyAPI(NativeECCBackend())


@pytest.mark.parametrize("number", range(8))
def test_signatures_keys_and_signers_are_the_same(number):
    digest, secret = keccak(b"digest %d" % number), keccak(b"key %d" % number)
    ours, theirs = (api.ecdsa_sign(digest, api.PrivateKey(secret)) for api in (OURS, THEIRS))
    assert ours.to_bytes() == theirs.to_bytes()
    public = THEIRS.PrivateKey(secret).public_key
    assert OURS.PrivateKey(secret).public_key == public
    assert OURS.ecdsa_recover(digest, ours) == public


@pytest.mark.parametrize("packed", [bytes(65), b"\xff" * 64 + b"\0", b"\1" * 31 + bytes(34)])
def test_a_signature_of_nobody_is_refused(packed):
    with pytest.raises(BadSignature):
        OURS.ecdsa_recover(keccak(b"x"), Signature(packed))


def test_the_embedded_chain_signs_in_c():
    assert isinstance(PrivateKey(keccak(b"anybody")).backend, Curve)
