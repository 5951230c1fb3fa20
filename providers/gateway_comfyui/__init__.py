"""Workflows of the operator's own ComfyUI: one endpoint for each file of a folder.

On sale once `GATEWAY_COMFYUI_WORKFLOWS` names the folder.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from gateway import Endpoint, Gateway, Part, Provider, Settings, hookimpl
from gateway_comfyui.settings import PREFIX, ComfyUISettings


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
    from gateway_comfyui.assembly import make_provider  # noqa: PLC0415 - only with a folder

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
    from gateway_comfyui.assembly import make_fleet  # noqa: PLC0415 - only with a folder
    from gateway_comfyui.watch import Watch  # noqa: PLC0415

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
        from gateway_comfyui.assembly import make_fleet  # noqa: PLC0415 - only with a folder
        from gateway_comfyui.watch import check_machines  # noqa: PLC0415

        folder = Path(section.workflows)
        register(PREFIX, partial(check_machines, make_fleet(section), folder))
