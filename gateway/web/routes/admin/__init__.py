"""The operator's pages and their JSON: one module a page."""

from gateway.web.routes.admin import (
    access,
    alarms,
    api,
    books,
    endpoints,
    login,
    overview,
    passkeys,
    payments,
    ready,
    refunds,
    system,
    tasks,
)
from gateway.web.routes.admin.frame import blueprint

# Importing a module puts its routes into the blueprint.
MODULES = (
    access,
    alarms,
    *api.MODULES,
    books,
    endpoints,
    login,
    overview,
    passkeys,
    payments,
    ready,
    refunds,
    system,
    tasks,
)

__all__ = ["MODULES", "blueprint"]
