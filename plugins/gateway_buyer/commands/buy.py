"""The command `gateway buy`; the purchase itself is in `gateway_buyer`."""

import asyncio
import base64
import json
import re
import secrets
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import click

from gateway.chain.keys import address_of
from gateway.cli.terminal import FiniteRange, blank_control_chars
from gateway.domain import MAX_FILE_BYTES, usdc
from gateway.domain.eip3009 import checksum_address
from gateway_buyer.answers import Task, shorten
from gateway_buyer.client import is_loopback
from gateway_buyer.errors import BuyError, NotBought
from gateway_buyer.files import SLUG, Destination
from gateway_buyer.key import check_source, read_key
from gateway_buyer.purchase import Buyer, Order
from gateway_buyer.records import Record, Records, default_folder
from gateway_buyer.terms import Terms, format_usdc

# The exit code of a program ended by Ctrl-C.
_INTERRUPTED = 130
_TASK_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_HEADER_VALUE = re.compile(r"[!-~]{1,255}")
_LABEL = 12  # columns
_COLUMNS = 79


@attrs.frozen(kw_only=True)
class _Options:
    slug: str | None
    prompt: str | None
    task: str | None
    url: str
    key: str | None
    password: str | None
    max_units: int
    aspect_ratio: str | None
    output_format: str | None
    resolution: str | None
    file: Path | None
    out: Path
    force: bool
    idempotency_key: str | None
    yes: bool
    wait: float
    as_json: bool


def _read_url(_: click.Context, __: click.Parameter, url: str) -> str:
    """Return a URL without a trailing slash; raises `click.BadParameter`."""
    url = url.rstrip("/")
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole or parts.query or parts.fragment or parts.username is not None:
        raise click.BadParameter("give a URL such as https://gateway.example.com")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
        raise click.BadParameter("the URL must begin with https://, except on this machine")
    return url


def _read_amount(_: click.Context, __: click.Parameter, amount: str) -> int:
    try:
        return usdc(amount)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


def _read_source(_: click.Context, __: click.Parameter, source: str | None) -> str | None:
    if source is not None:
        check_source(source)
    return source


def _matching(pattern: re.Pattern[str], what: str) -> Any:
    """Return a callback that rejects values that do not match."""

    def check(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        if value is not None and not pattern.fullmatch(value):
            raise click.BadParameter(what)
        return value

    return check


@click.command(
    epilog="Exit codes: 0 saved; 1 not bought; 2 a mistake in the command; 3 paid, and the "
    "generation failed; 4 unfinished, continue with the printed command; 130 ended by Ctrl-C."
)
@click.argument("slug", required=False, callback=_matching(SLUG, "a slug is such as my-model"))
@click.argument("prompt", required=False)
@click.option("--url", required=True, callback=_read_url, help="The gateway's URL.")
@click.option(
    "--key",
    callback=_read_source,
    help="A file with the private key, a keystore, env:NAME for a variable, or demo for the "
    "play money of `gateway demo`. Without it the command asks.",
)
@click.option("--password", help="env:NAME: the variable with the keystore's password.")
@click.option(
    "--max",
    "max_units",
    default="0.10",
    show_default=True,
    callback=_read_amount,
    help="The highest price to pay, in USDC.",
)
@click.option("--aspect-ratio", help="Such as 16:9.")
@click.option("--format", "output_format", help="Such as png, jpg, webp or json.")
@click.option("--resolution", help="Such as 1K or 2K.")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="A picture or a document.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path(),
    help="A folder, or a name for the file.  [default: this folder]",
)
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@click.option(
    "--idempotency-key",
    callback=_matching(_HEADER_VALUE, "a key is 1 to 255 characters without spaces"),
    help="Names this purchase: the same key and request continue it without paying "
    "twice.  [default: random, printed]",
)
@click.option("--yes", is_flag=True, help="Pay up to --max without asking.")
@click.option(
    "--wait",
    type=FiniteRange(0, 86_400),
    default=1800.0,
    show_default=True,
    help="How many seconds to wait for the result.",
)
@click.option(
    "--task",
    callback=_matching(_TASK_ID, "a task's id is such as 6f1c2f5e-9d0b-4c57-8f0e-3d1a5b7c9e21"),
    help="Buy nothing: wait for this task and save its result.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON.")
def buy(**given: Any) -> None:
    """Buy a generation from a gateway and save it.

    The gateway names its price. It is paid in USDC by x402 if it is not above --max. On a terminal
    the command asks before it signs. Each signed payment is stored below
    ~/.local/state/generation-gateway before it is sent.
    """
    sys.exit(_Purchase(_Options(**given)).run())


@attrs.define
class _Purchase:
    """One run of the command, and its progress."""

    options: _Options
    order: Order | None = None
    record: Record | None = None
    task: Task | None = None
    paths: list[Path] = attrs.field(factory=list)

    def run(self) -> int:
        """Buy, wait and save; return the exit code."""
        self.order = _read_order(self.options)
        try:
            self._buy_and_save()
        except BuyError as error:
            return self._fail(str(error), error.exit_code)
        except (KeyboardInterrupt, click.Abort):
            return self._fail("Ended by Ctrl-C.", _INTERRUPTED)
        self._print_receipt()
        return 0

    def _buy_and_save(self) -> None:
        options = self.options
        destination = Destination(path=options.out, may_overwrite=options.force)
        destination.check()
        buyer = Buyer(records=Records(default_folder()), report=_echo)
        task_id = options.task
        if self.order is not None:
            task_id = self._pay(buyer, self.order)
        assert task_id is not None  # noqa: S101 - `_read_order` has checked it
        self.task = asyncio.run(buyer.follow(options.url, task_id, timeout_s=options.wait))
        self.paths = asyncio.run(buyer.save(options.url, self.task, destination))

    def _pay(self, buyer: Buyer, order: Order) -> str:
        """Return the task that this run, or an earlier one with this key, has bought."""
        self.record = buyer.find(order)
        if self.record is None:
            terms = asyncio.run(buyer.ask_price(order, self.options.max_units))
            secret = read_key(
                self.options.key, self.options.password, is_local=is_loopback(order.url)
            )
            self._confirm(terms, checksum_address(address_of(secret)))
            self.record = buyer.sign(order, terms, secret)
            _echo(f"Signed. To continue a cut-off purchase:\n  --idempotency-key {order.key}")
        self.record = asyncio.run(buyer.pay(order, self.record))
        _echo(f"Paid. The task is {self.record.task_id}.")
        return str(self.record.task_id)

    def _confirm(self, terms: Terms, payer: str) -> None:
        """Show the terms, and ask on a terminal. Raises `NotBought` if the buyer declines."""
        _echo(f"Price  {format_usdc(terms.price_units)} USDC on {terms.network.name}")
        _echo(f"To     {terms.payee}")
        _echo(f"From   {payer}")
        if terms.is_upfront:
            terms_in_words = (
                f"The price is charged first; then the gateway generates. {terms.refund}"
            )
            _echo(click.wrap_text(terms_in_words, _COLUMNS))
        is_asked = sys.stdin.isatty() and not self.options.yes
        if is_asked and not click.confirm("Pay?", err=True):
            raise NotBought("Nothing was signed.")

    def _fail(self, sentence: str, code: int) -> int:
        """Print why the run ends and how to continue, and return the exit code."""
        next_step = self._describe_next_step() if code in (4, _INTERRUPTED) else None
        _echo(f"gateway: {sentence}")
        if next_step is not None:
            _echo(next_step)
        if self.options.as_json:
            self._print_json({"error": sentence, "exitCode": code, "continue": next_step})
        return code

    def _describe_next_step(self) -> str:
        task_id = self.options.task or (self.record and self.record.task_id)
        if task_id:
            return f"To continue: gateway buy --task {task_id} --url {self.options.url}"
        if self.record is not None:
            return (
                "To continue without paying twice, run the same command with\n"
                f"--idempotency-key {self.record.key}"
            )
        return "Nothing was signed."

    def _print_receipt(self) -> None:
        if self.options.as_json:
            self._print_json({})
            return
        facts = [("file", str(path)) for path in self.paths]
        if self.record is not None:
            price = format_usdc(self.record.price_units)
            facts.append(("paid", f"{price} USDC on {self.record.network}"))
            facts.append(("to", self.record.payee))
        facts += [("transaction", self._transaction or "none yet"), ("task", self._task_id or "")]
        for label, value in facts:
            click.echo(f"{label.ljust(_LABEL)}{blank_control_chars(value)}")

    def _print_json(self, ending: dict[str, Any]) -> None:
        record, task = self.record, self.task
        receipt: dict[str, Any] = {
            "status": task.status if task is not None else None,
            "taskId": self._task_id,
            "files": [str(path) for path in self.paths],
            "transaction": self._transaction,
        }
        if record is not None:
            receipt |= {
                "amount": format_usdc(record.price_units),
                "network": record.network,
                "payTo": record.payee,
                "idempotencyKey": record.key,
            }
        click.echo(json.dumps(receipt | ending, indent=2))

    @property
    def _task_id(self) -> str | None:
        return self.options.task or (self.record.task_id if self.record is not None else None)

    @property
    def _transaction(self) -> str | None:
        payment = self.task.payment if self.task is not None else None
        found = payment.transaction if payment is not None else None
        return shorten(found) if found is not None else None


def _read_order(options: _Options) -> Order | None:
    """Return the order; None if the buyer names a task. Raises `click.UsageError`."""
    if options.task is not None:
        if options.slug is not None:
            raise click.UsageError("--task buys nothing, so it takes no SLUG and no PROMPT.")
        return None
    if options.slug is None or (options.prompt is None and options.file is None):
        raise click.UsageError("Name a SLUG, and a PROMPT or --file.")
    fields = {
        "prompt": options.prompt,
        "aspect_ratio": options.aspect_ratio,
        "output_format": options.output_format,
        "resolution": options.resolution,
    }
    body = {name: value for name, value in fields.items() if value is not None}
    if options.file is not None:
        body |= _read_document(options.file)
    key = options.idempotency_key or secrets.token_hex(16)
    return Order(url=options.url, slug=options.slug, body=body, key=key)


def _read_document(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read ({error.strerror}).") from None
    if len(content) > MAX_FILE_BYTES:
        raise click.UsageError(f"{path} is larger than the limit of {MAX_FILE_BYTES:,} bytes.")
    return {"fileBase64": base64.b64encode(content).decode(), "fileName": path.name}


def _echo(sentence: str) -> None:
    """Print to standard error, without the control characters that a gateway may send."""
    click.echo(blank_control_chars(sentence), err=True)
