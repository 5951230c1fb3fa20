"""What is for sale, what somebody asks for, and what a provider returns."""

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import attrs

USDC_DECIMALS = 6
MAX_FILE_BYTES = 7_500_000  # after Base64 decoding; spec §8 "about 7.5 MB"
MAX_PROMPT_CHARS = 10_000  # spec §8
MAX_ATTEMPTS = 4  # the first and three automatic retries, spec §8
ASPECT_RATIOS = ("1:1", "4:3", "3:4", "16:9", "9:16")  # spec §2.1
OUTPUT_FORMATS = ("png", "jpg", "webp")  # spec §2.1
TEXT_TO_IMAGE = "text-to-image"
DOCUMENT_PARSING = "document-parsing"


def usdc(amount: str) -> int:
    """Return a decimal USDC amount as units of 10⁻⁶ USDC: `usdc("0.02") == 20_000`.

    Raises `ValueError` for anything that is not a positive amount of at most 6 decimals.
    """
    try:
        units = Decimal(amount).scaleb(USDC_DECIMALS)
    except InvalidOperation:
        raise ValueError(f"{amount!r} is not a USDC amount such as 0.02") from None
    if not units.is_finite() or units <= 0 or units != units.to_integral_value():
        raise ValueError(f"{amount!r} is not a positive USDC amount of at most 6 decimals")
    return int(units)


@attrs.frozen(kw_only=True)
class Choice:
    """The values a request field may take, and the one used where it is left out."""

    values: tuple[str, ...] = ()
    default: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.default is not None and self.default not in self.values:
            raise ValueError(f"default {self.default!r} is not among {self.values}")


@attrs.frozen(kw_only=True)
class PriceStep:
    """Another price than the endpoint's, for requests that ask for all that is named here."""

    price_units: int = attrs.field(validator=attrs.validators.gt(0))
    resolution: str | None = None
    min_pages: int | None = None  # of the document, as counted before payment

    def holds_for(self, request: "GenerationRequest") -> bool:
        """Whether this is the price of a request."""
        if self.resolution is not None and request.resolution != self.resolution:
            return False
        return self.min_pages is None or (request.pages or 0) >= self.min_pages


@attrs.frozen(kw_only=True)
class Endpoint:
    """What is for sale under one slug. All of it is checked before payment."""

    slug: str
    title: str
    description: str
    model: str
    provider: str
    capability: str
    price_units: int = attrs.field(validator=attrs.validators.gt(0))
    price_steps: tuple[PriceStep, ...] = ()  # the last that holds for a request is its price
    cost_micros: int | None = None  # what one costs the operator, in 10⁻⁶ US dollars, where known
    required_fields: tuple[str, ...] = ("prompt",)
    aspect_ratio: Choice = Choice()
    output_format: Choice = Choice()
    resolution: Choice = Choice()
    file_extensions: tuple[str, ...] = ()  # lower-case with the dot; empty: takes no file
    max_prompt_chars: int = MAX_PROMPT_CHARS
    max_pages: int | None = None  # of a document; counted before payment
    timeout_s: float = 300.0  # of one attempt, the waiting for a job included

    def price_of(self, request: "GenerationRequest") -> int:
        """Return the price of one request, in units."""
        steps = [step.price_units for step in self.price_steps if step.holds_for(request)]
        return steps[-1] if steps else self.price_units

    @property
    def counts_pages(self) -> bool:
        """Whether a document's pages must be known before payment."""
        return self.max_pages is not None or any(
            step.min_pages is not None for step in self.price_steps
        )

    @property
    def takes_file(self) -> bool:
        """Whether a request may carry `fileBase64`."""
        return bool(self.file_extensions)


@attrs.frozen(kw_only=True)
class Attachment:
    """A file sent with a request."""

    name: str
    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    sha256: str = attrs.field(init=False)  # of the data, hex

    @sha256.default
    def _hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def extension(self) -> str:
        """The lower-case ending of the name with its dot, or an empty string."""
        _, dot, ending = self.name.rpartition(".")
        return f".{ending.lower()}" if dot else ""


@attrs.frozen(kw_only=True)
class GenerationRequest:
    """One checked request for one generation; defaults of the endpoint are filled in."""

    prompt: str = attrs.field(default="", repr=False)
    aspect_ratio: str | None = None
    output_format: str | None = None
    resolution: str | None = None
    attachment: Attachment | None = None
    pages: int | None = None  # of the attachment, where the endpoint asks for it and it has some

    def fingerprint(self, slug: str) -> str:
        """Return the SHA-256 (hex) that tells whether two requests ask for the same thing."""
        sent = attrs.filters.exclude("attachment", "pages")
        facts: dict[str, Any] = attrs.asdict(self, filter=sent)
        facts["slug"] = slug
        if self.attachment is not None:
            facts["file"] = [self.attachment.name, self.attachment.sha256]
        canonical = json.dumps(facts, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


@attrs.frozen(kw_only=True)
class Output:
    """One file a provider made."""

    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    media_type: str
    width: int | None = None  # pixels
    height: int | None = None


@attrs.frozen(kw_only=True)
class Link:
    """A file that waits at the https address an API gave; the gateway fetches it at once."""

    url: str = attrs.field(repr=False)  # many carry a signature
    media_type: str = "application/octet-stream"


@attrs.frozen(kw_only=True)
class Result:
    """What a provider returns: files, or text, or both."""

    outputs: tuple[Output | Link, ...] = ()
    text: str | None = attrs.field(default=None, repr=False)  # Markdown of a parsed document
    cost_micros: int | None = None  # what it cost the operator, in 10⁻⁶ US dollars, where told


@attrs.frozen(kw_only=True)
class Handle:
    """A job at a provider: all it takes to ask for it later, also after a restart."""

    id: str
    urls: Mapping[str, str] = attrs.field(factory=dict, repr=False)  # that the API gave, by use


@attrs.frozen(kw_only=True)
class Pending:
    """A job that is not done yet."""

    progress: float | None = None  # 0 to 1
    note: str = ""  # for the operator, never shown to the buyer: "3rd in line"
    poll_after_s: float | None = None  # where the API says when to ask again


@attrs.frozen(kw_only=True)
class Traits:
    """What the gateway must know of a provider as a whole, whichever endpoint is asked for."""

    max_concurrency: int | None = None  # generations at once; None: as many as there are lanes
    submits_per_minute: int | None = None
    idempotent_submit: bool = False  # the same submit again bills nothing and does no harm
    cancellable: bool = False  # after `cancel` returned, nothing is made or billed any more
