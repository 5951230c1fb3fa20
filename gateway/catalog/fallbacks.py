"""Fallbacks: whether another endpoint can make every order of an endpoint.

Declarations are compared, both when an operator chooses a fallback and whenever it is used, because
a plugin or a setting may have changed an endpoint since.
"""

import functools
import itertools
import json
from collections.abc import Iterator, Sequence

import attrs

from gateway.domain import Endpoint, GenerationRequest

# Fields of a request with the values that an endpoint offers.
_CHOICES = ("aspect_ratio", "output_format", "resolution")
# Of a description that a 402 lists whole.
_MAX_LISTED_CHARS = 500


# Pages compare each endpoint with all others. Prices and costs are part of the key.
@functools.lru_cache(maxsize=512)
def find_misfit(bought: Endpoint, maker: Endpoint) -> str | None:
    """Return why `maker` cannot make the orders of `bought`, as the end of a sentence, or None.

    It must take every request, promise at least the same result, and cost no more than the price.
    An unknown cost is no misfit: see `has_unknown_cost`.
    """
    return next(_find_misfits(bought, maker), None)


def _find_misfits(bought: Endpoint, maker: Endpoint) -> Iterator[str]:
    if maker.slug == bought.slug:
        yield "it is the same endpoint"
    if maker.capability != bought.capability:
        yield f"it makes {maker.capability}, not {bought.capability}"
    yield from _find_refused_fields(bought, maker)
    yield from _find_lower_limits(bought, maker)
    for resolution in _resolutions(bought):
        ordered = GenerationRequest(resolution=resolution)
        if maker.pixels_of(fill_defaults(ordered, maker)) < bought.pixels_of(ordered):
            yield f"its pictures may have fewer pixels{f' at {resolution}' if resolution else ''}"
    yield from _find_losses(bought, maker)


def _find_refused_fields(bought: Endpoint, maker: Endpoint) -> Iterator[str]:
    """Yield a request's fields that the maker needs, or whose values it does not take."""
    needed = [name for name in maker.required_fields if name not in bought.required_fields]
    if needed:
        yield f"it needs {', '.join(needed)}"
    for name in _CHOICES:
        own, other = getattr(bought, name), getattr(maker, name)
        missing = [value for value in own.values if value not in other.values]
        if missing:
            yield f"it does not take {name} {', '.join(missing)}"
        # Buyers who name none get what the vendor chooses, not the maker's default.
        if own.values and own.default is None and other.default is not None:
            yield f"it has a default {name}, which the endpoint leaves open"
    if bought.edits_pictures and bought.aspect_ratio.default is None and maker.aspect_ratio.default:
        yield "it gives a picture another ratio if the request names none"
    missing = [each for each in bought.file_extensions if each not in maker.file_extensions]
    if missing:
        yield f"it does not take {', '.join(missing)} files"
    if bought.reads_prompt and not maker.reads_prompt:
        yield "it ignores the prompt"


def _find_lower_limits(bought: Endpoint, maker: Endpoint) -> Iterator[str]:
    if maker.max_prompt_chars < bought.max_prompt_chars:
        yield f"its prompts have at most {maker.max_prompt_chars:,} characters"
    if bought.takes_file and maker.max_picture_bytes < bought.max_picture_bytes:
        yield f"its pictures have at most {maker.max_picture_bytes:,} bytes"
    most = maker.max_pages
    if bought.takes_file and most is not None and (bought.max_pages or most + 1) > most:
        yield f"its documents have at most {most:,} pages"
    own, other = bought.unit_price, maker.unit_price
    if other is None:
        return
    if own is None or own.unit != other.unit or own.most > other.most:
        yield f"it takes at most {other.most:,} {other.unit.plural}"
    elif own.step % other.step:
        # Rounded up further, an amount between two prices may cost more than it brings.
        yield f"it bills {other.step:,} {other.unit.plural} at once"


def _find_losses(bought: Endpoint, maker: Endpoint) -> Iterator[str]:
    if maker.page_cost_micros is not None and bought.max_pages is None:
        yield "each page costs, and the endpoint limits no pages"
    for request in _requests(bought, maker):
        cost, price = maker.cost_of(fill_defaults(request, maker)), bought.price_of(request)
        if cost is not None and cost > price:
            yield f"it costs {cost / 10**6:g} USD, more than the price of {price / 10**6:g} USDC"


def has_unknown_cost(bought: Endpoint, maker: Endpoint) -> bool:
    """Whether the maker's cost of an order is not known, so that it may be above the price."""
    return any(
        maker.cost_of(fill_defaults(request, maker)) is None for request in _requests(bought, maker)
    )


def _requests(bought: Endpoint, maker: Endpoint) -> Iterator[GenerationRequest]:
    """Yield requests of the bought endpoint, at each place where a price or cost changes."""
    for resolution, pages in itertools.product(_resolutions(bought), _page_counts(bought, maker)):
        for counted in _amounts(bought):
            yield attrs.evolve(counted, resolution=resolution, pages=pages)


def _resolutions(bought: Endpoint) -> Sequence[str | None]:
    """Return the resolutions that a validated request may have; None: it names none."""
    return list(dict.fromkeys((*bought.resolution.values, bought.resolution.default)))


def _page_counts(bought: Endpoint, maker: Endpoint) -> Sequence[int | None]:
    if not (bought.counts_pages or maker.counts_pages):
        return [None]
    steps = (*bought.price_steps, *maker.price_steps)
    begins = {step.min_pages for step in steps if step.min_pages}
    last = bought.max_pages or maker.max_pages or max(begins, default=1)
    around = {1, last, *begins, *(begin - 1 for begin in begins)}
    return sorted(pages for pages in around if 1 <= pages <= last)


def _amounts(bought: Endpoint) -> list[GenerationRequest]:
    """Return requests with the fewest and the most units of a price by unit."""
    if bought.unit_price is None:
        return [GenerationRequest()]
    unit = bought.unit_price.unit
    sizes = (1, bought.unit_price.most * unit.size)
    if unit.of == "prompt":
        return [GenerationRequest(prompt="x" * size) for size in sizes]
    return [GenerationRequest(measured={unit.measure: size}) for size in sizes]


def name_fallback(bought: Endpoint, maker: Endpoint) -> Endpoint:
    """Return an offer whose description tells buyers who may make it in an outage."""
    name = f"{maker.model} by {maker.provider}" if maker.model else maker.title
    sentence = f"In an outage of its provider, {name} may make it."
    texts = [bought.description.strip() or bought.title, sentence]
    # A 402 cuts the end of a long description off.
    is_long = len(json.dumps(texts)) > _MAX_LISTED_CHARS
    return attrs.evolve(bought, description=" ".join(reversed(texts) if is_long else texts))


def fill_defaults(request: GenerationRequest, maker: Endpoint) -> GenerationRequest:
    """Return a request with the maker's defaults for the fields that it leaves open."""
    missing = {
        name: getattr(maker, name).default for name in _CHOICES if getattr(request, name) is None
    }
    return attrs.evolve(request, **missing)
