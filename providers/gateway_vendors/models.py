"""Picture models of an adapter: its table, and the operator's selection.

An adapter has a table of `Model`s. The default of its setting `models` is the slugs on sale, and
its hook registers the selection:

    for model in models_on_sale(TABLE, section.models, prefix="acme"):
        register(picture_endpoint(model, provider="acme"), provider)

If some models edit a buyer's picture, they have `Model.edits`, and the hook calls `model_endpoint`.

The operator sets `GATEWAY_ACME_MODELS=acme-fast,acme/new-model=0.08 like acme-fast`: slugs of the
table, and models missing from it, with a price in USDC and a model of the table that takes the same
request. Prices and titles of single slugs are changed in `[endpoints.<slug>]`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from gateway.domain import (
    ASPECT_RATIOS,
    IMAGE_EDITING,
    MAX_PROMPT_CHARS,
    OUTPUT_FORMATS,
    PICTURE_FORMATS,
    TEXT_TO_IMAGE,
    Choice,
    Endpoint,
    PriceStep,
    usdc,
)
from gateway.domain.offers import SLUG_RULE, is_slug
from gateway.errors import SettingsError
from gateway.settings.sections import variable
from gateway_vendors.pictures import PictureLimits

# Of a wrong value, in an error.
_MAX_SHOWN_CHARS = 60
_ADDED = re.compile(r"(?P<id>[^\s=]+)\s*=\s*(?P<price>\S+)(?:\s+like\s+(?P<like>\S+))?")


@attrs.frozen(kw_only=True)
class Model:
    """One picture model of a vendor, and the endpoint that sells it."""

    slug: str
    """The endpoint's name in the URL: `/api/x402/<slug>`."""
    id: str
    """The vendor's name for the model; `job.endpoint.model` in `submit`."""
    title: str
    price: str
    """USDC of one picture, such as "0.05"."""
    prices: Mapping[str, str] = attrs.field(factory=dict)
    """USDC by resolution, if different from `price`."""
    resolutions: tuple[str, ...] = ()
    """The first is the default. Empty: the model has one size only."""
    least_pixels: Mapping[str, int] = attrs.field(factory=dict)
    """Pixels that a resolution has at least, if known better than `LEAST_PIXELS`. The name "" is
    for a model with one size only."""
    aspect_ratios: tuple[str, ...] = ASPECT_RATIOS
    """The first is the default."""
    description: str = "Makes a picture from a description in words."
    max_prompt_chars: int = MAX_PROMPT_CHARS
    cost_micros: int | None = None
    """The operator's cost of one picture, in 10⁻⁶ US dollars. None: unknown."""
    costs: Mapping[str, int] = attrs.field(factory=dict)
    """Costs by resolution, if higher."""
    timeout_s: float = 300.0
    """Seconds of one attempt."""
    retires: str | None = None
    """The first day (UTC) on which the vendor no longer serves the model, such as "2026-12-01". It
    is off sale from then on."""
    edits: PictureLimits | None = None
    """Limits of the picture to edit. None: the model makes pictures from words alone."""
    details: Mapping[str, Any] = attrs.field(factory=dict)
    """Data that the adapter needs to write a request for this model; only the adapter reads it."""


def models_on_sale(
    table: Sequence[Model], chosen: Sequence[str], *, prefix: str
) -> tuple[Model, ...]:
    """Return the models that the operator selected, from the table or added to it.

    `chosen` is the operator's setting and `prefix` the adapter's, such as `acme`. Raises
    `SettingsError` for an entry that is neither a slug of the table nor a model with a price, for
    two models with one slug, and for an empty setting.
    """
    entries = [entry.strip() for entry in chosen if entry.strip()]
    if not entries:
        raise _settings_error("is empty", table, prefix)
    known = {model.slug: model for model in table}
    models: dict[str, Model] = {}
    for entry in entries:
        model = known[entry] if entry in known else _added_model(entry, table, prefix)
        first = models.setdefault(model.slug, model)
        if first != model:
            state = f"names {first.id!r} and {model.id!r}, which would both be {model.slug}"
            if first.id == model.id:
                state = f"names {model.id!r} twice, with different prices"
            raise _settings_error(state, table, prefix)
    return tuple(models.values())


def picture_endpoint(model: Model, *, provider: str, checked: str | None = None) -> Endpoint:
    """Return the endpoint of a model; `provider` is the provider's name.

    It offers every output format, because the gateway converts pictures. `checked` is the day on
    which the table's costs were last compared with the vendor's prices, such as "2026-11-22";
    `gateway check` warns if that is long ago.
    """
    return Endpoint(
        slug=model.slug,
        title=model.title,
        description=model.description,
        model=model.id,
        provider=provider,
        capability=TEXT_TO_IMAGE,
        price_units=usdc(model.price),
        price_steps=tuple(
            PriceStep(
                price_units=usdc(price),
                resolution=resolution,
                cost_micros=model.costs.get(resolution),
            )
            for resolution, price in model.prices.items()
        ),
        cost_micros=model.cost_micros,
        cost_checked=checked if model.cost_micros is not None else None,
        retires=model.retires,
        aspect_ratio=Choice(values=model.aspect_ratios, default=model.aspect_ratios[0]),
        output_format=Choice(values=OUTPUT_FORMATS, default=OUTPUT_FORMATS[0]),
        resolution=Choice(values=model.resolutions, default=next(iter(model.resolutions), None)),
        least_pixels=model.least_pixels,
        max_prompt_chars=model.max_prompt_chars,
        timeout_s=model.timeout_s,
    )


def model_endpoint(model: Model, *, provider: str, checked: str | None = None) -> Endpoint:
    """Return the `edit_endpoint` of a model that edits, else its `picture_endpoint`."""
    make = picture_endpoint if model.edits is None else edit_endpoint
    return make(model, provider=provider, checked=checked)


def edit_endpoint(model: Model, *, provider: str, checked: str | None = None) -> Endpoint:
    """Return the endpoint that edits a buyer's picture with a model.

    Without an aspect ratio in the request, the picture keeps its own: `request.aspect_ratio` is
    None.
    """
    made = picture_endpoint(model, provider=provider, checked=checked)
    most_bytes = model.edits.most_bytes if model.edits is not None else None
    return attrs.evolve(
        made,
        max_picture_bytes=most_bytes or made.max_picture_bytes,
        capability=IMAGE_EDITING,
        required_fields=("prompt", "fileBase64", "fileName"),
        file_extensions=tuple(PICTURE_FORMATS),
        aspect_ratio=attrs.evolve(made.aspect_ratio, default=None),
    )


def _added_model(entry: str, table: Sequence[Model], prefix: str) -> Model:
    """Return an added model, which copies one of the table."""
    parts = _ADDED.fullmatch(entry)
    if parts is None:
        raise _settings_error(
            f"names {_shortened(entry)}, which is not known and has no price", table, prefix
        )
    like = parts["like"] or table[0].slug
    pattern = next((model for model in table if model.slug == like), None)
    if pattern is None:
        state = f"names {_shortened(like)} after `like`, which is not known"
        raise _settings_error(state, table, prefix)
    slug = _slug(parts["id"], prefix)
    if not is_slug(slug):
        names = f"names {_shortened(parts['id'])}, whose slug would be {_shortened(slug)}"
        raise _settings_error(f"{names}: {SLUG_RULE}", table, prefix)
    if any(model.slug == slug for model in table):
        raise SettingsError(
            f"{variable(prefix)}_MODELS gives a price for {slug}, which has one. "
            f'Change it in the file: [endpoints.{slug}] price = "{pattern.price}"'
        )
    try:
        usdc(parts["price"])
    except ValueError as error:
        raise _settings_error(f"is not right: {error}", table, prefix) from None
    return attrs.evolve(
        pattern,
        slug=slug,
        id=parts["id"],
        title=parts["id"],
        price=parts["price"],
        prices={},
        costs={},
        # The operator gave one price, so only the default size is sold.
        resolutions=pattern.resolutions[:1],
        cost_micros=None,
        retires=None,
    )


def _slug(model_id: str, prefix: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", model_id.lower()).strip("-")
    return plain if plain.startswith(f"{prefix}-") else f"{prefix}-{plain}"


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…")


def _settings_error(state: str, table: Sequence[Model], prefix: str) -> SettingsError:
    name = f"{variable(prefix)}_MODELS"
    known = ", ".join(model.slug for model in table)
    return SettingsError(
        f"{name} {state}. Known models: {known}. "
        f"Example: {name}={table[0].slug},some/new-model=0.08 like {table[0].slug}"
    )
