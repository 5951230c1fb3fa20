"""The operator's pages as JSON under `/admin/api/v1`: one module a theme."""

from gateway_operator.api import alarms, audit, books, copies, endpoints, lists, overview, refunds

MODULES = (
    alarms,
    audit,
    books,
    copies,
    endpoints,
    lists,
    overview,
    refunds,
)

__all__ = ["MODULES"]
