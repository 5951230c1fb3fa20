"""The server of the official MCP SDK; the only module that imports the SDK.

It serves both eras of the protocol, stateless: 2026-07-28 without a handshake, and 2025-11-25 and
earlier.
"""

from collections.abc import Mapping
from typing import Any, cast

from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    PaginatedRequestParams,
    RequestParams,
)
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from gateway.errors import NotFound, TooManyRequests
from gateway.running.gateway import Gateway
from gateway.version import VERSION
from gateway.web.routes.tasks import TASK_LIMIT
from gateway_mcp.calls import ToolCall, answer_call
from gateway_mcp.envelope import NOT_NOW
from gateway_mcp.limits import MESSAGE_BYTES
from gateway_mcp.revisions import convert
from gateway_mcp.sdk_server import INCOMING, Incoming
from gateway_mcp.task_handles import TASKS, show_handle, takes_tasks
from gateway_mcp.tools import list_tools

_INSTRUCTIONS = (
    "Each tool but get_task is paid by x402 with USDC, per call and without an account. A call "
    "without a payment costs nothing and answers isError with the price; call again with the "
    "payment in _meta, under x402/payment. A paid call answers with the result, or with a taskId "
    "for get_task."
)
REVISIONS = KNOWN_PROTOCOL_VERSIONS
# How long a client may cache the list of tools.
_KEEP = CacheHint(ttl_ms=60_000, scope="public")
# Required since 2026 in every result that is not a task. The SDK removes it for older clients.
_COMPLETE = {"resultType": "complete"}
_Context = ServerRequestContext[Any, Any]


class _TaskParams(RequestParams):
    """Parameters of the methods of the tasks extension."""

    task_id: str


def make_manager(gateway: Gateway) -> StreamableHTTPSessionManager:
    """Return the SDK's manager for a server with the gateway's tools."""
    tools = _Tools(gateway)
    server: Server[Any] = Server(
        gateway.settings.name,
        version=VERSION,
        instructions=_instruct(gateway),
        website_url=gateway.settings.base_url,
        cache_hints={"tools/list": _KEEP, "server/discover": _KEEP},
        # No tool declares headers of its own.
        get_tool_input_schema=lambda _: None,
        on_list_tools=cast(Any, tools.list),
        on_call_tool=cast(Any, tools.call),
    )
    server.add_request_handler("tasks/get", _TaskParams, tools.get_task)
    server.add_request_handler("tasks/cancel", _TaskParams, tools.cancel_task)
    server.add_request_handler("tasks/update", _TaskParams, tools.update_task)
    server.extensions[TASKS] = {}
    # The SDK's own middleware exports traces, which are not used here.
    server.middleware[:] = [cast(Any, tools.finish)]
    return StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=MESSAGE_BYTES
    )


def _instruct(gateway: Gateway) -> str:
    """Return the server's instructions for a model."""
    refund, notice = gateway.refund_promise().sentence, gateway.settings.chain.notice
    return " ".join(filter(None, (_INSTRUCTIONS, refund, notice)))


class _Tools:
    """The handlers of the server's methods. They return the wire's dictionaries."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def finish(self, context: _Context, call_next: Any) -> Any:
        """Bring a result up to date, and convert it to the client's revision.

        This is the revision in the request, or the one that `initialize` returns.
        """
        result = await call_next(context)
        if not isinstance(result, dict):
            return result
        if "instructions" in result:
            # The refund promise may have changed since the server's start.
            result = {**result, "instructions": _instruct(self._gateway)}
        revision = result.get("protocolVersion", context.protocol_version)
        return convert(revision, context.method, result)

    async def list(self, _: _Context, __: PaginatedRequestParams | None) -> dict[str, Any]:
        """Handle `tools/list`."""
        catalog, network = self._gateway.catalog, self._gateway.settings.chain
        tools = catalog.cached("mcp-tools", lambda: list_tools(catalog, network))
        return _COMPLETE | {"tools": tools}

    async def call(self, context: _Context, params: CallToolRequestParams) -> dict[str, Any]:
        """Handle `tools/call`."""
        meta = _meta_of(context)
        call = ToolCall(
            name=params.name,
            arguments=params.arguments or {},
            meta=meta,
            takes_tasks=_is_modern(context) and takes_tasks(meta),
            incoming=_incoming_of(context),
        )
        result = await answer_call(self._gateway, call)
        if result is None:
            raise MCPError(INVALID_PARAMS, "There is no such tool; tools/list names them.")
        return _COMPLETE | result

    async def get_task(self, context: _Context, params: _TaskParams) -> dict[str, Any]:
        """Handle `tasks/get`."""
        _require_modern(context)
        incoming = _incoming_of(context)
        try:
            await self._gateway.limits.hit(TASK_LIMIT, incoming.address)
            return await show_handle(self._gateway, params.task_id, incoming)
        except NotFound as error:
            raise MCPError(INVALID_PARAMS, error.message) from None
        except TooManyRequests as error:
            raise MCPError(NOT_NOW, error.message) from None

    async def cancel_task(self, context: _Context, _: _TaskParams) -> dict[str, Any]:
        """Accept `tasks/cancel` and ignore it, as the extension allows: a paid task is finished."""
        _require_modern(context)
        return {}

    async def update_task(self, context: _Context, _: _TaskParams) -> dict[str, Any]:
        """Refuse `tasks/update`: no task here asks for input."""
        _require_modern(context)
        raise MCPError(INVALID_PARAMS, "The task asks for no input.")


def _meta_of(context: _Context) -> Mapping[str, Any]:
    meta = (context.params or {}).get("_meta")
    return meta if isinstance(meta, dict) else {}


def _incoming_of(context: _Context) -> Incoming:
    return cast(Incoming, cast(Any, context.request).scope[INCOMING])


def _is_modern(context: _Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _require_modern(context: _Context) -> None:
    """Raise `MCPError` for protocols before 2026-07-28, which have no tasks extension."""
    if not _is_modern(context):
        raise MCPError(METHOD_NOT_FOUND, "Method not found")
