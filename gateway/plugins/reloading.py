"""Asks the plugins for their endpoints again, for `gateway reload`."""

from collections.abc import Callable, Mapping
from functools import partial

import pluggy

from gateway.catalog.reloads import OfferedAgain
from gateway.domain import Capability
from gateway.errors import SettingsError, text_of
from gateway.plugins.manager import PluginManager
from gateway.plugins.registration import Offers, endpoint_offer
from gateway.settings import Settings

_HOOK, _CAPABILITIES = "reload_endpoints", "register_capabilities"


def ask_again(
    manager: PluginManager, settings: Settings, capabilities: Mapping[str, Capability]
) -> Callable[[], list[OfferedAgain]]:
    """Return a function that asks the plugins for their endpoints; it reads files.

    `capabilities` are those of plugins by name.
    """

    def ask() -> list[OfferedAgain]:
        declaring = {one.plugin_name: one for one in manager.implementations(_CAPABILITIES)}
        return [
            _ask_one(one, declaring.get(one.plugin_name), settings, capabilities)
            for one in manager.implementations(_HOOK)
        ]

    return ask


def _ask_one(
    implementation: pluggy.HookImpl,
    declaring: pluggy.HookImpl | None,
    settings: Settings,
    capabilities: Mapping[str, Capability],
) -> OfferedAgain:
    name = implementation.plugin_name
    offers = Offers(partial(endpoint_offer, capabilities=capabilities))
    problem = None
    try:
        if declaring is not None:
            _call(declaring, partial(_refuse_change, capabilities), settings)
        _call(implementation, offers.register, settings)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        problem = error
    except SystemExit as error:
        problem = SettingsError(f"it ends the process: {text_of(error)}")
    return OfferedAgain(plugin=name, offers=list(offers.taken.values()), problem=problem)


def _call(hook: pluggy.HookImpl, register: Callable[..., None], settings: Settings) -> None:
    given = {"register": register, "settings": settings}
    hook.function(*(given[each] for each in hook.argnames))


def _refuse_change(known: Mapping[str, Capability], capability: Capability) -> None:
    """Raise `SettingsError` for a capability that is declared in another way than at the start.

    Endpoints and paid tasks have that one. A new capability takes effect at the next start.
    """
    if known.get(capability.name, capability) != capability:
        raise SettingsError(
            f"the capability {capability.name} is declared in another way than at the start. Give "
            "the new one another name, or restart"
        )
