"""Any HTTP API of the operator's own, on sale by one TOML file: no code.

On sale once `GATEWAY_HTTP_ENDPOINTS` names a folder of such files (docs/http-endpoints.md).
"""

from collections.abc import Callable

import attrs

from gateway import Capability, Endpoint, Provider, Settings, SettingsError, hookimpl, setting


@attrs.frozen(kw_only=True)
class HttpSettings:
    """The operator's settings."""

    endpoints: str = setting(
        "",
        "Folder of HTTP APIs on sale, one file NAME.toml each "
        "([http-endpoints.md](http-endpoints.md)).",
        example="endpoints",
        switches_on=True,
    )


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the setting `GATEWAY_HTTP_ENDPOINTS`."""
    register("http", HttpSettings)


@hookimpl
def register_capabilities(register: Callable[[Capability], None], settings: Settings) -> None:
    """Declare the capabilities that files declare themselves."""
    if not (folder := settings.section("http", HttpSettings).endpoints):
        return
    from gateway_http.files import read_folder  # noqa: PLC0415 - only with a folder

    found = read_folder(folder)
    if any(one.declares for one in found.values()):
        from gateway_http.capabilities import declared_in  # noqa: PLC0415 - few files do

        for capability in declared_in(found):
            register(capability)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Register an endpoint for each file."""
    if not (folder := settings.section("http", HttpSettings).endpoints):
        return
    from gateway_http.api import make_provider  # noqa: PLC0415 - only with a folder
    from gateway_http.files import read_folder  # noqa: PLC0415
    from gateway_http.offers import make_endpoint  # noqa: PLC0415

    for slug, about in read_folder(folder).items():
        try:
            register(make_endpoint(slug, about), make_provider(slug, about))
        except (ValueError, SettingsError) as error:
            raise SettingsError(f"{slug}.toml is not right: {error}.") from None


reload_endpoints = register_endpoints
