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

_HOOK = "reload_endpoints"


def ask_again(
    manager: PluginManager, settings: Settings, capabilities: Mapping[str, Capability]
) -> Callable[[], list[OfferedAgain]]:
    """Return a function that asks the plugins for their endpoints; it reads files.

    `capabilities` are those of plugins by name.
    """

    def ask() -> list[OfferedAgain]:
        return [_ask_one(one, settings, capabilities) for one in manager.implementations(_HOOK)]

    return ask


def _ask_one(
    implementation: pluggy.HookImpl, settings: Settings, capabilities: Mapping[str, Capability]
) -> OfferedAgain:
    name = implementation.plugin_name
    offers = Offers(partial(endpoint_offer, capabilities=capabilities))
    given = {"register": offers.register, "settings": settings}
    problem = None
    try:
        implementation.function(*(given[each] for each in implementation.argnames))
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        problem = error
    except SystemExit as error:
        problem = SettingsError(f"it ends the process: {text_of(error)}")
    return OfferedAgain(plugin=name, offers=list(offers.taken.values()), problem=problem)
