"""`POST /mcp`: the offers as tools of the Model Context Protocol.

Only `server.py` imports the official SDK, at the first message: the import takes 0.64 s of CPU time
and 26 MB.
"""

import importlib.util
from collections.abc import Callable

from gateway import hookimpl
from gateway.contracts.parts import Discovery, Mount, Part
from gateway.running.gateway import Gateway
from gateway.settings import Settings
from gateway_mcp.limits import FILE_MESSAGE_BYTES, MESSAGE_BYTES
from gateway_mcp.settings import McpSettings

MCP_RULE = "/mcp"


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define GATEWAY_MCP, GATEWAY_MCP_ORIGINS and GATEWAY_LIMIT_MCP."""
    register("", McpSettings)


@hookimpl
def register_parts(register: Callable[[Part], None], gateway: Gateway) -> None:
    """Serve `/mcp`, unless it is switched off or the SDK is missing."""
    if not serves_mcp(gateway.settings):
        return
    from gateway_mcp.sdk_server import SdkServer  # noqa: PLC0415 - others do not need it

    sdk_server = SdkServer()
    gateway.keep(sdk_server)
    settings = gateway.settings.section("", McpSettings)
    gateway.keep(settings)
    gateway.limits.add("mcp", settings.limit_mcp)
    catalog = gateway.catalog

    def most_bytes() -> int:
        # A reload may add the first endpoint that takes files.
        takes_files = any(one.endpoint.takes_file for one in catalog.everything())
        return FILE_MESSAGE_BYTES if takes_files else MESSAGE_BYTES

    register(
        Part(
            name="mcp",
            close=sdk_server.close,
            mounts=[
                Mount(
                    paths=[MCP_RULE, f"{MCP_RULE}/"],
                    blueprint="gateway_mcp.routes:make_blueprint",
                    body_bytes=lambda: catalog.cached("mcp-bytes", most_bytes),
                    is_public=True,
                )
            ],
            discovery=Discovery(
                manifest={"mcp": MCP_RULE},
                services={"MCP": MCP_RULE},
                guide={MCP_RULE: "the endpoints as tools of an MCP server"},
            ),
        )
    )


def serves_mcp(settings: Settings) -> bool:
    """Whether `/mcp` is served: it is not switched off, and the extra `mcp` is installed.

    SDK versions before 2.0 cannot be used here; they have no `mcp_types`.
    """
    is_on = settings.section("", McpSettings).mcp
    return is_on and all(map(importlib.util.find_spec, ("mcp", "mcp_types")))
