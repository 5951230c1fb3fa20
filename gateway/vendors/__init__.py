"""Toolkit for adapters of vendor APIs: HTTP client, model tables, page prices, JSON readers.

Adapters import these names from here, not from the modules below. Nothing in this folder may know
the engine, the store or payments.

An adapter that sells two models of a made-up vendor, each of which returns one picture:

    MODELS = (
        Model(slug="acme-fast", id="fast-1", title="Acme Fast", price="0.05"),
        Model(slug="acme-large", id="large-1", title="Acme Large", price="0.12"),
    )

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        order = {"model": job.endpoint.model, "prompt": request.prompt}
        answer = await self.outbound.request("POST", "/v1/pictures", json=order)
        body = as_object(await answer.submit_json())
        answer.check()
        if not (url := as_text(body.get("url"))):
            raise ContentPolicy("Acme returned no picture for this prompt.")
        return Result(outputs=(Link(url=url, media_type="image/png"),))

    @hookimpl
    def register_endpoints(register: Callable[..., None], settings: Settings) -> None:
        mine = settings.section("acme", AcmeSettings)
        address = base_url(mine.base_url, name="acme_base_url")
        provider = AcmeProvider(Outbound(address, headers={"X-Acme-Key": str(mine.api_key)}))
        for model in models_on_sale(MODELS, mine.models, prefix="acme"):
            register(picture_endpoint(model, provider="acme"), provider)
"""

import importlib
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gateway.errors import SettingsError
from gateway.settings.sections import variable
from gateway.vendors.answer import Answer
from gateway.vendors.client import Outbound

if TYPE_CHECKING:
    from gateway.vendors.documents import (
        DocumentParser,
        DocumentSettings,
        answer_schema,
        attached_file,
        base64_text,
        check_job,
        document_endpoint,
        media_type,
        page_cost_micros,
        paid_pages,
        read_json,
        schema_of,
    )
    from gateway.vendors.json_fields import (
        as_number,
        as_object,
        as_text,
        blamed_fields,
        job_urls,
        json_object,
    )
    from gateway.vendors.models import (
        Model,
        edit_endpoint,
        model_endpoint,
        models_on_sale,
        picture_endpoint,
    )
    from gateway.vendors.pictures import PictureLimits, data_uri, picture_size, size_like

_PLACES = {
    "DocumentParser": "documents",
    "DocumentSettings": "documents",
    "Model": "models",
    "answer_schema": "documents",
    "PictureLimits": "pictures",
    "as_number": "json_fields",
    "as_object": "json_fields",
    "as_text": "json_fields",
    "attached_file": "documents",
    "base64_text": "documents",
    "blamed_fields": "json_fields",
    "check_job": "documents",
    "data_uri": "pictures",
    "document_endpoint": "documents",
    "edit_endpoint": "models",
    "job_urls": "json_fields",
    "json_object": "json_fields",
    "media_type": "documents",
    "model_endpoint": "models",
    "models_on_sale": "models",
    "page_cost_micros": "documents",
    "paid_pages": "documents",
    "picture_endpoint": "models",
    "picture_size": "pictures",
    "read_json": "documents",
    "size_like": "pictures",
    "schema_of": "documents",
}
__all__ = [
    "Answer",
    "DocumentParser",
    "DocumentSettings",
    "Model",
    "Outbound",
    "PictureLimits",
    "answer_schema",
    "as_number",
    "as_object",
    "as_text",
    "attached_file",
    "base64_text",
    "base_url",
    "blamed_fields",
    "check_job",
    "data_uri",
    "document_endpoint",
    "edit_endpoint",
    "job_urls",
    "json_object",
    "limit_or_none",
    "media_type",
    "model_endpoint",
    "models_on_sale",
    "page_cost_micros",
    "paid_pages",
    "picture_endpoint",
    "picture_size",
    "read_json",
    "schema_of",
    "size_like",
]


def __getattr__(name: str) -> Any:
    """Import submodules lazily: few adapters need all of them."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"gateway.vendors.{_PLACES[name]}"), name)


def base_url(value: str, *, name: str) -> str:
    """Return an API's base URL without a trailing slash.

    `name` is the setting, such as `acme_base_url`. Raises `SettingsError` unless the URL is http or
    https, has a host, and has no query, so that a path can be appended. The error omits the value,
    because some operators put a key into it.
    """
    try:
        url = urlsplit(value)
        is_right = url.scheme in ("http", "https") and bool(url.hostname)
    except ValueError:
        # For example, an unclosed bracket.
        is_right = False
    if not is_right or any(mark in value for mark in "?#") or not value.isprintable():
        raise SettingsError(
            f"{variable(name)} is not right: an address that begins with http:// or https:// and "
            f"has no query. Example: {variable(name)}=https://api.example.com/v1"
        )
    return value.rstrip("/")


def limit_or_none(value: int, *, name: str) -> int | None:
    """Return an operator's limit, or None if it is 0.

    `name` is the setting, such as `acme_max_concurrency`. Raises `SettingsError` if it is negative.
    """
    if value < 0:
        raise SettingsError(
            f"{variable(name)} is not right: a whole number, 0 for no limit. "
            f"Example: {variable(name)}=4"
        )
    return value or None
