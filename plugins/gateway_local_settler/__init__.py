"""Settlement by the gateway's own keys, which send `transferWithAuthorization` and pay the gas."""

from collections.abc import Callable

from gateway import Gateway, Part, PluginContext, Settler, hookimpl
from gateway_local_settler.settler import LocalSettler

__all__ = ["LocalSettler"]


@hookimpl
def register_settlers(
    register: Callable[[str, Callable[[], Settler]], None], context: PluginContext
) -> None:
    """Offer settlement by the gateway's own keys."""
    register("local", lambda: LocalSettler(context))


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Report to the operator when payments wait for the keys."""
    settler = gateway.settlements.settler
    if isinstance(settler, LocalSettler):
        register(Part(name="settlement-keys", conditions=settler.find_conditions))
