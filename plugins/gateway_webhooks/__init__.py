"""Webhooks: signed events about buyers' tasks, by Standard Webhooks (docs/webhooks.md).

The core writes an event with the task or refund that it is about. This plugin takes it into a
queue of its own, and delivers it from there.
"""

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import attrs

from gateway import EventReader, hookimpl
from gateway.contracts.parts import Part
from gateway.errors import ValidationError
from gateway.running.gateway import Gateway
from gateway_webhooks import queue
from gateway_webhooks.deliveries import Deliveries, DeliveryTiming
from gateway_webhooks.render import render
from gateway_webhooks.sender import Sender, is_this_machine
from gateway_webhooks.settings import WebhookSettings, mode_of
from gateway_webhooks.signing import CallbackSecrets

__all__ = ["CallbackSecrets", "Deliveries", "DeliveryTiming", "Sender", "is_this_machine"]


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define GATEWAY_WEBHOOKS."""
    register("", WebhookSettings)


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Deliver events, if buyers may name addresses for them."""
    mode = mode_of(gateway.settings)
    if mode == "off":
        return
    is_local = mode == "local"
    deliveries = Deliveries(
        store=gateway.store,
        render=lambda event, task: render(gateway, event, task),
        secrets=CallbackSecrets(gateway.context.derive_secret("webhooks")),
        sender=Sender(is_local=is_local),
        now=gateway.now,
        is_mine=lambda: _delivers(gateway),
    )
    gateway.keep(deliveries)
    register(
        Part(
            name=queue.NAME,
            start=deliveries.start,
            drain=deliveries.close,
            pending=deliveries.find_pending,
            events=EventReader(take=queue.take, only_with_callback=True, on_taken=deliveries.wake),
            callbacks=_Callbacks(deliveries, is_local=is_local),
        )
    )


async def _delivers(gateway: Gateway) -> bool:
    """Whether this node delivers: the leader does, or the first other node if it has webhooks off.

    No node delivers while there is no leader. The limits per payer and host are counted in one
    process, so only one node may deliver.
    """
    if gateway.lifecycle.leads():
        return True
    records = gateway.store.nodes
    nodes = await records.nodes()
    senders = await gateway.store.read(queue.find_nodes)
    leader = next((node.name for node in nodes if node.is_leader), None)
    if leader is None or leader in senders:
        return False
    running = [node.name for node in nodes if node.roles and node.name in senders]
    return running[:1] == [records.name]


@attrs.frozen(eq=False, repr=False)
class _Callbacks:
    """The addresses that buyers may name, and the secrets of their events."""

    _deliveries: Deliveries
    _is_local: bool = attrs.field(kw_only=True)

    @property
    def is_offered(self) -> bool:
        """Whether documents describe `callbackUrl`: only if it may be any https address."""
        return not self._is_local

    def check(self, url: str) -> None:
        """Raise `ValidationError` for an address to which nothing is sent.

        Its name is resolved after the payment only, so that an unpaid request causes no lookup.
        """
        address = urlsplit(url)
        if self._is_local:
            if not is_this_machine(address.hostname or ""):
                raise ValidationError("callbackUrl must lead to this machine, as 127.0.0.1 does.")
        elif address.scheme != "https":
            raise ValidationError("callbackUrl must begin with https://.")

    def secret_of(self, task_id: str) -> str:
        """Return the secret that signs the events of a task."""
        return self._deliveries.secrets.of(task_id)

    async def undelivered(self, task_id: str) -> Sequence[tuple[str, int]]:
        """Return the type, and the failed attempts, of each event that waits for its receiver."""
        return await self._deliveries.queue.undelivered(task_id)
