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
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Offer endpoints for sale: call `register(endpoint, provider)` once for each.

    A slug that is already taken raises `ValueError` and the app does not start.
    """


@hookspec
def register_authorization_verifier(
    register: Callable[[AuthorizationVerifier], None], context: PluginContext
) -> None:
    """Take payments that are signed first and settled by us (the X402 flow): one per app."""


@hookspec
def register_transfer_verifier(
    register: Callable[[TransferVerifier], None], context: PluginContext
) -> None:
    """Take payments that are already on-chain (the direct flow): one per app."""


@hookspec
def register_settlers(
    register: Callable[[str, Callable[[], Settler]], None], context: PluginContext
) -> None:
    """Offer ways to settle: call `register(name, factory)`; `GATEWAY_SETTLEMENT` picks one.

    The factory may raise `SettingsError` and is called only when it is picked.
    """
