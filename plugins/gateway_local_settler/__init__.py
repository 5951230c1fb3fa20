"""Settlement by the gateway's own keys, which send `transferWithAuthorization` and pay the gas."""

from collections.abc import Callable

from gateway import PluginContext, Settler, hookimpl
from gateway_local_settler.settler import LocalSettler

__all__ = ["LocalSettler"]


@hookimpl
def register_settlers(
    register: Callable[[str, Callable[[], Settler]], None], context: PluginContext
) -> None:
    """Offer settlement by the gateway's own keys."""
    register("local", lambda: LocalSettler(context))
