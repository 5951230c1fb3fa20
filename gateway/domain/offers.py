"""Endpoints on sale, buyers' requests, and providers' results."""

import datetime as dt
import functools
import hashlib
import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs

from gateway.domain.capabilities import DECLARED, Capability, declaration_of
from gateway.domain.kinds import DATA, PICTURE_FILE, PICTURES, FileKind
from gateway.domain.units import PAGE, Unit, UnitPrice

# After Base64 decoding. Spec §8: "about 7.5 MB".
MAX_FILE_BYTES = 7_500_000
# Of one result. Checks in the sandbox count the outputs, deliveries also the text.
MAX_OUTPUTS = 16
MAX_RESULT_BYTES = 128_000_000
# Spec §8.
MAX_PROMPT_CHARS = 10_000
MAX_FILE_NAME_CHARS = 255

# Patterns for whole strings. A smart account's signature may have several hundred bytes.
TX_HASH = "0x[0-9a-fA-F]{64}"
PAYER_SIGNATURE = "0x([0-9a-fA-F]{2}){1,4096}"
MAX_CALLBACK_CHARS = 2_048  # of a URL

_SLUG = re.compile(r"[a-z0-9]+(?:[-._][a-z0-9]+)*")
_MAX_SLUG_CHARS = 100
SLUG_RULE = f"a slug is at most {_MAX_SLUG_CHARS} of a-z and 0-9, with -, . or _ between"

# The time in seconds for which the price of a 402 stays valid: x402's `maxTimeoutSeconds`.
QUOTE_LIFE_S = 300

# The first attempt and three automatic retries, spec §8.
MAX_ATTEMPTS = 4

# Spec §2.1.
ASPECT_RATIOS = ("1:1", "4:3", "3:4", "16:9", "9:16")

_NOTHING: Mapping[str, float] = MappingProxyType({})

# The pixels, width times height, that a resolution promises if the provider declares no others.
# Each lies between the smallest size that any vendor sells as this resolution and the largest that
# any sells as the one below: 1024 x 576 for 1K, 2048 x 1152 for 2K, 3264 x 2448 for 4K.
LEAST_PIXELS = {"1K": 580_000, "2K": 2_300_000, "4K": 7_900_000}


def is_slug(text: str) -> bool:
    """Whether a text may be an endpoint's slug."""
    return len(text) <= _MAX_SLUG_CHARS and _SLUG.fullmatch(text) is not None


@attrs.frozen(kw_only=True)
class Choice:
    """The allowed values of a request field, and its default."""

    values: tuple[str, ...] = ()
    default: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.default is not None and self.default not in self.values:
            raise ValueError(f"default {self.default!r} is not among {self.values}")


@attrs.frozen(kw_only=True)
class PriceStep:
    """A different price, for requests that meet every condition set here."""

    price_units: int = attrs.field(validator=attrs.validators.gt(0))
    resolution: str | None = None
    # Pages of the document, as counted before payment.
    min_pages: int | None = None
    # The operator's cost, in 10⁻⁶ US dollars. None: the endpoint's cost.
    cost_micros: int | None = None

    def holds_for(self, request: "GenerationRequest") -> bool:
        """Whether a request meets every condition."""
        if self.resolution is not None and request.resolution != self.resolution:
            return False
        return self.min_pages is None or (request.pages or 0) >= self.min_pages


def _is_day(_: object, __: object, value: str) -> None:
    dt.date.fromisoformat(value)


@attrs.frozen(kw_only=True)
class Endpoint:
    """An offer under one slug. Requests are validated against it before payment."""

    slug: str
    title: str
    description: str
    model: str
    provider: str
    capability: str
    price_units: int = attrs.field(validator=attrs.validators.gt(0))
    # The last step that applies to a request sets its price.
    price_steps: tuple[PriceStep, ...] = ()
    # Units per page of a document. `price_units` is then the minimum price, and the price of a file
    # whose pages cannot be counted. Needs `max_pages`.
    price_per_page: int | None = None
    # A price for each second, 1,000 characters or megapixel.
    unit_price: UnitPrice | None = None
    # The operator's cost of one generation, in 10⁻⁶ US dollars, if known.
    cost_micros: int | None = None
    # The operator's cost of one page, if the vendor bills pages.
    page_cost_micros: int | None = None
    # The day on which these costs were last compared with the vendor's prices, such as
    # "2026-11-22". None if they do not come from a table.
    cost_checked: str | None = None
    # The first day (UTC) on which the vendor no longer serves the model, such as "2026-12-01". The
    # endpoint is off sale from then on. None: unknown.
    retires: str | None = attrs.field(default=None, validator=attrs.validators.optional(_is_day))
    required_fields: tuple[str, ...] = ("prompt",)
    aspect_ratio: Choice = Choice()
    output_format: Choice = Choice()
    resolution: Choice = Choice()
    # The pixels that a resolution promises, if not those of `LEAST_PIXELS`. The name "" is for
    # requests without a resolution. A picture with fewer is not sold.
    least_pixels: Mapping[str, int] = attrs.field(factory=dict, hash=False)
    # Lower-case, with the dot. An endpoint without extensions takes no file.
    file_extensions: tuple[str, ...] = ()
    max_prompt_chars: int = MAX_PROMPT_CHARS
    # The vendor's limit of a picture to edit, if below `MAX_FILE_BYTES`.
    max_picture_bytes: int = MAX_FILE_BYTES
    # The maximum number of pages of a document, counted before payment.
    max_pages: int | None = None
    # Seconds per attempt, including the time to wait for a job.
    timeout_s: float = 300.0
    # Set by the catalog if a plugin has registered the capability.
    declared: Capability | None = attrs.field(default=None, repr=False, eq=False)

    @functools.cached_property
    def declaration(self) -> Capability:
        """The declaration of its capability."""
        if self.declared is not None and self.declared.name == self.capability:
            return self.declared
        return declaration_of(self.capability)

    @property
    def is_declared(self) -> bool:
        """Whether the gateway or a plugin declares its capability."""
        return self.declaration is self.declared or self.capability in DECLARED

    @property
    def retires_at(self) -> float:
        """Unix seconds from which the model is no longer served; infinite if unknown."""
        if self.retires is None:
            return math.inf
        return dt.datetime.fromisoformat(self.retires).replace(tzinfo=dt.UTC).timestamp()

    def price_of(self, request: "GenerationRequest") -> int:
        """Return the price of one request, in units of 10⁻⁶ USDC."""
        steps = [step.price_units for step in self.price_steps if step.holds_for(request)]
        price_units = steps[-1] if steps else self.price_units
        if self.unit_price is not None:
            measured = request.measure(self.unit_price.unit)
            price_units = max(price_units, self.unit_price.price_of(measured))
        return max(price_units, (self.price_per_page or 0) * (request.pages or 0))

    def cost_of(self, request: "GenerationRequest") -> int | None:
        """Return the operator's cost of one request, in 10⁻⁶ US dollars, or None.

        A document whose pages are not counted costs one page.
        """
        if self.unit_price is not None and self.unit_price.cost_micros is not None:
            amount = self.unit_price.amount_of(request.measure(self.unit_price.unit))
            return amount * self.unit_price.cost_micros
        if self.page_cost_micros is not None:
            return self.page_cost_micros * (request.pages or 1)
        steps = [step.cost_micros for step in self.price_steps if step.holds_for(request)]
        return steps[-1] if steps and steps[-1] is not None else self.cost_micros

    def pixels_of(self, request: "GenerationRequest") -> int:
        """Return the pixels, width times height, that a picture for this request has at least."""
        ordered = request.resolution or ""
        return self.least_pixels.get(ordered, LEAST_PIXELS.get(ordered, 0))

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
    def prices_file(self) -> bool:
        """Whether the price depends on the content of the buyer's file."""
        return self.prices_pages or (
            self.unit_price is not None and self.unit_price.unit.of == "file"
        )

    @property
    def edits_pictures(self) -> bool:
        """Whether a request carries a picture, which is checked before payment."""
        return PICTURE_FILE in self.declaration.files

    @property
    def sells_pictures(self) -> bool:
        """Whether the result is a picture, which the gateway checks and converts."""
        return PICTURES in self.declaration.results

    @property
    def extracts_data(self) -> bool:
        """Whether the result is a JSON object."""
        return self.declaration.results == (DATA,)

    @property
    def formats(self) -> tuple[str, ...]:
        """The values that `output_format` may have for this capability."""
        return self.declaration.output_formats

    @property
    def reads_prompt(self) -> bool:
        """Whether a prompt changes the result."""
        return self.declaration.prompt.use != "absent" or "prompt" in self.required_fields

    @property
    def file_kinds(self) -> Sequence[FileKind]:
        """The kinds of file that a request may carry, in the order of `file_extensions`."""
        kinds = map(self.declaration.file_kind, self.file_extensions)
        return list({kind.name: kind for kind in kinds}.values())

    @property
    def takes_file(self) -> bool:
        """Whether a request may carry `fileBase64`."""
        return bool(self.file_extensions)


@attrs.frozen(kw_only=True)
class Attachment:
    """A file sent with a request."""

    name: str
    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    # The hash, in hex, of the bytes that the buyer sent. The data may have been put right since.
    sha256: str = attrs.field()

    @sha256.default
    def _hash_data(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def extension(self) -> str:
        """The lower-case extension of the name with its dot, or an empty string."""
        _, dot, ending = self.name.rpartition(".")
        return f".{ending.lower()}" if dot else ""


@attrs.frozen(kw_only=True)
class GenerationRequest:
    """A validated request for one generation, with the endpoint's defaults filled in."""

    prompt: str = attrs.field(default="", repr=False)
    aspect_ratio: str | None = None
    output_format: str | None = None
    resolution: str | None = None
    attachment: Attachment | None = None
    # Receives the task's outcome. Not in the repr, because many URLs contain a secret. Providers
    # get None.
    callback_url: str | None = attrs.field(default=None, repr=False)
    # Pages of the attachment, if the endpoint counts pages and the attachment has pages.
    pages: int | None = None
    # Other measures of the attachment by name, such as "seconds".
    measured: Mapping[str, float] = attrs.field(default=_NOTHING, hash=False)

    def measure(self, unit: Unit) -> float:
        """Return how much of a unit's measure the request has; 0 if that is not known."""
        if unit.of == "prompt":
            return len(self.prompt)
        counts_pages = unit.measure == PAGE.measure
        return self.pages or 0 if counts_pages else self.measured.get(unit.measure, 0)

    def fingerprint(self, slug: str) -> str:
        """Return a SHA-256 (hex) that is equal for equal requests."""
        names = ("prompt", "aspect_ratio", "output_format", "resolution")
        facts: dict[str, Any] = {name: getattr(self, name) for name in names} | {"slug": slug}
        if self.attachment is not None:
            facts["file"] = [self.attachment.name, self.attachment.sha256]
        # Fingerprints already in databases do not include this field.
        if self.callback_url is not None:
            facts["callback_url"] = self.callback_url
        canonical = json.dumps(facts, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


@attrs.frozen(kw_only=True)
class Output:
    """One file that a provider generated."""

    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    media_type: str
    # Both in pixels.
    width: int | None = None
    height: int | None = None
    # Of sound or video.
    seconds: float | None = None


@attrs.frozen(kw_only=True)
class Link:
    """A file at an https URL from an API. The gateway downloads it at once."""

    # Not in the repr, because many such URLs are signed.
    url: str = attrs.field(repr=False)
    media_type: str = "application/octet-stream"


@attrs.frozen(kw_only=True)
class Result:
    """A provider's result: files, or text, or both."""

    outputs: tuple[Output | Link, ...] = ()
    # The Markdown of a parsed document, or the JSON extracted from one.
    text: str | None = attrs.field(default=None, repr=False)
    # Of the output with the text. The gateway sets it to JSON for data extraction.
    text_media_type: str = "text/markdown"
    # The operator's cost in 10⁻⁶ US dollars, if the API reports it.
    cost_micros: int | None = None
    # Whether the API reported that cost. False: it follows from a price that the operator set.
    is_cost_told: bool = True
    # Pages of the document that the API reports as read. None: it does not report them.
    pages: int | None = None


@attrs.frozen(kw_only=True)
class Handle:
    """A job at a provider: everything needed to poll it, even after a restart."""

    id: str
    # URLs from the API, by purpose.
    urls: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    # Data from the submit's response that a later poll needs, such as the job's cost.
    facts: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Pending:
    """A job that is not done yet."""

    # From 0 to 1.
    progress: float | None = None
    # For the operator, e.g. "3rd in line". The buyer never sees it.
    note: str = ""
    # Seconds until the next poll, if the API recommends a delay.
    poll_after_s: float | None = None


@attrs.frozen(kw_only=True)
class Traits:
    """Properties of a provider that apply to all of its endpoints."""

    # Concurrent generations. None: as many as there are workers.
    max_concurrency: int | None = None
    submits_per_minute: int | None = None
    # Whether repeating a submit bills nothing and has no side effects.
    idempotent_submit: bool = False
    # Whether a job that takes too long is submitted again after `cancel`. Set this only if the
    # vendor states that a cancelled job generates and bills nothing more.
    resubmit_after_cancel: bool = False
    # Whether `validate` itself refuses a file of more than `max_pages` pages. Otherwise, or if the
    # price depends on the pages, the gateway counts them, and refuses a file whose pages two
    # readers could count differently.
    limits_pages: bool = False
    _cancellable: bool | None = attrs.field(default=None, alias="cancellable", repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if self._cancellable is None:
            return
        _warn_of_cancellable(stacklevel=4)
        object.__setattr__(self, "resubmit_after_cancel", self._cancellable)
        # Keeps `attrs.evolve` from overriding the new name with the old one.
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
