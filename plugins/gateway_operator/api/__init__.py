"""The operator's pages as JSON under `/admin/api/v1`: one module a theme."""

from gateway_operator.api import alarms, copies, endpoints, lists, refunds

MODULES = (
    alarms,
    copies,
    endpoints,
    lists,
    refunds,
)

__all__ = ["MODULES"]
