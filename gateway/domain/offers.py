"""What is for sale, what a buyer asks for, and what a provider returns."""

import datetime as dt
import hashlib
import json
import math
import warnings
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import attrs

USDC_DECIMALS = 6

# After Base64 decoding. Spec §8: "about 7.5 MB".
MAX_FILE_BYTES = 7_500_000

# Spec §8.
MAX_PROMPT_CHARS = 10_000
MAX_FILE_NAME_CHARS = 255

# Regular expressions for whole strings. A smart account's signature may have some hundred bytes.
TX_HASH = "0x[0-9a-fA-F]{64}"
PAYER_SIGNATURE = "0x([0-9a-fA-F]{2}){1,4096}"

# Of the address that is told how a task ends.
MAX_CALLBACK_CHARS = 2_048

# So many seconds after its 402 a buyer may still pay that price: x402's `maxTimeoutSeconds`.
QUOTE_LIFE_S = 300

# The first attempt and three automatic retries, spec §8.
MAX_ATTEMPTS = 4

# Both lists: spec §2.1.
ASPECT_RATIOS = ("1:1", "4:3", "3:4", "16:9", "9:16")
OUTPUT_FORMATS = ("png", "jpg", "webp")
TEXT_TO_IMAGE = "text-to-image"
IMAGE_EDITING = "image-editing"
DOCUMENT_PARSING = "document-parsing"
DOCUMENT_EXTRACTION = "document-extraction"

# Of a picture that a buyer sends to have it edited. Vendors refuse smaller ones, and decoding
# larger ones would take much memory before anybody has paid. A phone makes 12 or 24 million.
MIN_PICTURE_SIDE = 64
MAX_PICTURE_PIXELS = 25_000_000

# How the name of such a picture ends, and the format that its bytes must then have.
PICTURE_FORMATS = {".png": "png", ".jpg": "jpg", ".jpeg": "jpg", ".webp": "webp"}


def usdc(amount: str) -> int:
    """Return a decimal USDC amount as units of 10⁻⁶ USDC: `usdc("0.02") == 20_000`.

    Raises `ValueError` if the amount is not positive or has more than 6 decimals.
    """
    try:
        units = Decimal(amount).scaleb(USDC_DECIMALS)
    except InvalidOperation:
        raise ValueError(f"{amount!r} is not a USDC amount such as 0.02") from None
    if not units.is_finite() or units <= 0 or units != units.to_integral_value():
        raise ValueError(f"{amount!r} is not a positive USDC amount of at most 6 decimals")
    return int(units)


def dollars(amount: str) -> int:
    """Return a cost in US dollars as units of 10⁻⁶ dollars: `dollars("0.04") == 40_000`.

    Nothing may be free, but a cost may be 0. Raises `ValueError` for a negative amount, and for one
    with more than 6 decimals.
    """
    try:
        is_zero = Decimal(amount) == 0
    except InvalidOperation:
        raise ValueError(f"{amount!r} is not an amount of US dollars such as 0.04") from None
    try:
        return 0 if is_zero else usdc(amount)
    except ValueError:
        raise ValueError(
            f"{amount!r} is not an amount of US dollars of at most 6 decimals"
        ) from None


@attrs.frozen(kw_only=True)
class Choice:
    """The values that a request field may take, and the value of a field that is left out."""

    values: tuple[str, ...] = ()
    default: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.default is not None and self.default not in self.values:
            raise ValueError(f"default {self.default!r} is not among {self.values}")


@attrs.frozen(kw_only=True)
class PriceStep:
    """Another price than the endpoint's, for requests that meet every condition set here."""

    price_units: int = attrs.field(validator=attrs.validators.gt(0))
    resolution: str | None = None

    # Pages of the document, as counted before payment.
    min_pages: int | None = None

    # What such a generation costs the operator, in 10⁻⁶ US dollars. None: as the endpoint's.
    cost_micros: int | None = None

    def holds_for(self, request: "GenerationRequest") -> bool:
        """Whether a request meets every condition."""
        if self.resolution is not None and request.resolution != self.resolution:
            return False
        return self.min_pages is None or (request.pages or 0) >= self.min_pages


def _is_day(_: object, __: object, value: str) -> None:
    """Raise `ValueError` for a text that names no day."""
    dt.date.fromisoformat(value)


@attrs.frozen(kw_only=True)
class Endpoint:
    """What is for sale under one slug. Requests are checked against it before payment."""

    slug: str
    title: str
    description: str
    model: str
    provider: str
    capability: str
    price_units: int = attrs.field(validator=attrs.validators.gt(0))

    # The last step that holds for a request sets its price.
    price_steps: tuple[PriceStep, ...] = ()

    # Units for each page of a document. `price_units` is then the least that a document costs, and
    # the price of a file whose pages cannot be counted. Needs `max_pages`.
    price_per_page: int | None = None

    # What one generation costs the operator, in 10⁻⁶ US dollars, if that is known.
    cost_micros: int | None = None

    # The same of one page of a document, where the vendor bills pages.
    page_cost_micros: int | None = None

    # When these costs were last compared with the vendor's prices, such as "2026-11-22". None: they
    # are of no table.
    cost_checked: str | None = None

    # The first day (UTC) on which the vendor no longer serves the model, such as "2026-12-01". The
    # endpoint is not sold from then on. None: no such day is known.
    retires: str | None = attrs.field(default=None, validator=attrs.validators.optional(_is_day))
    required_fields: tuple[str, ...] = ("prompt",)
    aspect_ratio: Choice = Choice()
    output_format: Choice = Choice()
    resolution: Choice = Choice()

    # Lower-case, with the dot. An endpoint without extensions takes no file.
    file_extensions: tuple[str, ...] = ()
    max_prompt_chars: int = MAX_PROMPT_CHARS

    # The most pages of a document; they are counted before payment.
    max_pages: int | None = None

    # Seconds of one attempt, including the wait for a job.
    timeout_s: float = 300.0

    @property
    def retires_at(self) -> float:
        """Unix seconds from which the model is not served any more; infinite if not known."""
        if self.retires is None:
            return math.inf
        return dt.datetime.fromisoformat(self.retires).replace(tzinfo=dt.UTC).timestamp()

    def price_of(self, request: "GenerationRequest") -> int:
        """Return the price of one request, in units of 10⁻⁶ USDC."""
        steps = [step.price_units for step in self.price_steps if step.holds_for(request)]
        price_units = steps[-1] if steps else self.price_units
        return max(price_units, (self.price_per_page or 0) * (request.pages or 0))

    def cost_of(self, request: "GenerationRequest") -> int | None:
        """Return what one request costs the operator, in 10⁻⁶ US dollars; None: not known.

        A document whose pages are not counted counts as one page.
        """
        if self.page_cost_micros is not None:
            return self.page_cost_micros * (request.pages or 1)
        steps = [step.cost_micros for step in self.price_steps if step.holds_for(request)]
        return steps[-1] if steps and steps[-1] is not None else self.cost_micros

    @property
    def counts_pages(self) -> bool:
        """Whether a document's pages must be known before payment."""
        return self.max_pages is not None or self.prices_pages

    @property
    def prices_pages(self) -> bool:
        """Whether the price of a document depends on its pages."""
        by_steps = any(step.min_pages is not None for step in self.price_steps)
        return by_steps or self.price_per_page is not None

    @property
    def edits_pictures(self) -> bool:
        """Whether a request carries a picture, which is checked before payment."""
        return self.capability == IMAGE_EDITING

    @property
    def sells_pictures(self) -> bool:
        """Whether the result is a picture, which the gateway checks and converts."""
        return self.capability in (TEXT_TO_IMAGE, IMAGE_EDITING)

    @property
    def extracts_data(self) -> bool:
        """Whether a prompt asks a document for data, and the result is a JSON object."""
        return self.capability == DOCUMENT_EXTRACTION

    @property
    def takes_file(self) -> bool:
        """Whether a request may carry `fileBase64`."""
        return bool(self.file_extensions)


@attrs.frozen(kw_only=True)
class Attachment:
    """A file sent with a request."""

    name: str
    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")

    # The hash of the data, in hex.
    sha256: str = attrs.field(init=False)

    @sha256.default
    def _hash_data(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def extension(self) -> str:
        """The lower-case ending of the name with its dot, or an empty string."""
        _, dot, ending = self.name.rpartition(".")
        return f".{ending.lower()}" if dot else ""


@attrs.frozen(kw_only=True)
class GenerationRequest:
    """One checked request for one generation. The endpoint's defaults are filled in."""

    prompt: str = attrs.field(default="", repr=False)
    aspect_ratio: str | None = None
    output_format: str | None = None
    resolution: str | None = None
    attachment: Attachment | None = None

    # The address that is told how the task ends. Not shown, because many hold a secret. A provider
    # gets None.
    callback_url: str | None = attrs.field(default=None, repr=False)

    # Pages of the attachment, if the endpoint counts pages and the attachment has pages.
    pages: int | None = None

    def fingerprint(self, slug: str) -> str:
        """Return a SHA-256 (hex) that is equal for requests that ask for the same thing."""
        sent = attrs.filters.exclude("attachment", "pages", "callback_url")
        facts: dict[str, Any] = attrs.asdict(self, filter=sent)
        facts["slug"] = slug
        if self.attachment is not None:
            facts["file"] = [self.attachment.name, self.attachment.sha256]
        # Fingerprints in databases are older than this field.
        if self.callback_url is not None:
            facts["callback_url"] = self.callback_url
        canonical = json.dumps(facts, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


@attrs.frozen(kw_only=True)
class Output:
    """One file that a provider made."""

    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    media_type: str

    # Both in pixels.
    width: int | None = None
    height: int | None = None


@attrs.frozen(kw_only=True)
class Link:
    """A file at an https address that an API gave. The gateway fetches the file at once."""

    # Not shown, because many such addresses carry a signature.
    url: str = attrs.field(repr=False)
    media_type: str = "application/octet-stream"


@attrs.frozen(kw_only=True)
class Result:
    """What a provider returns: files, or text, or both."""

    outputs: tuple[Output | Link, ...] = ()

    # The Markdown of a parsed document, or the JSON that was extracted from one.
    text: str | None = attrs.field(default=None, repr=False)

    # Of the output that the text becomes. The gateway sets it to JSON where JSON is sold.
    text_media_type: str = "text/markdown"

    # What the result cost the operator, in 10⁻⁶ US dollars, if the API says.
    cost_micros: int | None = None

    # Whether the API named that cost. False: it follows from a price that the operator has set.
    is_cost_told: bool = True


@attrs.frozen(kw_only=True)
class Handle:
    """A job at a provider: all it takes to ask for the job later, even after a restart."""

    id: str

    # The addresses that the API gave, by use.
    urls: Mapping[str, str] = attrs.field(factory=dict, repr=False)

    # What only the answer to the submit told and a later poll needs, such as the job's cost.
    facts: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Pending:
    """A job that is not done yet."""

    # From 0 to 1.
    progress: float | None = None

    # For the operator, e.g. "3rd in line". The buyer never sees it.
    note: str = ""

    # Seconds until the next poll, if the API says.
    poll_after_s: float | None = None


@attrs.frozen(kw_only=True)
class Traits:
    """What the gateway must know about a provider as a whole, for all of its endpoints."""

    # Generations at once. None means as many as there are workers.
    max_concurrency: int | None = None
    submits_per_minute: int | None = None

    # Whether sending the same submit again bills nothing and does no harm.
    idempotent_submit: bool = False

    # Whether a job that took too long is submitted anew once `cancel` has returned. Set it only
    # where the vendor says that nothing is made or billed any more then.
    resubmit_after_cancel: bool = False
    _cancellable: bool | None = attrs.field(default=None, alias="cancellable", repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if self._cancellable is None:
            return
        _warn_of_cancellable(stacklevel=4)
        object.__setattr__(self, "resubmit_after_cancel", self._cancellable)
        # So that `attrs.evolve` does not set the new name by the old one again.
        object.__setattr__(self, "_cancellable", None)

    @property
    def cancellable(self) -> bool:
        """The old name of `resubmit_after_cancel`. Deprecated."""
        _warn_of_cancellable(stacklevel=3)
        return self.resubmit_after_cancel


def _warn_of_cancellable(*, stacklevel: int) -> None:
    warnings.warn(
        "Traits.cancellable is called resubmit_after_cancel",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
