"""Toolkit for adapters of vendor APIs: HTTP client, model tables, page prices, JSON readers.

The kit itself is the package `gateway_vendors`, which the core never imports. Adapters import these
names from here, not from that package; for type checkers they are in `__init__.pyi`.

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
from typing import Any

_KIT = "gateway_vendors"
_PLACES = {
    "Answer": "answer",
    "DocumentParser": "documents",
    "DocumentSettings": "documents",
    "Model": "models",
    "Outbound": "client",
    "PictureLimits": "pictures",
    "answer_schema": "documents",
    "as_number": "json_fields",
    "as_object": "json_fields",
    "as_text": "json_fields",
    "attached_file": "documents",
    "base64_text": "documents",
    "base_url": "settings",
    "blamed_fields": "json_fields",
    "check_job": "documents",
    "data_uri": "pictures",
    "document_endpoint": "documents",
    "edit_endpoint": "models",
    "job_urls": "json_fields",
    "json_object": "json_fields",
    "limit_or_none": "settings",
    "media_type": "documents",
    "model_endpoint": "models",
    "models_on_sale": "models",
    "page_cost_micros": "documents",
    "paid_pages": "documents",
    "picture_endpoint": "models",
    "picture_size": "pictures",
    "read_json": "documents",
    "schema_of": "documents",
    "size_like": "pictures",
}
__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    """Import a name of the kit when an adapter asks for it: few adapters need all modules."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{_KIT}.{_PLACES[name]}"), name)
