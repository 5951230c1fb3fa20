"""All endpoints of the bundled providers when fully configured."""

import functools
from pathlib import Path

from gateway import Endpoint
from gateway.catalog.catalog import Catalog
from gateway.plugins.manager import PluginManager
from gateway_testing.fakes.chain import settings_of

_KEYED = (
    "openai",
    "gemini",
    "fal",
    "kie",
    "replicate",
    "openrouter",
    "bfl",
    "mistral",
    "llamaparse",
)
ALL_SET_UP = {f"{name}_api_key": "key" for name in _KEYED} | {
    "docling_base_url": "https://docling.test",
    "azure_documents_endpoint": "https://documents.cognitiveservices.azure.com",
    "azure_documents_key": "key",
}


@functools.cache
def bundled_catalog() -> Catalog:
    """Return a catalogue with all of them."""
    settings = settings_of(
        ALL_SET_UP | {"sandbox": True}, wallet="0x" + "11" * 20, data_dir=Path("unused")
    )
    return PluginManager().catalog(settings)


def bundled_endpoints() -> dict[str, Endpoint]:
    """Return them by slug."""
    return {one.endpoint.slug: one.endpoint for one in bundled_catalog().everything()}
