"""The route of the Model Context Protocol. `gateway_mcp` describes its messages."""

from functools import partial
from typing import Any, cast

from quart import Blueprint, Response, request

from gateway.errors import ValidationError
from gateway.running.gateway import Gateway
from gateway.web.front.answers import Answer, answer_error
from gateway.web.front.current import address, current_gateway
from gateway.web.front.event_stream import held_of
from gateway_mcp import MCP_RULE
from gateway_mcp.envelope import (
    INVALID_REQUEST,
    Refused,
    read_message,
    refusal,
    to_rpc,
)
from gateway_mcp.limits import MESSAGE_BYTES
from gateway_mcp.sdk_server import Incoming, SdkServer
from gateway_mcp.settings import McpSettings

blueprint = Blueprint("mcp", __name__)

MCP_LIMIT = "mcp"


@blueprint.post(MCP_RULE)
@blueprint.post(f"{MCP_RULE}/")
async def exchange() -> Response:
    """Handle one JSON-RPC message."""
    gateway = current_gateway()
    try:
        answer = await _answer(gateway)
    except Refused as refused:
        answer = refused.answer
    except Exception as error:  # noqa: BLE001 - every error becomes a JSON-RPC error
        answer = to_rpc(answer_error(gateway, error, MCP_RULE))
    return answer.to_response()


async def _answer(gateway: Gateway) -> Answer:
    client, received_at = address(), gateway.now()
    await gateway.limits.hit(MCP_LIMIT, client)
    _check_origin(gateway)
    # A large message is a call with a file, and counts as a purchase before it is read.
    is_counted = (request.content_length or 0) > MESSAGE_BYTES
    if is_counted:
        await gateway.limits.hit("x402", client)
    data = cast(bytes, await request.get_data(cache=False, as_text=False))
    if request.mimetype not in ("", "application/json"):
        raise ValidationError("Content-Type must be application/json.")
    if not is_counted and len(data) > MESSAGE_BYTES:
        await gateway.limits.hit("x402", client)
        is_counted = True
    message = await read_message(gateway, data)
    # Otherwise the file would be in memory twice during the settlement.
    del data
    sdk_server = gateway.find(SdkServer)
    pictured = sdk_server.pictured.counted(client)
    incoming = Incoming(
        address=client,
        received_at=received_at,
        file=message.file,
        is_counted=is_counted,
        admit_pictures=partial(held_of(cast(Any, request)).enter_context, pictured),
        admit=cast(Any, request.body).admit,
    )
    return await sdk_server.exchange(gateway, request.scope, message.data, incoming)


def _check_origin(gateway: Gateway) -> None:
    """Raise `Refused` for a page of another origin: it may act without its visitor's knowledge."""
    origin = request.headers.get("Origin")
    allowed = (gateway.settings.base_url.lower(), *gateway.find(McpSettings).mcp_origins)
    if origin is not None and origin not in allowed and "*" not in allowed:
        raise refusal(
            INVALID_REQUEST, "Pages of this origin may not ask /mcp of this gateway.", status=403
        )


def make_blueprint() -> Blueprint:
    """Return the blueprint of the route."""
    return blueprint
