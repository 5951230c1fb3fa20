"""The wallet as an MCP server over stdio; the only module here that imports the SDK."""

import hashlib
import traceback
from typing import Any, cast

import click
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ElicitResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.version import VERSION
from gateway_buyer.errors import NotBought
from gateway_buyer.terms import format_usdc
from gateway_buyer.wallet.calls import Calls, PersonAsked
from gateway_buyer.wallet.tools import INSTRUCTIONS, list_tools
from gateway_buyer.wallet.wallet import Wallet

# Accepting or declining is the whole answer.
_NO_FIELDS: dict[str, Any] = {"type": "object", "properties": {}}
_Context = ServerRequestContext[Any, Any]
# How long a client may cache the list of tools.
_KEEP = CacheHint(ttl_ms=60_000, scope="private")
# Required since 2026 in every result. The SDK removes it for older clients.
_COMPLETE = {"resultType": "complete"}
_FAILED = {
    "isError": True,
    "content": [
        {
            "type": "text",
            "text": "The wallet failed, and its log has the reason. Repeat a purchase with the "
            "same arguments only: then it is not paid twice.",
        }
    ],
}


def make_server(wallet: Wallet) -> Server[Any]:
    """Return a server with the wallet's tools."""
    calls = Calls(wallet=wallet)

    async def list_all(_: _Context, __: Any) -> dict[str, Any]:
        return _COMPLETE | {"tools": list_tools()}

    async def call(context: _Context, params: CallToolRequestParams) -> dict[str, Any]:
        question = _Question(context, params, wallet)
        try:
            result = await calls.answer(params.name, params.arguments or {}, question.ask)
        except PersonAsked:
            return question.requested()
        except Exception as error:  # noqa: BLE001 - the SDK would send the error's text
            _report(error)
            return _COMPLETE | _FAILED
        if result is None:
            raise MCPError(INVALID_PARAMS, "There is no such tool; tools/list names them.")
        return _COMPLETE | result

    return Server(
        "generation-gateway-wallet",
        version=VERSION,
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": _KEEP, "server/discover": _KEEP},
        on_list_tools=cast(Any, list_all),
        on_call_tool=cast(Any, call),
    )


async def serve(wallet: Wallet) -> None:
    """Serve the wallet's tools over stdin and stdout until stdin ends."""
    server = make_server(wallet)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _report(error: Exception) -> None:
    """Print where an error was raised, without texts and values: they may have the key."""
    stack = "".join(traceback.format_tb(error.__traceback__))
    click.echo(f"{stack}{type(error).__name__}", err=True)


class _Question:
    """The question to the person within one call.

    Since 2026-07-28 the call's result is the question, and the client sends the call again with the
    answer. The name of the question is its hash, so an answer never counts for another price.
    """

    def __init__(self, context: _Context, params: CallToolRequestParams, wallet: Wallet) -> None:
        self._context, self._params, self._wallet = context, params, wallet
        self._asked: dict[str, Any] = {}

    async def ask(self, question: str) -> bool:
        """Return whether the person agrees.

        Raises `NotBought` if the client cannot ask, and `PersonAsked` if it has to be asked first.
        """
        self._check_can_ask()
        if self._context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return await self._ask_now(question)
        name = "pay-" + hashlib.sha256(question.encode()).hexdigest()[:32]
        given = (self._params.input_responses or {}).get(name)
        if isinstance(given, ElicitResult):
            return given.action == "accept"
        form = {"mode": "form", "message": question, "requestedSchema": _NO_FIELDS}
        self._asked = {name: {"method": "elicitation/create", "params": form}}
        raise PersonAsked

    async def _ask_now(self, question: str) -> bool:
        session, number = self._context.session, self._context.request_id
        try:
            answer = await session.elicit_form(question, _NO_FIELDS, number)
        except MCPError:
            raise NotBought("The person could not be asked. Nothing was signed.") from None
        return answer.action == "accept"

    def requested(self) -> dict[str, Any]:
        """Return the call's result that asks the client."""
        return {"resultType": "input_required", "inputRequests": self._asked}

    def _check_can_ask(self) -> None:
        capabilities = self._context.session.client_capabilities
        able = capabilities.elicitation if capabilities is not None else None
        # Before modes existed, the empty object meant forms.
        if able is not None and (able.form is not None or able.url is None):
            return
        limit = format_usdc(self._wallet.limits.ask_above_units)
        raise NotBought(
            f"The price is above {limit} USDC, and this program cannot ask the person. Nothing was "
            "signed. To buy without a question, the person restarts `gateway mcp-wallet` with a "
            "higher --ask-above."
        )
