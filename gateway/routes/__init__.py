"""The HTTP side: each module is one blueprint, each function one route."""

from quart import Quart

from gateway.routes import admin, discovery, errors, files, generate, headers, health, tasks


def register(app: Quart) -> None:
    """Put every route, error handler and header on the app."""
    for module in (generate, tasks, files, discovery, health, admin):
        app.register_blueprint(module.blueprint)
    errors.register(app)
    headers.register(app)
