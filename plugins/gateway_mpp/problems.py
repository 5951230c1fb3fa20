"""Why a credential was refused, as Problem Details (RFC 9457) with the scheme's own types."""

from typing import Any

from gateway.chain.authorization_checks import SPENT

BASE = "https://paymentauth.org/problems/"
UNKNOWN = "mpp_unknown_challenge"
EXPIRED = "mpp_expired_challenge"
OTHER_REQUEST = "mpp_other_request"
OTHER_NONCE = "mpp_other_nonce"
OTHER_SOURCE = "mpp_other_source"
_MALFORMED = "malformed-credential", "Malformed Credential"
_CHALLENGE = "invalid-challenge", "Invalid Challenge"
_FAILED = "verification-failed", "Verification Failed"
_PROBLEMS = {
    "invalid_payload": (_MALFORMED, "The credential cannot be read."),
    UNKNOWN: (_CHALLENGE, "This gateway has not given this challenge."),
    EXPIRED: (_CHALLENGE, "The challenge has expired."),
    OTHER_REQUEST: (_CHALLENGE, "The challenge is for another request, or for another price."),
    SPENT: (_CHALLENGE, "The challenge was used before."),
    OTHER_NONCE: (_FAILED, "The authorization's nonce is not the hash of the challenge."),
    OTHER_SOURCE: (_FAILED, "The credential's source is not the account that signs."),
}


def describe(reason: str, challenge_id: str) -> dict[str, Any]:
    """Return the problem for a reason; `challenge_id` is the fresh challenge's."""
    (name, title), sentence = _PROBLEMS.get(reason, (_FAILED, ""))
    return {
        "type": BASE + name,
        "title": title,
        "status": 402,
        "detail": f"{sentence} ({reason})" if sentence else reason,
        "challengeId": challenge_id,
    }
