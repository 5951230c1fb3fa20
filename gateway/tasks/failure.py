"""Describes a failed attempt by its error and the vendor's status, code and message."""

import attrs

from gateway.catalog.notes import newest_refusal, summarize
from gateway.catalog.upstream import Upstream, place_in
from gateway.domain import GenerationRequest
from gateway.errors import ProviderError

_MAX_MESSAGE_CHARS = 200
# Error text that repeats this many characters of the prompt or the file name is not shown.
_QUOTE_CHARS = 16


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Failure:
    """Why an attempt failed, for logs and the operator. Contains no secrets and no prompt."""

    # The error's class.
    error: str
    # The vendor's HTTP status; None if it did not respond, or did not refuse.
    status: int | None
    vendor_code: str
    # The vendor's message, else the error's text; at most 200 characters.
    vendor_message: str
    # The plugin's line, if it raised an error that is not a `ProviderError`; else empty.
    at: str

    @property
    def summary(self) -> str:
        """One line, such as `status 401 invalid_api_key: Incorrect API key provided.`."""
        head = f"status {self.status}" if self.status is not None else self.error
        return summarize(head, self.vendor_code, self.vendor_message)

    def fields(self) -> dict[str, object]:
        """Return the non-empty fields, for a log line."""
        found = attrs.asdict(self)
        return {name: value for name, value in found.items() if value not in (None, "")}


def describe_failure(error: Exception, upstream: Upstream, request: GenerationRequest) -> Failure:
    """Describe the error that ended an attempt. Call it in the attempt's asyncio task."""
    refusal = newest_refusal()
    own = upstream.error_text(error)
    vendor_message = upstream.redactor.clean(refusal.vendor_message) if refusal is not None else ""
    module = type(upstream.provider).__module__
    return Failure(
        error=type(error).__name__,
        status=refusal.status if refusal is not None else None,
        vendor_code=_without_quote(refusal.vendor_code, request) if refusal is not None else "",
        vendor_message=_without_quote(vendor_message or own, request)[:_MAX_MESSAGE_CHARS],
        at="" if isinstance(error, ProviderError) else place_in(error, module),
    )


def _without_quote(text: str, request: GenerationRequest) -> str:
    """Return the text, or nothing if it quotes the prompt or the file name."""
    name = request.attachment.name if request.attachment is not None else ""
    for sent in filter(None, (request.prompt, name)):
        if sent[:_QUOTE_CHARS] in text or repr(sent)[1 : _QUOTE_CHARS + 1] in text:
            return ""
    return text
