"""Every error the gateway raises on purpose.

GatewayError                       reaches a caller as JSON: status, code, sentence
├── ValidationError                400 VALIDATION_ERROR
│   └── PayloadTooLarge            413 VALIDATION_ERROR
├── NotFound                       404 NOT_FOUND
├── MethodNotAllowed               405 METHOD_NOT_ALLOWED
├── InvalidCredentials             401 INVALID_CREDENTIALS
├── IdempotencyConflict            409 IDEMPOTENCY_CONFLICT
├── TooManyRequests                429, no code
├── ExecutionError                 500 EXECUTION_ERROR: cannot serve now, nothing charged
│   └── BodiesFull                 503 EXECUTION_ERROR, with Retry-After
├── ChainUnavailable               500 INTERNAL_ERROR: no answer from Base, nothing charged
├── PaymentRequired                402, the challenge
└── PaymentError                   400, the direct flow's refusals
    ├── TxNotFound                 TX_NOT_FOUND
    ├── TxFailed                   TX_FAILED
    ├── InvalidPayment             INVALID_PAYMENT
    ├── InsufficientPayment        INSUFFICIENT_PAYMENT
    └── TxAlreadyUsed              TX_ALREADY_USED

ProviderError                      ends or delays an attempt of a task
├── Transient                      costs one of the retries; after a billable request went out,
│   │                              it counts as SubmitUncertain
│   └── NotAccepted                costs one of the retries: sent, and certainly not taken
├── RateLimited                    waits, costs no attempt
├── InvalidInput                   fails at once; before payment: VALIDATION_ERROR
├── ContentPolicy                  fails at once
├── AccountProblem                 fails at once; the endpoint is off sale until it is solved
├── SubmitUncertain                fails at once: sent, no answer, perhaps billed
├── JobFailed                      costs one of the retries: the job ended without a result
├── HandleLost                     fails at once: the API does not know its own job any more
└── ResultUnusable                 fails at once: made, perhaps billed, and it cannot be sold
    └── LinkDead                   the job is asked for a fresh link, three times; then the same

RefundRefused                      the operator's decision cannot be carried out
SettingsError                      stops the start with one sentence
"""

from typing import ClassVar


class GatewayError(Exception):
    """Base of every error that may reach a caller; its message is a sentence for them."""

    status: ClassVar[int] = 500
    code: ClassVar[str | None] = "INTERNAL_ERROR"

    def __init__(self, message: str, *, details: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class ValidationError(GatewayError):
    """The request breaks the specification or the endpoint's own choices."""

    status = 400
    code = "VALIDATION_ERROR"


class PayloadTooLarge(ValidationError):
    """The body is past the route's limit."""

    status = 413


class NotFound(GatewayError):
    """No such path, slug, task or file."""

    status = 404
    code = "NOT_FOUND"


class MethodNotAllowed(GatewayError):
    """The path exists, but not for this method."""

    status = 405
    code = "METHOD_NOT_ALLOWED"


class InvalidCredentials(GatewayError):
    """The admin password does not match; says the same for every cause."""

    status = 401
    code = "INVALID_CREDENTIALS"


class IdempotencyConflict(GatewayError):
    """The Idempotency-Key was used with another request."""

    status = 409
    code = "IDEMPOTENCY_CONFLICT"


class TooManyRequests(GatewayError):
    """A rate limit is exceeded; `retry_after_s` whole seconds of waiting always suffice."""

    status = 429
    code = None

    def __init__(self, retry_after_s: int) -> None:
        unit = "second" if retry_after_s == 1 else "seconds"
        super().__init__(f"Rate limit exceeded. Try again in {retry_after_s} {unit}.")
        self.retry_after_s = retry_after_s


class ExecutionError(GatewayError):
    """The endpoint cannot serve now; nothing was charged."""

    code = "EXECUTION_ERROR"


class BodiesFull(ExecutionError):
    """The bodies of other requests take all the memory that bodies may take."""

    status = 503
    retry_after_s = 5

    def __init__(self) -> None:
        super().__init__(
            "Too many large requests are being read; nothing was charged. "
            f"Try again in {self.retry_after_s} seconds."
        )


class ChainUnavailable(GatewayError):
    """No configured RPC endpoint answered, or the answers make no sense."""


class PaymentRequired(GatewayError):
    """The 402: no payment, or one that cannot be accepted.

    `reason` is a standard x402 error reason, or None for the first, plain challenge.
    """

    status = 402
    code = None

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "Payment required")
        self.reason = reason


class PaymentError(GatewayError):
    """The submitted transaction does not pay for this request (spec §7.2)."""

    status = 400


class TxNotFound(PaymentError):
    """No receipt for the hash yet."""

    code = "TX_NOT_FOUND"


class TxFailed(PaymentError):
    """The transaction was reverted."""

    code = "TX_FAILED"


class InvalidPayment(PaymentError):
    """The transaction holds no acceptable USDC transfer to the wallet."""

    code = "INVALID_PAYMENT"


class InsufficientPayment(PaymentError):
    """No single transfer reaches the price."""

    code = "INSUFFICIENT_PAYMENT"


class TxAlreadyUsed(PaymentError):
    """The hash, or the transfer in it, already paid for a generation."""

    code = "TX_ALREADY_USED"


class ProviderError(Exception):
    """Base of what a provider raises.

    Anything else that a `submit` raises counts as `SubmitUncertain`, and anything else that a
    `poll` raises as `Transient`.
    """


class Transient(ProviderError):
    """A moment's trouble, such as a network error: worth another attempt.

    Of a `submit` it must mean that nothing was taken. Where a request that may be billed went out
    through `Outbound`, the gateway does not believe that, and counts it as `SubmitUncertain`.
    """


class NotAccepted(Transient):
    """Sent, and the vendor documents that this answer means "not taken, not billed"."""


class RateLimited(ProviderError):
    """The provider asks to wait; costs no attempt."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class InvalidInput(ProviderError):
    """The provider cannot work with this input, however often it is asked."""


class ContentPolicy(ProviderError):
    """The provider refuses the content."""


class AccountProblem(ProviderError):
    """The operator's key, credit or settings are not right; every request fails until they are.

    Its message goes to the operator's log: never a key, never what the buyer sent.
    """


class SubmitUncertain(ProviderError):
    """Sent, and no answer: it may have been made and billed, so it is not sent again."""


class JobFailed(ProviderError):
    """The API says that a job ended without a result, and bills none: it is submitted anew."""


class HandleLost(ProviderError):
    """The API does not know a job it accepted: perhaps made and billed, so not submitted anew.

    Unless the provider's submit is idempotent: then it costs one of the retries.
    """


class ResultUnusable(ProviderError):
    """The result was made, perhaps billed, and cannot be sold; so it is not made anew.

    The task fails with its message, which the buyer reads. Unless the provider's submit is
    idempotent: then it costs one of the retries.
    """


class LinkDead(ResultUnusable):
    """What the result links to cannot be had; a job is polled again for a fresh link.

    After three of them the task fails with the message, also where the submit is idempotent.
    """


class RefundRefused(Exception):
    """A refund cannot be decided or sent so; the message says why."""


class SettingsError(Exception):
    """A setting is wrong or missing; the message names it and shows an example."""
