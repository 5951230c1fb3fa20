"""The charge of the method `evm`: challenges, credentials of type `authorization`, receipts."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import attrs

from gateway import (
    Authorization,
    Challenge,
    Endpoint,
    Payment,
    PaymentRequired,
    PluginContext,
    Proof,
    Quote,
)
from gateway.chain.authorization_checks import SPENT, AuthorizationChecks, check_signed_terms
from gateway.domain.description import price_range
from gateway.domain.eip3009 import checksum_address
from gateway.domain.signed_header import (
    load_json,
    read_authorization,
    read_object,
    read_text,
)
from gateway_mpp.challenges import (
    INTENT,
    METHOD,
    ChallengeEcho,
    ChallengeMaker,
    encode,
    ends_at,
    read_echo,
)

_ACCOUNT = re.compile(r"did:pkh:eip155:([0-9]{1,20}):(0x[0-9a-fA-F]{40})")


# Problem types (RFC 9457) of the scheme, by our reasons.
_PROBLEM_BASE = "https://paymentauth.org/problems/"
_UNKNOWN = "mpp_unknown_challenge"
_EXPIRED = "mpp_expired_challenge"
_OTHER_REQUEST = "mpp_other_request"
_OTHER_NONCE = "mpp_other_nonce"
_OTHER_SOURCE = "mpp_other_source"
_MALFORMED = "malformed-credential", "Malformed Credential"
_CHALLENGE = "invalid-challenge", "Invalid Challenge"
_FAILED = "verification-failed", "Verification Failed"
_PROBLEMS = {
    "invalid_payload": (_MALFORMED, "The credential cannot be read."),
    _UNKNOWN: (_CHALLENGE, "This gateway has not given this challenge."),
    _EXPIRED: (_CHALLENGE, "The challenge has expired."),
    _OTHER_REQUEST: (_CHALLENGE, "The challenge is for another request, or for another price."),
    SPENT: (_CHALLENGE, "The challenge was used before."),
    _OTHER_NONCE: (_FAILED, "The authorization's nonce is not the hash of the challenge."),
    _OTHER_SOURCE: (_FAILED, "The credential's source is not the account that signs."),
}


@attrs.frozen(kw_only=True)
class MppProof(Proof):
    """A credential, decoded but not verified."""

    challenge: ChallengeEcho

    # The payer as a DID. Empty if the client does not send it.
    source: str


class MppVerifier:
    """The scheme `Payment` on one network. Implements `gateway.AuthorizationVerifier`."""

    header_names: Sequence[str] = ("Authorization: Payment",)
    answer_headers: Sequence[str] = ("WWW-Authenticate", "Payment-Receipt")
    binds_body = True
    guide = (
        "Or by the Machine Payments Protocol: the same 402 has the header `WWW-Authenticate: "
        "Payment …` (method `evm`, intent `charge`, credential type `authorization`). Send the "
        "same request again with `Authorization: Payment` and Base64url of "
        '`{"challenge":{…},"payload":{"type":"authorization","from":"0x…",…,"nonce":"0x…",'
        '"signature":"0x…"}}`: the nonce is keccak-256 of the JSON `["<id>","<realm>"]`, and '
        "validBefore the end of the challenge. `Payment-Receipt` of the 200 names the transaction. "
        "The Python package pympp does all of it."
    )

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings
        self._network = settings.chain
        self._now = context.now
        self._checks = AuthorizationChecks(
            settings.chain, context.chain, settings.erc6492_factories
        )
        realm = urlsplit(settings.base_url).netloc
        self._challenges = ChallengeMaker(realm, context.derive_secret("mpp"))

    def challenge(self, quote: Quote, reason: str | None, version: int) -> Challenge:  # noqa: ARG002 - x402's
        """Return a new challenge for a quote, with the problem if a credential was refused."""
        made = self._challenges.make(quote, self._now())
        headers = {"WWW-Authenticate": made.header}
        if reason is None:
            return Challenge(body={}, headers=headers)
        headers["Content-Type"] = "application/problem+json"
        return Challenge(body=_describe_problem(reason, made.id), headers=headers)

    def read(self, header: str) -> MppProof:
        """Decode a credential."""
        credential = read_object(load_json(header))
        payload = read_object(credential.get("payload"))
        if payload.get("type") != "authorization":
            raise PaymentRequired("invalid_payload")
        source = credential.get("source")
        return MppProof(
            challenge=read_echo(read_object(credential.get("challenge"))),
            source="" if source is None else read_text(source),
            authorization=read_authorization(payload, payload.get("signature")),
        )

    def check_terms(self, proof: MppProof, quote: Quote, now: float) -> None:
        """Check that the challenge is ours and for this quote, then check the signed terms."""
        echo, signed = proof.challenge, proof.authorization
        if not self._challenges.is_ours(echo):
            raise PaymentRequired(_UNKNOWN)
        if not self._challenges.is_for(echo, quote):
            raise PaymentRequired(_OTHER_REQUEST)
        if now >= ends_at(echo):
            raise PaymentRequired(_EXPIRED)
        if signed.nonce not in echo.nonces:
            raise PaymentRequired(_OTHER_NONCE)
        if not self._is_source(proof.source, signed.sender):
            raise PaymentRequired(_OTHER_SOURCE)
        check_signed_terms(signed, quote, now)

    def _is_source(self, source: str, sender: str) -> bool:
        """Whether the account in a credential is the sender; other DIDs name no account."""
        if not source.startswith("did:pkh:"):
            return True
        named = _ACCOUNT.fullmatch(source)
        return named is not None and (int(named[1]), named[2].lower()) == (
            self._network.chain_id,
            sender,
        )

    async def check_chain(self, authorization: Authorization) -> bool:
        """Verify the signature, then simulate the exact call. False: the nonce is spent."""
        return await self._checks.check(authorization)

    def receipt_headers(self, proof: MppProof, payment: Payment) -> Mapping[str, str]:
        """Return the receipt; none while the outcome is unknown, because it states success."""
        if payment.paid_tx is None:
            return {}
        at = datetime.fromtimestamp(int(self._now()), UTC).isoformat().replace("+00:00", "Z")
        receipt = {
            "challengeId": proof.challenge.id,
            "chainId": self._network.chain_id,
            "method": METHOD,
            "reference": payment.paid_tx,
            "status": "success",
            "timestamp": at,
        }
        return {"Payment-Receipt": encode(receipt), "Cache-Control": "private, no-store"}

    def payment_info(self, endpoint: Endpoint) -> Mapping[str, Any]:
        """Return the offer for OpenAPI (draft-payment-discovery-00)."""
        lowest, highest = price_range(endpoint)
        named = {
            "intent": INTENT,
            "method": METHOD,
            "currency": checksum_address(self._network.token),
        }
        amount = str(lowest) if lowest == highest else None
        return {"protocols": [{"mpp": named}], "offers": [named | {"amount": amount}]}


def _describe_problem(reason: str, challenge_id: str) -> dict[str, Any]:
    """Return the problem for a reason; `challenge_id` is the new challenge's."""
    (name, title), sentence = _PROBLEMS.get(reason, (_FAILED, ""))
    return {
        "type": _PROBLEM_BASE + name,
        "title": title,
        "status": 402,
        "detail": f"{sentence} ({reason})" if sentence else reason,
        "challengeId": challenge_id,
    }
