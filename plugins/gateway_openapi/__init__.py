"""`/openapi.json`: the agents' routes as OpenAPI 3.1."""

from collections.abc import Callable

from gateway import hookimpl
from gateway.contracts.parts import Discovery, Mount, Part

_PATH = "/openapi.json"


@hookimpl
def register_parts(register: Callable[[Part], None]) -> None:
    """Serve the document, to web pages of any origin."""
    blueprint = "gateway_openapi.document:make_blueprint"
    mount = Mount(paths=[_PATH], blueprint=blueprint, is_public=True)
    register(Part(name="openapi", mounts=[mount], discovery=Discovery(openapi=_PATH)))
