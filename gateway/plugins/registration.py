"""Validates plugins' registrations before anything is on sale; each mistake is one sentence."""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import attrs

from gateway.contracts import AuthorizationVerifier, Provider, Settler, TransferVerifier
from gateway.contracts.payment_methods import PaymentMethod
from gateway.contracts.payments import split_header_name
from gateway.domain import (
    ASPECT_RATIOS,
    MAX_PROMPT_CHARS,
    PAGE,
    Capability,
    Choice,
    Endpoint,
    PriceStep,
    Traits,
    Unit,
    UnitPrice,
)
from gateway.domain.description import missing_fields, way_to_require
from gateway.domain.offers import SLUG_RULE, is_slug
from gateway.errors import SettingsError
from gateway.plugins.part_offers import PATH_CLAIM, covers
from gateway.settings import SectionOffer, Settings, names_of, variable

X402_HEADER = "X-PAYMENT"
# Of one request, in the measure that a price counts.
_MOST_MEASURED = 10**12
_HEADER_CLAIM = "Payment header "
CAPABILITY_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PREFIX = re.compile(r"[a-z][a-z0-9_]*[a-z0-9]")
# A header, optionally with the scheme of its value.
_HEADER = re.compile(r"[A-Za-z0-9-]+(: [A-Za-z0-9-]+)?")
_ANSWER_HEADER = re.compile(r"[A-Za-z0-9-]+")
_METHOD = re.compile(r"[a-z][a-z0-9]{1,19}")
# The core's own names in claims, books and pages.
_TAKEN = ("tx", "auth", "x402", "direct", "refund")
_METHODS_ASYNC = ("check", "settle")
_METHODS_CALLS = ("challenge", "read", "receipt_headers", *_METHODS_ASYNC)
_EXTENSION = re.compile(r"\.[a-z0-9]+")
_FIELDS = ("prompt", "aspect_ratio", "output_format", "resolution", "fileBase64", "fileName")
_ASYNC = ("submit", "poll", "cancel", "health")


# Takes the arguments of `register`; returns a name that the plugin may use once, and the offer.
Offer = Callable[..., tuple[str, Any]]


class RegistrationMistake(ValueError):
    """What a plugin registers is wrong. The message is a sentence without its full stop."""


class Offers:
    """The registrations of one plugin through one hook."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self.taken: dict[str, Any] = {}

    def register(self, *args: Any, **named: Any) -> None:
        """Take one offer; raises `RegistrationMistake` for a duplicate name."""
        name, offered = self._offer(*args, **named)
        if name in self.taken:
            raise RegistrationMistake(f"{name!r} is registered twice")
        self.taken[name] = offered


def endpoint_offer(
    endpoint: Endpoint, provider: Provider, capabilities: Mapping[str, Capability] | None = None
) -> tuple[str, tuple[Endpoint, Provider]]:
    """Return the slug, the endpoint with the declaration of its capability, and the provider.

    `capabilities` are those of plugins by name. Raises `RegistrationMistake` with a sentence that
    names the slug and the mistake, `TypeError` for an object that is not an `Endpoint`.
    """
    if not isinstance(endpoint, Endpoint):
        raise TypeError(f"it registers a {type(endpoint).__name__}, not a gateway.Endpoint")
    endpoint = attrs.evolve(endpoint, declared=(capabilities or {}).get(endpoint.capability))
    mistake = next(chain(_mistakes_in(endpoint), _mistakes_of(provider)), None)
    if mistake is not None:
        raise RegistrationMistake(f"endpoint {endpoint.slug!r}: {mistake}")
    return endpoint.slug, (endpoint, provider)


def section_offer(prefix: str, kind: type) -> tuple[str, tuple[str, type]]:
    """Return the prefix and the arguments that the plugin registered.

    Raises `ValueError` with a sentence that names the prefix and the mistake.
    """
    if not isinstance(prefix, str) or (prefix and not _PREFIX.fullmatch(prefix)):
        raise ValueError(f"settings {prefix!r}: a prefix is lower-case letters, digits and _")
    if not attrs.has(kind):
        raise ValueError(f"settings {prefix!r}: {kind!r} is no attrs class")
    for name, field in names_of(prefix, kind).items():
        if "about" not in field.metadata:
            raise ValueError(
                f"settings {prefix!r}: {field.name} is not made with gateway.setting or .secret"
            )
        if name in attrs.fields_dict(Settings):
            raise ValueError(f"settings {prefix!r}: {name} is a setting of the gateway itself")
    return prefix, (prefix, kind)


def claims_of_section(section: SectionOffer) -> Iterator[str]:
    """Yield what only one plugin can have of its settings."""
    if section.prefix:
        yield f"settings named GATEWAY_{section.prefix.upper()}_…"
    yield from (f"a setting {variable(name)}" for name in section.fields)


def signed_offer(verifier: AuthorizationVerifier) -> tuple[str, AuthorizationVerifier]:
    """Return the verifier of signed payments; its constant name lets a plugin register only one.

    Raises `ValueError` for a verifier without the names of its headers.
    """
    _check_headers(verifier)
    return "verifier", verifier


def method_offer(method: PaymentMethod) -> tuple[str, PaymentMethod]:
    """Return the name of a payment method, and the method.

    Raises `ValueError` with a sentence that names the mistake.
    """
    kind, name = type(method).__name__, getattr(method, "name", None)
    if not isinstance(name, str) or not _METHOD.fullmatch(name) or name in _TAKEN:
        raise ValueError(
            f"{kind}.name {name!r} is not 2 to 20 of a-z and 0-9, beginning with a letter, or is "
            f"one of {', '.join(_TAKEN)}"
        )
    _check_headers(method)
    missing = [each for each in _METHODS_CALLS if not callable(getattr(method, each, None))]
    if missing:
        raise ValueError(f"{kind} has no method {missing[0]}")
    for each in _METHODS_ASYNC:
        if not inspect.iscoroutinefunction(inspect.unwrap(getattr(method, each))):
            raise ValueError(f"{kind}.{each} is not an `async def`")
    return name, method


def _check_headers(way: Any) -> None:
    names = getattr(way, "header_names", ())
    if isinstance(names, str) or not names or not all(map(_HEADER.fullmatch, names)):
        raise ValueError(
            f"{type(way).__name__}.header_names is no list of names such as X-PAYMENT or "
            "Authorization: Payment"
        )
    answers = getattr(way, "answer_headers", ())
    if isinstance(answers, str) or not all(map(_ANSWER_HEADER.fullmatch, answers)):
        raise ValueError(f"{type(way).__name__}.answer_headers is no list of names of headers")


def transfer_offer(verifier: TransferVerifier) -> tuple[str, TransferVerifier]:
    """Return the verifier of transfers; its constant name lets a plugin register only one."""
    return "verifier", verifier


def check_offer(name: str, check: Any) -> tuple[str, Any]:
    """Return name and function of a row of `gateway check`; raises `ValueError`."""
    if not isinstance(name, str) or not name or not callable(check):
        raise ValueError("register takes a name and a function")
    return name, check


def claims_of_way(_: str, way: Any) -> Iterator[str]:
    """Yield what only one plugin can have of a way to pay; only payment methods have names."""
    yield from (f"{_HEADER_CLAIM}{name}" for name in way.header_names)
    if name := getattr(way, "name", ""):
        yield f"Payment method {name}"


def find_taken(claim: str, taken: Collection[str]) -> str | None:
    """Return the taken claim that clashes with a claim, if any.

    Two header names clash if they may match the same payment header, and a path with one that
    covers it: no request would arrive.
    """
    if claim.startswith(PATH_CLAIM):
        return next((other for other in taken if covers(other, claim)), None)
    if not claim.startswith(_HEADER_CLAIM):
        return claim if claim in taken else None
    header, scheme = split_header_name(claim.lower())
    for other in taken:
        header_2, scheme_2 = split_header_name(other.lower())
        if header == header_2 and (scheme == scheme_2 or "" in (scheme, scheme_2)):
            return other
    return None


def is_x402(verifier: Any) -> bool:
    """Whether a verifier takes the header that the gateway's pages and listings name."""
    return X402_HEADER in {name.upper() for name in verifier.header_names}


def refuse_without_x402(verifiers: Iterable[Any]) -> None:
    """Raise `SettingsError` if no verifier takes the header of the gateway's pages."""
    if not any(map(is_x402, verifiers)):
        raise SettingsError(
            f"No plugin takes payments by x402, in the header {X402_HEADER}, which is what "
            "the gateway's pages and listings name. `gateway plugins` lists the plugins; take "
            "gateway_x402 out of GATEWAY_PLUGINS_DISABLED."
        )


def span_offer(open_span: Any) -> tuple[str, Any]:
    """Return the span opener; its constant name lets a plugin register only one.

    Raises `TypeError` for an object that cannot be called.
    """
    if not callable(open_span):
        raise TypeError(f"it registers a {type(open_span).__name__}, which cannot be called")
    return "spans", open_span


def settler_offer(
    name: str, factory: Callable[[], Settler]
) -> tuple[str, tuple[str, Callable[[], Settler]]]:
    """Return the settler's name and the arguments that the plugin registered."""
    return name, (name, factory)


def _mistakes_in(endpoint: Endpoint) -> Iterator[str]:
    """Yield mistakes. Later checks assume that earlier ones have found none."""
    slug = endpoint.slug
    if not isinstance(slug, str) or not is_slug(slug):
        yield SLUG_RULE
    for name in ("title", "description", "model", "provider"):
        text = getattr(endpoint, name)
        if not isinstance(text, str) or not text.strip():
            yield f"{name} is empty"
    if not CAPABILITY_NAME.fullmatch(endpoint.capability):
        yield f"capability {endpoint.capability!r} is not spelled like text-to-image"
    yield from _mistakes_in_fields(endpoint)
    yield from _mistakes_in_prices(endpoint)
    # What nothing declares is not sold, and its declaration may be back at the next start.
    formats = endpoint.formats if endpoint.is_declared else endpoint.output_format.values
    choices = {
        "aspect_ratio": ASPECT_RATIOS,
        "output_format": formats,
        "resolution": endpoint.declaration.resolutions or endpoint.resolution.values,
    }
    for name, allowed in choices.items():
        choice: Choice = getattr(endpoint, name)
        for value in choice.values:
            if value not in allowed:
                yield f"{name} {value!r} is none of {', '.join(allowed)}"
    yield from _mistakes_in_limits(endpoint)


def _mistakes_in_prices(endpoint: Endpoint) -> Iterator[str]:
    for price in (endpoint.price_units, *(step.price_units for step in endpoint.price_steps)):
        if not _is_whole(price):
            yield f"price_units {price!r} is no whole number; write gateway.usdc('0.02')"
    if endpoint.price_per_page is not None:
        yield from _mistakes_in_page_price(endpoint)
    if endpoint.unit_price is not None:
        yield from _mistakes_in_unit_price(endpoint, endpoint.unit_price)
    for step in endpoint.price_steps:
        yield from _mistakes_in_step(step, endpoint)


def _mistakes_in_page_price(endpoint: Endpoint) -> Iterator[str]:
    price: Any = endpoint.price_per_page
    if not _is_whole(price) or price < 1:
        yield f"price_per_page {price!r} is not more than 0; write gateway.usdc('0.01')"
    if not endpoint.takes_file:
        yield "price_per_page counts pages, but no file is taken"
    if endpoint.max_pages is None:
        yield "price_per_page needs max_pages, which bounds the price"
    if any(step.min_pages is not None for step in endpoint.price_steps):
        yield "price_per_page and price steps with min_pages: choose one of the two"


def _mistakes_in_step(step: PriceStep, endpoint: Endpoint) -> Iterator[str]:
    if step.resolution is None and step.min_pages is None:
        yield "a price step names neither a resolution nor min_pages"
    if step.resolution is not None and step.resolution not in endpoint.resolution.values:
        known = ", ".join(endpoint.resolution.values) or "none"
        yield f"a price step is for resolution {step.resolution!r}, but it has {known}"
    is_for_default = step.resolution is not None and step.resolution == endpoint.resolution.default
    if is_for_default and step.min_pages is None:
        yield "a price step is for the default resolution, whose price is price_units"
    if step.min_pages is not None and not endpoint.takes_file:
        yield "a price step counts pages, but no file is taken"


def _mistakes_in_fields(endpoint: Endpoint) -> Iterator[str]:
    for name in endpoint.required_fields:
        if name not in _FIELDS:
            yield f"required field {name!r} is none of {', '.join(_FIELDS)}"
    for ending in endpoint.file_extensions:
        if not _EXTENSION.fullmatch(ending):
            yield f"file extension {ending!r} is not spelled like .pdf"
    if "fileBase64" in endpoint.required_fields and not endpoint.takes_file:
        yield "it requires a file, but file_extensions is empty"
    missing = missing_fields(endpoint)
    if missing and endpoint.declaration.is_strict:
        yield f"{endpoint.capability} needs {way_to_require(missing)}"
    if endpoint.takes_file:
        yield from _mistakes_in_files(endpoint)


def _mistakes_in_files(endpoint: Endpoint) -> Iterator[str]:
    kinds, endings = endpoint.declaration.files, set(endpoint.file_extensions)
    if not kinds:
        if endpoint.declaration.is_strict:
            yield f"{endpoint.capability} takes no file"
        return
    known = [ending for kind in kinds for ending in kind.endings]
    needed = [kind.needed_ending for kind in kinds if kind.needed_ending]
    is_open = not all(kind.endings for kind in kinds)
    if not endings.issuperset(needed) or not (is_open or endings <= set(known)):
        named = " and ".join(kind.plural or f"{kind.name} files" for kind in kinds)
        first = "".join(f"{ending} and " for ending in needed)
        yield (
            f"{endpoint.capability} takes {named}: file_extensions are {first}any of "
            f"{', '.join(known)}"
        )
    without = [one for one in endpoint.file_kinds if PAGE.measure not in one.measures]
    if endpoint.counts_pages and without:
        kind = without[0].name
        yield f"a {kind} has no pages: leave max_pages, min_pages and price_per_page out"


def _mistakes_in_unit_price(endpoint: Endpoint, price: UnitPrice) -> Iterator[str]:
    if not isinstance(price, UnitPrice):
        yield f"unit_price {price!r} is no gateway.UnitPrice"
    if not all(_is_whole(one) and one > 0 for one in (price.price_units, price.step, price.most)):
        yield "unit_price needs whole numbers of 1 or more"
    unit = price.unit
    if not (
        isinstance(unit, Unit)
        and unit.of in ("file", "prompt")
        and isinstance(unit.measure, str)
        and _is_whole(unit.size)
        and unit.size > 0
    ):
        yield f"unit_price is for {unit!r}, which is no gateway.Unit of a file or a prompt"
    if unit.of == "prompt" and price.most * unit.size > MAX_PROMPT_CHARS:
        yield f"unit_price takes more than the {MAX_PROMPT_CHARS:,} characters of a prompt"
    if price.most * unit.size > _MOST_MEASURED:
        yield f"unit_price takes more than {_MOST_MEASURED:,} {unit.measure}"
    if unit.measure == PAGE.measure:
        yield "unit_price counts no pages: write price_per_page"
    if endpoint.is_declared:
        yield from _mistakes_in_unit(endpoint, unit)


def _mistakes_in_unit(endpoint: Endpoint, unit: Unit) -> Iterator[str]:
    if unit not in endpoint.declaration.units:
        names = ", ".join(one.name for one in endpoint.declaration.units)
        yield f"unit_price is for each {unit.name}, but {endpoint.capability} is priced by: {names}"
    kinds = endpoint.file_kinds
    if unit.of == "file" and not (kinds and all(unit.measure in one.measures for one in kinds)):
        yield f"unit_price counts {unit.measure}, which its files do not have"


def _mistakes_in_limits(endpoint: Endpoint) -> Iterator[str]:
    if not 1 <= endpoint.max_prompt_chars <= MAX_PROMPT_CHARS:
        yield f"max_prompt_chars is not 1 to {MAX_PROMPT_CHARS}"
    if endpoint.max_pages is not None and endpoint.max_pages < 1:
        yield "max_pages is not 1 or more"
    if endpoint.max_picture_bytes < 1:
        yield "max_picture_bytes is not 1 or more"
    if not endpoint.timeout_s > 0:
        yield "timeout_s is not more than 0"


def _mistakes_of(provider: Any) -> Iterator[str]:
    name = getattr(provider, "name", None)
    kind = type(provider).__name__
    if not isinstance(name, str) or not name:
        yield f"its provider {kind} has no name"
    if not callable(getattr(provider, "submit", None)):
        yield f"its provider {kind} has no method submit"
    for method in _ASYNC:
        found = getattr(provider, method, None)
        if inspect.isroutine(found) and not inspect.iscoroutinefunction(inspect.unwrap(found)):
            yield f"{kind}.{method} is not an `async def`"
    traits = getattr(provider, "traits", Traits())
    if not isinstance(traits, Traits):
        yield f"{kind}.traits is no gateway.Traits"
    elif traits.limits_pages and not callable(getattr(provider, "validate", None)):
        yield f"{kind}.traits.limits_pages is set, but it has no method validate"
    for name in ("max_concurrency", "submits_per_minute"):
        limit = getattr(traits, name)
        if limit is not None and not (_is_whole(limit) and limit > 0):
            yield f"{kind}.traits.{name} is no whole number of 1 or more; None: no limit"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
