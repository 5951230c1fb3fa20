"""The operator's pages, one module each, and the JSON API."""

from quart import Blueprint

from gateway_operator import api
from gateway_operator.pages import (
    access,
    alarms,
    books,
    endpoints,
    login,
    overview,
    passkeys,
    payments,
    refunds,
    system,
    tasks,
)
from gateway_operator.pages import files as operator_files
from gateway_operator.pages.frame import blueprint

# Importing a module registers its routes in the blueprint.
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
    refunds,
    system,
    tasks,
)

__all__ = ["MODULES", "make_blueprint"]


def make_blueprint() -> Blueprint:
    """Return the blueprint of pages, API and assets."""
    operators = Blueprint("operators", __name__)
    operators.register_blueprint(blueprint)
    operators.register_blueprint(operator_files.blueprint)
    return operators
