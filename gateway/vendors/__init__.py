"""Toolkit for adapters of vendor APIs: HTTP client, model tables, page prices, JSON readers.

These are the names of the package `gateway_vendors`, which the core does not use. Adapters import
them from here, not from that package.

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


def __getattr__(name: str) -> Any:
    """Import the kit when one of its names is asked for; `__init__.pyi` is for type checkers."""
    kit = importlib.import_module("gateway_vendors")
    if name not in (*kit.__all__, "__all__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(kit, name)
