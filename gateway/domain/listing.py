"""How x402 lists an endpoint: `resource`, the extension `bazaar`, and the payment flow.

The challenge and the facilitator request carry all three. A Bazaar lists the endpoints in
settlement requests. Sources: x402 specs/extensions/bazaar.md, and the limits of CDP's Bazaar.
"""

import json
import re
from typing import Any

from gateway.domain.description import request_example, request_schema, started_example
from gateway.domain.offers import Endpoint

BAZAAR = "bazaar"
# In `extra` of x402 v2: the payment settles before the work begins. Without this field, clients
# expect settlement after the work. Source: x402 specs/schemes/exact/scheme_exact.md.
UPFRONT = {"paymentFlow": "upfront"}
_MAX_TAGS = 5
# Of the service's name and of each tag, in printable ASCII.
_MAX_LABEL_CHARS = 32
_MAX_DESCRIPTION_CHARS = 500
# As JSON, in which a non-ASCII character may take 12 bytes.
_MAX_DESCRIPTION_BYTES = 520
_MAX_BYTES_PER_CHAR = 12
# Of the whole declaration as JSON. Those of the bundled endpoints have 1,780 at most.
_MAX_BAZAAR_BYTES = 1_800
_NOT_PRINTABLE = re.compile(r"[^\x20-\x7e]+")
# A named host: a Bazaar fetches no icon from an IP address or from `localhost`.
_ORIGIN = re.compile(r"https://(?:[a-z0-9-]+\.)+[a-z]{2,63}(?::\d{1,5})?(?=/)", re.IGNORECASE)


def resource_of(endpoint: Endpoint | None, url: str, name: str) -> dict[str, Any]:
    """Return x402's `resource` of an endpoint at `url`; `name` is the gateway's.

    Without an endpoint, it describes one that is no longer in the catalog.
    """
    about = name if endpoint is None else endpoint.description or endpoint.title
    resource = {"url": url, "description": _shorten(about), "mimeType": "application/json"}
    if label := _label(name):
        resource["serviceName"] = label
    if origin := _ORIGIN.match(url):
        resource["iconUrl"] = f"{origin[0]}/favicon.ico"
    return resource if endpoint is None else resource | {"tags": _tags(endpoint)}


def bazaar_of(
    endpoint: Endpoint, *, has_fields: bool = True, has_output: bool = True
) -> dict[str, Any]:
    """Return the `bazaar` extension of an endpoint: an example call and a matching schema.

    Without `has_fields`, or if the declaration gets too large, the schema omits the body's fields.
    Without `has_output` the response is not described.
    """
    # The promised pixels have no space left in a 402. OpenAPI says them.
    schema = request_schema(endpoint, promises=False) if has_fields else {"type": "object"}
    declared = _declare(endpoint, schema, has_output=has_output)
    if has_fields and len(json.dumps(declared)) > _MAX_BAZAAR_BYTES:
        return _declare(endpoint, {"type": "object"}, has_output=has_output)
    return declared


def _declare(
    endpoint: Endpoint, body_schema: dict[str, Any], *, has_output: bool
) -> dict[str, Any]:
    call = {"type": "http", "method": "POST", "bodyType": "json", "body": request_example(endpoint)}
    fixed = {name: {"const": value} for name, value in call.items() if name != "body"}
    info: dict[str, Any] = {"input": call}
    properties: dict[str, Any] = {
        "input": {
            "type": "object",
            "properties": {**fixed, "body": body_schema},
            "required": list(call),
            "additionalProperties": False,
        }
    }
    if has_output:
        info["output"] = {"type": "json", "example": dict(started_example())}
        properties["output"] = {
            "type": "object",
            "properties": {"type": {"const": "json"}, "example": {"type": "object"}},
            "required": ["type"],
        }
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": ["input"],
    }
    return {"info": info, "schema": schema}


def _tags(endpoint: Endpoint) -> list[str]:
    labels = map(_label, (endpoint.capability, endpoint.model, endpoint.provider))
    return list(dict.fromkeys(label for label in labels if label))[:_MAX_TAGS]


def _label(text: str) -> str:
    return _NOT_PRINTABLE.sub("", text)[:_MAX_LABEL_CHARS].strip()


def _shorten(text: str) -> str:
    short = text[:_MAX_DESCRIPTION_CHARS]
    if len(json.dumps(short)) > _MAX_DESCRIPTION_BYTES:
        return short[: _MAX_DESCRIPTION_BYTES // _MAX_BYTES_PER_CHAR]
    return short
