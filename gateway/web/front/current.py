"""The gateway of the app that handles the current request."""

from typing import cast

from quart import current_app

from gateway.running.gateway import Gateway

# Keys of `app.extensions`: the `Gateway`, and the error that stopped the start.
EXTENSION = "gateway"
FAILURE = "gateway-failure"


def current_gateway() -> Gateway:
    """Return the gateway of the app that handles the current request."""
    return cast(Gateway, current_app.extensions[EXTENSION])
