"""Workflows of the operator's own ComfyUI: one endpoint for each file of a folder.

On sale once `GATEWAY_COMFYUI_WORKFLOWS` names the folder.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from gateway import Endpoint, Gateway, Part, Provider, Settings, SettingsError, Traits, hookimpl
from gateway.vendors import base_url
from gateway_comfyui.fleet import Fleet
from gateway_comfyui.machine import Machine
from gateway_comfyui.provider import ComfyUI
from gateway_comfyui.settings import PREFIX, ComfyUISettings
from gateway_comfyui.watch import Watch, check_machines

# Of one answer. The gateway sells no larger result.
_MAX_BYTES = 128_000_000


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register(PREFIX, ComfyUISettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put every workflow of the folder on sale."""
    section = settings.section(PREFIX, ComfyUISettings)
    if not section.workflows:
        return
    provider = make_provider(section)
    for endpoint in provider.read_folder():
        register(endpoint, provider)


# For `gateway reload`.
reload_endpoints = register_endpoints


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Show the machines on the operator's pages."""
    section = gateway.settings.section(PREFIX, ComfyUISettings)
    if not section.workflows:
        return
    watch = Watch(make_fleet(section), Path(section.workflows))
    register(
        Part(
            name=PREFIX,
            warm=watch.inspect,
            work=watch.inspect,
            close=watch.fleet.close,
            conditions=watch.conditions,
        )
    )


@hookimpl
def register_check_rows(
    register: Callable[[str, Callable[[], Awaitable[str]]], None], settings: Settings
) -> None:
    """Add the machines to `gateway check`."""
    section = settings.section(PREFIX, ComfyUISettings)
    if section.workflows:
        folder = Path(section.workflows)
        register(PREFIX, partial(check_machines, make_fleet(section), folder))


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
