"""What a buyer is promised if a paid generation fails.

No standard of x402 has a refund promise yet, so the key of the extension is the gateway's own, and
no draft can give it another meaning.
"""

from typing import Any, Literal

import attrs

# In `extensions` of x402 v2.
REFUND_POLICY = "refund-policy"
# An automatic refund is tried every few seconds; so long it may take while the chain is slow.
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
    """What happens with the price if the task fails, and the address of the text about it."""

    on_failure: Literal["automatic", "review", "none"]
    policy_url: str

    def describe(self) -> dict[str, Any]:
        """Return the promise as the manifest and the challenge have it."""
        said: dict[str, Any] = {"onFailure": self.on_failure}
        if self.on_failure != "none":
            said |= {"amount": "full", "to": "payer"}
        if self.on_failure == "automatic":
            said["withinSeconds"] = _WITHIN_S
        return said | {"policyUrl": self.policy_url}

    def extension(self) -> dict[str, Any]:
        """Return the extension of x402 v2."""
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}
        return {"info": self.describe(), "schema": schema}

    @property
    def sentence(self) -> str:
        """The promise in words."""
        return promise_in_words(self.on_failure)


def promise_in_words(on_failure: object) -> str:
    """Return the sentence for a promise; one that is unknown or missing promises nothing."""
    known = isinstance(on_failure, str) and on_failure in _SENTENCES
    return _SENTENCES[str(on_failure)] if known else _SENTENCES["none"]
