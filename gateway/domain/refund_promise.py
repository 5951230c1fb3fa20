"""The refund promise for paid generations that fail.

x402 has no standard for refunds yet. The extension's key is the gateway's own, so that no draft can
give it another meaning.
"""

from typing import Any, Literal

import attrs

# In `extensions` of x402 v2.
REFUND_POLICY = "refund-policy"
# Automatic refunds are retried every few seconds; this allows for a slow chain.
_WITHIN_S = 3600
_SENTENCES = {
    "automatic": (
        "If a paid generation fails, the gateway sends the price back to the payer by itself, "
        "within an hour."
    ),
    "review": "If a paid generation fails, the operator decides about sending the price back.",
    "none": "If a paid generation fails, no refund is promised.",
}


@attrs.frozen(kw_only=True)
class RefundPromise:
    """What happens to the price if the task fails, and the URL of the policy."""

    on_failure: Literal["automatic", "review", "none"]
    policy_url: str

    def describe(self) -> dict[str, Any]:
        """Return the promise as in the manifest and the challenge."""
        promise: dict[str, Any] = {"onFailure": self.on_failure}
        if self.on_failure != "none":
            promise |= {"amount": "full", "to": "payer"}
        if self.on_failure == "automatic":
            promise["withinSeconds"] = _WITHIN_S
        return promise | {"policyUrl": self.policy_url}

    def extension(self) -> dict[str, Any]:
        """Return the x402 v2 extension."""
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}
        return {"info": self.describe(), "schema": schema}

    @property
    def sentence(self) -> str:
        """The promise in words."""
        return promise_in_words(self.on_failure)


def promise_in_words(on_failure: object) -> str:
    """Return the sentence for a promise. An unknown or missing one promises nothing."""
    known = isinstance(on_failure, str) and on_failure in _SENTENCES
    return _SENTENCES[str(on_failure)] if known else _SENTENCES["none"]
