"""The HTTP side: each module is one blueprint, each function one route."""

from quart import Quart

from gateway.web import error_answers as errors
from gateway.web import headers
from gateway.web.routes import admin, discovery, files, generate, health, tasks


def register(app: Quart) -> None:
    """Put every route, error handler and header on the app."""
    for module in (generate, tasks, files, discovery, health, admin):
        app.register_blueprint(module.blueprint)
    errors.register(app)
    headers.register(app)
