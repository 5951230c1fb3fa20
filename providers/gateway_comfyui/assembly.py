"""Makes the provider and its machines from the settings."""

from pathlib import Path
from urllib.parse import urlsplit

from gateway import SettingsError, Traits
from gateway.vendors import base_url
from gateway_comfyui.fleet import Fleet
from gateway_comfyui.machine import Machine
from gateway_comfyui.provider import ComfyUI
from gateway_comfyui.settings import ComfyUISettings

# Of one answer. The gateway sells no larger result.
_MAX_BYTES = 128_000_000


def make_provider(section: ComfyUISettings) -> ComfyUI:
    """Return the provider, which has not read its folder yet."""
    fleet = make_fleet(section)
    return ComfyUI(
        fleet,
        Path(section.workflows),
        # The operator's own machines bill nothing, and a job that exists is found by its id.
        traits=Traits(max_concurrency=len(fleet.machines), idempotent_submit=True),
    )


def make_fleet(section: ComfyUISettings) -> Fleet:
    """Return the machines of the settings; raises `SettingsError` for a wrong address."""
    key = str(section.authorization)
    headers = {"Authorization": key} if key else {}
    urls = dict.fromkeys(base_url(url, name="comfyui_urls") for url in section.urls)
    if not urls or any(urlsplit(url).username is not None for url in urls):
        raise SettingsError(
            "GATEWAY_COMFYUI_URLS is one address or more, without a password, which belongs into "
            "GATEWAY_COMFYUI_AUTHORIZATION. Example: GATEWAY_COMFYUI_URLS=http://127.0.0.1:8188"
        )
    return Fleet([Machine.at(url, headers, _MAX_BYTES) for url in urls])
