"""Every hook a plugin may implement.

A plugin is a module or package with functions marked `@gateway.hookimpl`, published under an
entry point of group `gateway`.
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
    """Name settings of your own: `register("acme", AcmeSettings)`, a frozen attrs class.

    Its fields are made with `gateway.setting` and `gateway.secret`. Field `api_key` is read from
    `GATEWAY_ACME_API_KEY`, or `acme_api_key` in the file; `settings.section("acme", AcmeSettings)`
    returns them. A field that nothing is sold without has `switches_on=True`, so that
    `gateway plugins` names it where it is not set; without such a field, the secrets are named.
    """


@hookspec
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Offer endpoints for sale: call `register(endpoint, provider)` once for each.

    `register` raises `ValueError` for an endpoint or a provider that cannot be right. A plugin that
    raises is left out, whatever it has registered before, and the gateway starts without it; so is
    a plugin with a slug that another one sells: bundled plugins come first, then the others by
    name. A `SettingsError` about what the operator has set stops the start.
    """


@hookspec
def register_authorization_verifier(
    register: Callable[[AuthorizationVerifier], None], context: PluginContext
) -> None:
    """Take payments that are signed first and settled by us (the X402 flow): one per app.

    A second plugin that registers one is left out.
    """


@hookspec
def register_transfer_verifier(
    register: Callable[[TransferVerifier], None], context: PluginContext
) -> None:
    """Take payments that are already on-chain (the direct flow): one per app.

    A second plugin that registers one is left out.
    """


@hookspec
def register_settlers(
    register: Callable[[str, Callable[[], Settler]], None], context: PluginContext
) -> None:
    """Offer ways to settle: call `register(name, factory)`; `GATEWAY_SETTLEMENT` picks one.

    The factory may raise `SettingsError` and is called only when it is picked. A plugin that
    offers a name which another one has is left out.
    """
