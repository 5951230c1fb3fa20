"""Every hook that a plugin may implement.

A plugin is a module or package with functions that are marked `@gateway.hookimpl`. Its distribution
names it in an entry point of the group `gateway`.
"""

from collections.abc import Callable

import pluggy

from gateway.contracts import (
    AuthorizationVerifier,
    PluginContext,
    Provider,
    Settler,
    TransferVerifier,
)
from gateway.domain import Endpoint
from gateway.settings import Settings

PROJECT = "gateway"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define settings of the plugin: call `register("acme", AcmeSettings)`, a frozen attrs class.

    Make its fields with `gateway.setting` and `gateway.secret`. Field `api_key` is read from the
    variable `GATEWAY_ACME_API_KEY`, or from `acme_api_key` in the file. The call
    `settings.section("acme", AcmeSettings)` returns the values. Give `switches_on=True` to a field
    without which the plugin sells nothing: `gateway plugins` names it while it is not set. In a
    class without such a field, `gateway plugins` names the secrets.
    """


@hookspec
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Offer endpoints for sale: call `register(endpoint, provider)` once for each endpoint.

    `register` raises `ValueError` for an endpoint or a provider with a mistake. The gateway leaves
    out a plugin that raises, with all that it has registered before, and starts without it. It also
    leaves out a plugin with a slug that another plugin sells: bundled plugins come first, then the
    others by name. A `SettingsError` about a value that the operator has set stops the start.
    """


@hookspec
def register_authorization_verifier(
    register: Callable[[AuthorizationVerifier], None], context: PluginContext
) -> None:
    """Accept payments that the buyer signs and the gateway settles (the X402 flow): one per app.

    The gateway leaves out a second plugin that registers a verifier.
    """


@hookspec
def register_transfer_verifier(
    register: Callable[[TransferVerifier], None], context: PluginContext
) -> None:
    """Accept payments that are already on-chain (the direct flow): one per app.

    The gateway leaves out a second plugin that registers a verifier.
    """


@hookspec
def register_settlers(
    register: Callable[[str, Callable[[], Settler]], None], context: PluginContext
) -> None:
    """Offer ways to settle: call `register(name, factory)`; `GATEWAY_SETTLEMENT` names one of them.

    The gateway calls only the factory that is named; it may raise `SettingsError`. The gateway
    leaves out a plugin whose settler has a name that another plugin has taken.
    """
