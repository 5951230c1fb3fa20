"""Models that a provider sells: its own table of them, and what the operator made of it.

A provider keeps a table of `Model`s. Its section of settings has a field `models`, by default the
slugs that are on sale without a word from the operator, and its hook says:

    for model in models_on_sale(TABLE, section.models, prefix="acme"):
        register(picture_endpoint(model, provider="acme"), provider)

The operator writes `GATEWAY_ACME_MODELS=acme-fast,acme/new-model=0.08 like acme-fast`: slugs of
the table, and models that are not in it yet, with their price in USDC and the model of the table
that is asked the same way. Prices and titles per slug are changed in `[endpoints.<slug>]`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from gateway.domain import Choice, Endpoint, PriceStep, usdc
from gateway.domain.offers import (
    ASPECT_RATIOS,
    MAX_PROMPT_CHARS,
    OUTPUT_FORMATS,
    TEXT_TO_IMAGE,
)
from gateway.errors import SettingsError
from gateway.settings.sections import variable

_ADDED = re.compile(r"(?P<id>[^\s=]+)\s*=\s*(?P<price>\S+)(?:\s+like\s+(?P<like>\S+))?")


@attrs.frozen(kw_only=True)
class Model:
    """One model, and the slug it is sold under."""

    slug: str
    id: str  # as the API calls it
    title: str
    price: str  # USDC of one picture
    prices: Mapping[str, str] = attrs.field(factory=dict)  # of resolutions that cost another
    resolutions: tuple[str, ...] = ()  # the first is the default; empty: there is one size
    aspect_ratios: tuple[str, ...] = ASPECT_RATIOS
    description: str = "Makes a picture from a description in words."
    max_prompt_chars: int = MAX_PROMPT_CHARS
    cost_micros: int | None = None  # what one costs the operator, in 10⁻⁶ US dollars
    timeout_s: float = 300.0  # of one attempt
    details: Mapping[str, Any] = attrs.field(factory=dict)  # how it is asked: the provider knows


def models_on_sale(
    table: Sequence[Model], chosen: Sequence[str], *, prefix: str
) -> tuple[Model, ...]:
    """Return the models an operator chose, those of the table and those added to it.

    Raises `SettingsError` for an entry that is neither, and for no entry at all.
    """
    entries = [entry.strip() for entry in chosen if entry.strip()]
    if not entries:
        raise _wrong("is empty", table, prefix)
    known = {model.slug: model for model in table}
    models = [known[entry] if entry in known else _added(entry, table, prefix) for entry in entries]
    return tuple({model.slug: model for model in models}.values())


def picture_endpoint(model: Model, *, provider: str) -> Endpoint:
    """Return what is for sale: every format is, because the gateway converts."""
    return Endpoint(
        slug=model.slug,
        title=model.title,
        description=model.description,
        model=model.id,
        provider=provider,
        capability=TEXT_TO_IMAGE,
        price_units=usdc(model.price),
        price_steps=tuple(
            PriceStep(price_units=usdc(price), resolution=resolution)
            for resolution, price in model.prices.items()
        ),
        cost_micros=model.cost_micros,
        aspect_ratio=Choice(values=model.aspect_ratios, default=model.aspect_ratios[0]),
        output_format=Choice(values=OUTPUT_FORMATS, default=OUTPUT_FORMATS[0]),
        resolution=Choice(values=model.resolutions, default=next(iter(model.resolutions), None)),
        max_prompt_chars=model.max_prompt_chars,
        timeout_s=model.timeout_s,
    )


def limit(value: int, *, name: str) -> int | None:
    """Return a limit that an operator set, None for 0, which means: none.

    Raises `SettingsError` for a negative one; `name` is the setting's, such as
    `acme_max_concurrency`.
    """
    if value < 0:
        raise SettingsError(
            f"{variable(name)} is not right: a whole number, 0 for no limit. "
            f"Example: {variable(name)}=4"
        )
    return value or None


def _added(entry: str, table: Sequence[Model], prefix: str) -> Model:
    """Return a model that the table does not know, asked like one that it does."""
    parts = _ADDED.fullmatch(entry)
    if parts is None:
        raise _wrong(f"names {entry!r}, which is not known and has no price", table, prefix)
    like = parts["like"] or table[0].slug
    pattern = next((model for model in table if model.slug == like), None)
    if pattern is None:
        raise _wrong(f"names {like!r} after `like`, which is not known", table, prefix)
    slug = _slug(parts["id"], prefix)
    if any(model.slug == slug for model in table):
        raise SettingsError(
            f"{variable(prefix)}_MODELS gives a price for {slug}, which has one. "
            f'Change it in the file: [endpoints.{slug}] price = "{pattern.price}"'
        )
    try:
        usdc(parts["price"])
    except ValueError as error:
        raise _wrong(f"is not right: {error}", table, prefix) from None
    return attrs.evolve(
        pattern,
        slug=slug,
        id=parts["id"],
        title=parts["id"],
        price=parts["price"],
        prices={},
        resolutions=pattern.resolutions[:1],  # one price: so the size that it was named for
        cost_micros=None,
    )


def _slug(model_id: str, prefix: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", model_id.lower()).strip("-")
    return plain if plain.startswith(f"{prefix}-") else f"{prefix}-{plain}"


def _wrong(state: str, table: Sequence[Model], prefix: str) -> SettingsError:
    name = f"{variable(prefix)}_MODELS"
    known = ", ".join(model.slug for model in table)
    return SettingsError(
        f"{name} {state}. Known are: {known}. "
        f"Example: {name}={table[0].slug},some/new-model=0.08 like {table[0].slug}"
    )
