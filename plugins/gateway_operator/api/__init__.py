"""The JSON API under `/admin/api/v1`, a module per subject."""

from gateway_operator.api import alarms, endpoints, lists, refunds

MODULES = (
    alarms,
    endpoints,
    lists,
    refunds,
)

__all__ = ["MODULES"]
