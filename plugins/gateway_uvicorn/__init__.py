"""uvicorn, the faster HTTP server: `GATEWAY_SERVER=uvicorn`, extra `fast`."""

import importlib.util
from typing import TYPE_CHECKING

from gateway.errors import SettingsError

if TYPE_CHECKING:
    from gateway.settings import Settings
    from gateway.web.server.serve import Run


def open_server(settings: "Settings") -> "Run":  # noqa: ARG001 - other servers may have settings
    """Return the function that serves by uvicorn; raises `SettingsError` without the extra."""
    needed = ("uvicorn", "httptools")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise SettingsError(
            f"GATEWAY_SERVER is uvicorn, but {' and '.join(missing)} cannot be found: "
            "run pip install 'generation-gateway[fast]', or set GATEWAY_SERVER=hypercorn."
        )
    from gateway_uvicorn.server import run  # noqa: PLC0415 - uvicorn costs memory

    return run
