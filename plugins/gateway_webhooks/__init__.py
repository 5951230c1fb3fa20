"""Webhooks: tells buyers how their tasks end, signed by Standard Webhooks (docs/webhooks.md).

Tasks and refunds write events into the store's queue. This package delivers them.
"""

from gateway.vendors.signing import CallbackSecrets
from gateway_webhooks.deliveries import Deliveries, DeliveryTiming, Render
from gateway_webhooks.sender import Sender, is_this_machine

__all__ = [
    "CallbackSecrets",
    "Deliveries",
    "DeliveryTiming",
    "Render",
    "Sender",
    "is_this_machine",
]
