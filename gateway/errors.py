"""Every error the gateway raises on purpose.

A `GatewayError` reaches the buyer as JSON (docs/errors.md). A `ProviderError` ends or delays an
attempt of a task. An `ActionRefused` refuses an action of the operator.
"""

from typing import ClassVar, Literal


class GatewayError(Exception):
    """Base of every error that may reach the buyer. The message is for the buyer."""

    status: ClassVar[int] = 500
    code: ClassVar[str | None] = "INTERNAL_ERROR"
    # Whether the gateway has checked that the refused payment took nothing.
    is_uncharged: bool = False

    def __init__(self, message: str, *, details: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class ValidationError(GatewayError):
    """The request violates the specification or the endpoint's choices."""

    status = 400
    code = "VALIDATION_ERROR"


class PayloadTooLarge(ValidationError):
    """The body exceeds the route's limit."""

    status = 413


class NotFound(GatewayError):
    """The path, slug, task or file does not exist."""

    status = 404
    code = "NOT_FOUND"


class MethodNotAllowed(GatewayError):
    """The path exists, but not for this method."""

    status = 405
    code = "METHOD_NOT_ALLOWED"


class InvalidCredentials(GatewayError):
    """The admin password does not match. The message is the same for every cause."""

    status = 401
    code = "INVALID_CREDENTIALS"


class ForeignOrigin(GatewayError):
    """A state-changing request did not come from a page of this gateway."""

    status = 403
    code = "FOREIGN_ORIGIN"


class WrongScope(GatewayError):
    """The token is valid, but lacks the scope."""

    status = 403
    code = "WRONG_SCOPE"


class IdempotencyConflict(GatewayError):
    """The Idempotency-Key was used with another request."""

    status = 409
    code = "IDEMPOTENCY_CONFLICT"


class TooManyRequests(GatewayError):
    """A rate limit is exceeded. Waiting `retry_after_s` whole seconds always suffices."""

    status = 429
    code = None
    sentence: ClassVar[str] = "Rate limit exceeded. Try again in {} {}."

    def __init__(self, retry_after_s: int) -> None:
        unit = "second" if retry_after_s == 1 else "seconds"
        super().__init__(self.sentence.format(retry_after_s, unit))
        self.retry_after_s = retry_after_s


class TooManyStreams(TooManyRequests):
    """Too many event streams are open, for this address or in total. Polling still works."""

    sentence = (
        "Too many event streams are open. Poll the task instead: leave the header Accept out, "
        "and add ?wait=30."
    )


class TooMuchUnpaid(TooManyRequests):
    """One address used too much of the capacity for checks before payment."""

    sentence = "Checking your files takes too much of this gateway. Try again in {} s."


class ExecutionError(GatewayError):
    """The endpoint cannot serve now."""

    code = "EXECUTION_ERROR"


class DiskFull(ExecutionError):
    """The database's disk is full."""

    # For the operator, who can fix it.
    remedy: ClassVar[str] = "The disk is full: free some space"

    def __init__(self) -> None:
        super().__init__("The gateway's disk is full. Try again later.")


class _Unavailable(ExecutionError):
    """Base of the 503 errors, which ask to send the same request again later."""

    status = 503
    retry_after_s: ClassVar[int] = 20
    sentence: ClassVar[str]
    advice: ClassVar[str] = "Try again in {} seconds."

    def __init__(self) -> None:
        super().__init__(f"{self.sentence} {self.advice.format(self.retry_after_s)}")


class BodiesFull(_Unavailable):
    """The bodies of other requests fill the memory for bodies."""

    retry_after_s = 5
    sentence = "Too many large requests are being read."


class ChecksFull(_Unavailable):
    """Checks of other requests' files take precedence."""

    retry_after_s = 5
    sentence = "Too many files are being checked."


class Restarting(_Unavailable):
    """The gateway is draining, for example for an upgrade."""

    sentence = "The gateway is restarting."


class Resuming(_Unavailable):
    """The machine was suspended, or its clock jumped; leases and chain are checked first."""

    retry_after_s = 5
    sentence = "The gateway has just resumed, and checks the chain first."


class NoWorkers(_Unavailable):
    """No machine runs tasks of this endpoint."""

    sentence = "No machine of the gateway makes what it sells now."


class WrongNode(_Unavailable):
    """This machine does not sell (GATEWAY_ROLE)."""

    sentence = "This machine of the gateway sells nothing."
    advice = "Ask at the gateway's public address."


class StoreUnavailable(_Unavailable):
    """The database does not respond, so nothing can be sold. Payments are not lost."""

    retry_after_s = 5
    sentence = "The gateway's database does not answer."
    advice = "Send the same request again in {} seconds: a payment is never charged twice."


class ChainUnavailable(GatewayError):
    """No configured RPC endpoint responded, or the responses are inconsistent."""


class PaymentRequired(GatewayError):
    """The 402: the request has no payment, or a payment that cannot be accepted.

    `reason` is a standard x402 error reason or a sentence; None for the plain challenge.
    """

    status = 402
    code = None

    def __init__(self, reason: str | None = None, *, details: str | None = None) -> None:
        super().__init__(reason or "Payment required", details=details)
        self.reason = reason


class PaymentError(GatewayError):
    """The submitted transaction does not pay for this request (spec §7.2)."""

    status = 400


class TxNotFound(PaymentError):
    """The hash has no receipt yet."""

    code = "TX_NOT_FOUND"


class TxFailed(PaymentError):
    """The transaction was reverted."""

    code = "TX_FAILED"


class InvalidPayment(PaymentError):
    """The transaction contains no acceptable USDC transfer to the wallet."""

    code = "INVALID_PAYMENT"


class InsufficientPayment(PaymentError):
    """No single transfer covers the price."""

    code = "INSUFFICIENT_PAYMENT"


class TxAlreadyUsed(PaymentError):
    """The hash, or the transfer in its transaction, already paid for a generation."""

    code = "TX_ALREADY_USED"


class ProviderError(Exception):
    """Base of the errors that a provider raises.

    Any other exception counts as `SubmitUncertain` in `submit`, and as `Transient` in `poll`.
    """


class Transient(ProviderError):
    """A temporary failure, such as a network error: another attempt may succeed.

    In `submit`, it must mean that the vendor accepted nothing. It still counts as `SubmitUncertain`
    if a billable request was sent through `Outbound`.
    """


class NotAccepted(Transient):
    """The vendor documents that this response to a submit means "not accepted, not billed".

    Costs a retry. `retry_after_s` is the wait in seconds that the vendor asks for, if any: until
    then nothing is submitted to the provider.
    """

    def __init__(self, message: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RateLimited(ProviderError):
    """The vendor asks to wait `retry_after_s` seconds. Costs no attempt."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class InvalidInput(ProviderError):
    """The vendor rejects this input, however often it is sent."""


class ContentPolicy(ProviderError):
    """The vendor refuses the content."""


class AccountProblem(ProviderError):
    """The operator's key, credit or settings are wrong, so every request fails until fixed.

    The message goes to the operator's log: it must contain no key and nothing from the buyer.
    `scope` selects what goes off sale. "vendor": every endpoint of the provider, for a wrong key or
    no credit. "model": this endpoint, for example for a retired model. "choice", if the model
    refuses a ratio, resolution or format: this endpoint, unless the buyer chose one of them or sent
    a file. Then only the task fails, so that no buyer can take an endpoint off sale.
    """

    def __init__(
        self, message: str = "", *, scope: Literal["vendor", "model", "choice"] = "vendor"
    ) -> None:
        super().__init__(message)
        self.scope = scope


class SubmitUncertain(ProviderError):
    """Sent without a response: perhaps generated and billed, so it is not sent again."""


class JobFailed(ProviderError):
    """The job ended without result and bill, so it is submitted again."""


class HandleLost(ProviderError):
    """The API does not know a job that it accepted.

    It may have been billed: only an idempotent submit is repeated, which costs a retry.
    """


class ResultUnusable(ProviderError):
    """The result was generated, perhaps billed, and cannot be sold.

    The task fails with the message, which the buyer sees. An idempotent submit is repeated instead,
    which costs a retry.
    """


class ResultMissing(ResultUnusable):
    """The vendor reports success, but returned no result.

    It may have been billed; see `ResultUnusable`. If a filter removed a picture, raise
    `ContentPolicy` instead: the provider did not fail.
    """

    def __init__(self, message: str = "The provider was done, but gave no result.") -> None:
        super().__init__(message)


class NotAsOrdered(ResultUnusable):
    """The result is whole, but not what was ordered: too small, of another ratio, without words.

    The gateway raises it for every provider; see `ResultUnusable`. A result that the vendor reports
    as free (`is_free`) is also generated again.
    """

    def __init__(self, message: str, *, is_free: bool = False) -> None:
        super().__init__(message)
        self.is_free = is_free


class LinkDead(ResultUnusable):
    """The file that the result links to cannot be downloaded.

    A job is polled again for a fresh link. After three dead links the task fails with the message,
    even if the provider's submit is idempotent.
    """


class ActionRefused(Exception):
    """An operator's action is not possible. The message states why, and what to do."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "REFUSED"


class StaleForm(ActionRefused):
    """The state that the operator saw has changed since then, so nothing was done."""

    code = "STALE_FORM"


class WrongValue(ActionRefused):
    """The operator's input is invalid, whatever the state of the gateway."""

    status = 400
    code = "WRONG_VALUE"


class NeedsFresh(ActionRefused):
    """The action requires a password or code that was entered a moment ago."""

    status = 403
    code = "NEEDS_FRESH_LOGIN"


class RefundRefused(ActionRefused):
    """A refund cannot be decided or sent like this. The message states why."""


class BackupFailed(Exception):
    """A backup could not be made, found, fetched or used. The message is one sentence."""


class SettingsError(Exception):
    """A setting is wrong or missing. The message names the setting and shows an example."""


def text_of(error: BaseException) -> str:
    """Return the text of an error of a plugin's own class, or nothing if it raises in turn."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - `__str__` is the plugin's code, too
        return ""
