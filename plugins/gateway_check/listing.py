"""The rows of `gateway check --listing`: whether an x402 Bazaar would list each endpoint."""

from collections.abc import Mapping
from typing import Any

import click

from gateway.contracts import Settler
from gateway.domain import Endpoint
from gateway.domain.listing import resource_of
from gateway.errors import ProviderError
from gateway.settings import Settings
from gateway.vendors import Answer, Outbound

# Coinbase's validator for its facilitator's Bazaar; it needs no key, and lists nothing. Source:
# docs.cdp.coinbase.com/x402/validate-endpoint.
CDP_VALIDATOR = "https://api.cdp.coinbase.com/platform/v2/x402/validate"
_MAX_BYTES = 1_000_000
_TIMEOUT_S = 60.0
_OK = 200

listing_option = click.option(
    "--listing", is_flag=True, help="Also check whether an x402 Bazaar would list each endpoint."
)
validator_option = click.option(
    "--validator",
    metavar="URL",
    is_flag=False,
    flag_value=CDP_VALIDATOR,
    help="Also check each endpoint with a Bazaar's validator, by default Coinbase's. It calls the "
    "gateway's public URL. Implies --listing.",
)


def check_listed(settings: Settings, settler: Settler) -> None:
    """Raise `ValueError` with the reason if this gateway's sales are not reported to a Bazaar."""
    lists = getattr(settler, "lists_endpoints", None)
    if lists is None:
        raise ValueError(
            f"{settings.settlement} settlement reports sales to no Bazaar; "
            "use GATEWAY_SETTLEMENT=facilitator"
        )
    if not lists:
        raise ValueError(
            "the facilitator's /supported names no Bazaar for x402 v2; try another facilitator"
        )
    if not settings.is_https:
        raise ValueError(f"no Bazaar lists {settings.base_url}: it is not https")


async def find_listing(settings: Settings, endpoint: Endpoint, validator: str | None) -> str:
    """Return how an endpoint would be or is listed, as a sentence.

    Raises `ValueError` if the validator rejects it or does not respond.
    """
    url = f"{settings.base_url}/api/x402/{endpoint.slug}"
    if validator is None:
        tags = ", ".join(resource_of(endpoint, url, settings.name)["tags"])
        return f"its next sale will list {url} with the tags {tags}"
    found = await _ask(validator, url)
    simulated, index = _object(found, "simulation"), _object(found, "index")
    if found.get("valid") is not True or simulated.get("outcome") != "accepted":
        raise ValueError(f"the validator rejects {url}: {_explain(found, simulated)}")
    if index.get("active") is True:
        return f"listed as {url}, last crawled {index.get('lastCrawledAt', 'at an unknown time')}"
    return f"not listed yet; the validator accepts {url}, so its next sale will list it"


async def _ask(validator: str, url: str) -> Mapping[str, Any]:
    outbound = Outbound(validator, max_bytes=_MAX_BYTES)
    question = {"resource": url, "method": "POST"}
    try:
        answer = await outbound.request(
            "POST", validator, json=question, timeout_s=_TIMEOUT_S, bills=False
        )
        return _read(answer)
    except ProviderError as error:
        raise ValueError(f"the validator did not respond: {error}") from None
    finally:
        await outbound.close()


def _read(answer: Answer) -> Mapping[str, Any]:
    found = answer.json() if answer.status == _OK else None
    if isinstance(found, dict):
        return found
    raise ValueError(f"the validator responded with status {answer.status} and no result")


def _explain(found: Mapping[str, Any], simulated: Mapping[str, Any]) -> str:
    """Return the failed checks, or why the Bazaar would reject."""
    checks = found.get("preflight")
    failed = [
        f"{one.get('check')}: {one.get('detail')}"
        for one in (checks if isinstance(checks, list) else [])
        if isinstance(one, dict) and one.get("passed") is False
        if one.get("severity") == "required"
    ]
    return "; ".join(failed) or str(simulated.get("rejectionReason", "no reason given"))


def _object(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}
