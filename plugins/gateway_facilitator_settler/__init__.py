"""Settlement by an x402 facilitator, which sends the transfer and pays the gas.

The facilitator's response never decides a payment. Its transaction hash is only a hint: the gateway
reads the receipt, or the authorization's event, from the chain as for any other settlement.
"""

from collections.abc import Callable

from gateway import PluginContext, Settler, hookimpl


@hookimpl
def register_settlers(
    register: Callable[[str, Callable[[], Settler]], None], context: PluginContext
) -> None:
    """Offer settlement by the facilitator that `GATEWAY_FACILITATOR_URL` names."""

    def make() -> Settler:
        from gateway_facilitator_settler.settler import FacilitatorSettler  # noqa: PLC0415 - if used

        return FacilitatorSettler(context)

    register("facilitator", make)
