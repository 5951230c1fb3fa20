"""The gateway's descriptions of itself, and offers with several prices."""

import attrs

from gateway import Choice, PriceStep, hookimpl, usdc
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider

BASE = "http://gateway.test"
MANIFEST = "/.well-known/agent-manifest.json"
PUBLIC = (
    MANIFEST,
    "/.well-known/did.json",
    "/.well-known/x402.json",
    "/.well-known/agent-registration.json",
    "/llms.txt",
    "/openapi.json",
    "/sitemap.xml",
    "/favicon.ico",
    "/api/health",
)


async def get_json(gateway, path):
    answer = await gateway.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    return await answer.get_json()


async def slugs(gateway) -> list[str]:
    manifest = await get_json(gateway, MANIFEST)
    return [endpoint["slug"] for endpoint in manifest["availableEndpoints"]]


class Priced:
    """Sells a picture priced by resolution, and a document priced by pages."""

    __name__ = "priced-plugin"

    @hookimpl
    def register_endpoints(self, register) -> None:
        provider = ScriptedProvider()
        picture = attrs.evolve(
            ENDPOINT,
            slug="steps",
            resolution=Choice(values=("1K", "2K", "4K"), default="1K"),
            price_steps=(
                PriceStep(price_units=usdc("0.05"), resolution="2K"),
                PriceStep(price_units=usdc("0.12"), resolution="4K"),
            ),
            max_prompt_chars=1500,
        )
        register(picture, provider)
        document = attrs.evolve(
            ENDPOINT,
            slug="pages",
            capability="document-parsing",
            required_fields=("fileBase64", "fileName"),
            file_extensions=(".pdf",),
            price_steps=(PriceStep(price_units=usdc("0.05"), min_pages=51),),
            max_pages=1200,
        )
        register(document, provider)
        by_page = {"slug": "each-page", "price_steps": (), "price_per_page": usdc("0.03")}
        register(attrs.evolve(document, **by_page), provider)
