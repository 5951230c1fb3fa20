"""Challenges of the scheme `Payment`: stateless, recognized by their id.

The id is an HMAC over the challenge's content. Sources: draft-httpauth-payment-00 (challenge
binding) and draft-evm-charge-00 (request and nonce). The latter differs from its authors' own
clients, so both forms are accepted.
"""

import base64
import functools
import hmac
import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import attrs
from eth_hash.auto import keccak

from gateway import Quote
from gateway.domain import QUOTE_LIFE_S
from gateway.domain.eip3009 import checksum_address
from gateway.domain.signed_header import load_json, read_object, read_text

METHOD, INTENT = "evm", "charge"
_SLUG, _UNIQUE = "slug", "_mpp_nonce"
_UNIQUE_BYTES = 16
_DECIMALS = 6


@attrs.frozen(kw_only=True)
class ChallengeEcho:
    """A challenge, or the one that a credential answers. All texts are as in the header."""

    id: str
    realm: str
    method: str
    intent: str

    # Base64url of JSON.
    request: str
    digest: str = ""
    expires: str = ""

    # Base64url of JSON.
    opaque: str = ""

    @property
    def header(self) -> str:
        """The challenge as the value of `WWW-Authenticate`."""
        required = (
            f'Payment id="{self.id}", realm="{self.realm}", method="{self.method}", '
            f'intent="{self.intent}", request="{self.request}"'
        )
        digest = f', digest="{self.digest}"' if self.digest else ""
        return f'{required}{digest}, expires="{self.expires}", opaque="{self.opaque}"'

    @property
    def nonces(self) -> tuple[str, ...]:
        """The nonces of this challenge: the clients' form and the draft's."""
        pair = json.dumps([self.id, self.realm], separators=(",", ":"), ensure_ascii=False)
        return tuple("0x" + keccak(text.encode()).hex() for text in (pair, self.id + self.realm))


class ChallengeMaker:
    """Makes and recognizes the challenges of one realm under one secret."""

    def __init__(self, realm: str, secret: str) -> None:
        self._realm = realm
        self._secret = secret.encode()

    def make(self, quote: Quote, now: float) -> ChallengeEcho:
        """Return a unique challenge for a quote.

        The same payer may buy the same thing twice, and each purchase needs its own nonce.
        """
        ends = datetime.fromtimestamp(int(now) + QUOTE_LIFE_S, UTC)
        named = {
            "realm": self._realm,
            "method": METHOD,
            "intent": INTENT,
            "request": encode_request(quote),
            "expires": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "digest": quote.body_digest,
            "opaque": encode(
                {_UNIQUE: secrets.token_hex(_UNIQUE_BYTES), _SLUG: quote.endpoint.slug}
            ),
        }
        return ChallengeEcho(id=self._sign(*named.values()), **named)

    def is_ours(self, echo: ChallengeEcho) -> bool:
        """Whether this installation made exactly this challenge."""
        slots = (echo.realm, echo.method, echo.intent, echo.request)
        expected = self._sign(*slots, echo.expires, echo.digest, echo.opaque)
        return hmac.compare_digest(echo.id.encode(), expected.encode())

    def is_for(self, echo: ChallengeEcho, quote: Quote) -> bool:
        """Whether our challenge is for this request: endpoint, price, wallet, chain, body.

        A challenge without a digest fits any body.
        """
        return (
            (echo.realm, echo.method, echo.intent) == (self._realm, METHOD, INTENT)
            and echo.request == encode_request(quote)
            and echo.digest in ("", quote.body_digest)
            and read_object(load_json(echo.opaque)).get(_SLUG) == quote.endpoint.slug
        )

    def _sign(self, *slots: str) -> str:
        """Return the id for the draft's seven slots, in its order."""
        return _base64url(hmac.digest(self._secret, "|".join(slots).encode(), "sha256"))


def read_echo(challenge: Mapping[str, Any]) -> ChallengeEcho:
    """Return the challenge in a credential; raises `PaymentRequired("invalid_payload")`."""
    fields = attrs.fields_dict(ChallengeEcho)
    given = {
        name: _read_ascii(challenge[name]) for name in fields if challenge.get(name) is not None
    }
    missing = {"id", "realm", "method", "intent", "request"} - given.keys()
    return ChallengeEcho(**given, **dict.fromkeys(missing, ""))


def ends_at(echo: ChallengeEcho) -> float:
    """Return when our challenge expires (Unix seconds)."""
    return datetime.fromisoformat(echo.expires).timestamp()


def encode_request(quote: Quote) -> str:
    """Return the `request` of a challenge for this quote."""
    network = quote.network
    return _encode_request(quote.price_units, quote.wallet, network.token, network.chain_id)


@functools.lru_cache(maxsize=4096)
def _encode_request(units: int, wallet: str, token: str, chain_id: int) -> str:
    return encode(
        {
            "amount": str(units),
            "currency": checksum_address(token),
            "recipient": checksum_address(wallet),
            # `permit2Address` is left out, as in the clients' own server: Permit2 is not accepted.
            "methodDetails": {
                "chainId": chain_id,
                "credentialTypes": ["authorization"],
                "decimals": _DECIMALS,
            },
        }
    )


def encode(value: Mapping[str, Any]) -> str:
    """Return Base64url of canonical JSON (RFC 8785), for objects of ASCII text and integers."""
    return _base64url(json.dumps(value, separators=(",", ":"), sort_keys=True).encode())


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _read_ascii(value: Any) -> str:
    """Return an ASCII text; empty for any other, which none of our challenges has."""
    text = read_text(value)
    return text if text.isascii() else ""
