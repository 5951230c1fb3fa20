"""A wallet of a test, and the official client of MCP that calls it."""

import contextlib
import json

import attrs
from mcp import Client
from mcp_types import ElicitResult

from gateway_buyer.purchase import Buyer, Timing
from gateway_buyer.records import Records
from gateway_buyer.wallet.allowance import Allowance
from gateway_buyer.wallet.server import make_server
from gateway_buyer.wallet.wallet import HINTS, Limits, Wallet

SECRET = b"\x11" * 32
# The client's modes: the newest revision, and the one with a handshake.
MODES = ["auto", "legacy"]


def make_wallet(
    folder, *, secret=SECRET, most=100_000, per_day=1_000_000, ask_above=50_000, **more
):
    """Return a wallet whose state is below a folder."""
    (folder / "files").mkdir(parents=True, exist_ok=True)
    timing = Timing(pauses_s=(0.01, 0.01), poll_s=0.01)
    records = Records(folder / "purchases")
    return Wallet(
        secret=secret,
        limits=Limits(per_purchase_units=most, ask_above_units=ask_above),
        allowance=Allowance(file=folder / "wallet.sqlite3", per_day_units=per_day),
        buyer=Buyer(records=records, report=lambda _: None, timing=timing, hints=HINTS),
        folder=folder / "files",
        **more,
    )


@attrs.define
class Person:
    """Answers questions, and remembers them."""

    action: str = "accept"
    before: object = lambda: None
    questions: list[str] = attrs.field(factory=list)

    async def answer(self, _, params):
        self.questions.append(params.message)
        self.before()
        return ElicitResult(action=self.action, content={} if self.action == "accept" else None)


@attrs.frozen
class Agent:
    """A model with the wallet's tools."""

    client: Client

    async def call(self, tool, **arguments):
        """Return the whole result of a call."""
        return await self.client.call_tool(tool, arguments)

    async def ask(self, tool, **arguments):
        """Return the facts of a call that succeeds."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, result.content
        assert json.loads(result.content[0].text) == result.structured_content
        return result.structured_content

    async def fail(self, tool, **arguments):
        """Return the text of a call that fails."""
        result = await self.call(tool, **arguments)
        assert result.is_error, result.content
        return result.content[0].text


@contextlib.asynccontextmanager
async def connected(wallet, mode="auto", person=None):
    """Yield an agent that is connected to a wallet; without a person its client cannot ask."""
    asks = {} if person is None else {"elicitation_callback": person.answer}
    async with Client(make_server(wallet), mode=mode, **asks) as client:
        yield Agent(client)
