"""The JSON API under `/admin/api/v1`, a module per subject."""

from gateway_operator.api import alarms, copies, endpoints, lists, refunds

MODULES = (
    alarms,
    copies,
    endpoints,
    lists,
    refunds,
)

__all__ = ["MODULES"]
