"""The operator's pages and their JSON: one module a page."""

from pathlib import Path

from quart import Quart

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
    ready,
    refunds,
    system,
    tasks,
)
from gateway_operator.pages import files as operator_files
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.page import ASSETS, OperatorAssets

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

__all__ = ["MODULES", "register"]


def register(app: Quart, folder: Path) -> None:
    """Put the pages into the app; `folder` has their templates, stylesheet and scripts."""
    app.extensions[ASSETS] = OperatorAssets(folder)
    app.register_blueprint(blueprint)
    app.register_blueprint(operator_files.blueprint)
