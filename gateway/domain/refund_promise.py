"""What happens to a buyer's money if a paid generation fails: the only source of these sentences.

x402 has no standard for refunds yet. The extension's key is the gateway's own, so that no draft can
give it another meaning.
"""

from typing import Any, Literal

import attrs

from gateway.domain.records import Decision, PaymentState, Refund

# In `extensions` of x402 v2.
REFUND_POLICY = "refund-policy"
# Automatic refunds are retried every few seconds; this allows for a slow chain.
_WITHIN_S = 3600
_BEFORE_SALE = {
    "automatic": (
        "If a paid generation fails, the gateway sends the price back to the payer automatically, "
        "within an hour. The operator decides about payments that the payer did not sign, such as "
        "plain transfers."
    ),
    "review": (
        "If a paid generation fails, the price is due back to the payer, and the operator decides "
        "about sending it."
    ),
    "none": (
        "If a paid generation fails, the price is due back to the payer, but no refund is "
        "promised: this gateway cannot send one. Only its operator can, by hand."
    ),
}
_UNNAMED = "The gateway names no refund policy, so no refund is promised if a generation fails."
_DUE = {
    "automatic": "It is due back to you, and the gateway sends it automatically, within an hour.",
    "review": "It is due back to you, and the operator decides about sending it.",
    "none": (
        "It is due back to you, but no refund is promised: this gateway cannot send one. Only its "
        "operator can, by hand."
    ),
}
_APPROVED = "It is due back to you. The operator approved it, and the gateway sends it soon."
_DELAYED = "It is due back to you. The gateway cannot send it now, and tries until it can."
_SENT = {
    PaymentState.REFUNDING: "It is on its way to you.",
    PaymentState.REFUNDED: "It was sent back to you.",
}
_FAILED = (
    "It was not sent: the operator rejected it, or its transfer failed. The operator decides what "
    "follows."
)
OnFailure = Literal["automatic", "review", "none"]


@attrs.frozen(kw_only=True)
class RefundPromise:
    """What happens to the price if the task fails, and the URL of the policy."""

    on_failure: OnFailure
    policy_url: str
    # The operator's e-mail address; may be empty.
    contact: str = ""

    def describe(self) -> dict[str, Any]:
        """Return the promise as in the challenge's extension."""
        promise: dict[str, Any] = {"onFailure": self.on_failure}
        if self.on_failure != "none":
            promise |= {"amount": "full", "to": "payer"}
        if self.on_failure == "automatic":
            promise["withinSeconds"] = _WITHIN_S
        return promise | {"policyUrl": self.policy_url}

    def describe_in_words(self) -> dict[str, Any]:
        """Return the promise with its sentence, as in the manifest."""
        return self.describe() | {"sentence": self.sentence}

    def extension(self) -> dict[str, Any]:
        """Return the x402 v2 extension. Its header has no space for the sentence."""
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}
        return {"info": self.describe(), "schema": schema}

    @property
    def sentence(self) -> str:
        """The promise in words, before a sale."""
        contact = "" if self.is_automatic else self._name_contact()
        return promise_in_words(self.on_failure) + contact

    @property
    def is_automatic(self) -> bool:
        """Whether the gateway sends the refund without a decision."""
        return self.on_failure == "automatic"

    def describe_refund(self, refund: Refund) -> str:
        """Return the state of a refund in words, after a sale."""
        if refund.state is PaymentState.REFUND_FAILED:
            return _FAILED + self._name_contact()
        if refund.state is not PaymentState.REFUND_DUE:
            return _SENT[refund.state]
        is_approved = refund.decision is Decision.APPROVED
        if self.on_failure == "none" or not (is_approved or self.is_automatic):
            return _DUE[self.on_failure] + self._name_contact()
        if refund.problem:
            return _DELAYED
        return _APPROVED if is_approved else _DUE[self.on_failure]

    def _name_contact(self) -> str:
        return f" Contact: {self.contact}" if self.contact else ""


def promise_in_words(on_failure: object) -> str:
    """Return the sentence for a promise. An unknown or missing one promises nothing."""
    known = isinstance(on_failure, str) and on_failure in _BEFORE_SALE
    return _BEFORE_SALE[str(on_failure)] if known else _UNNAMED
