"""What a route may use: the parts of one running gateway, which its app carries."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import attrs
from quart import current_app

from gateway.catalog.catalog import Catalog
from gateway.catalog.watchdog import Watchdog
from gateway.chain.wallet_check import WalletCheck
from gateway.concurrency.shared_answers import SharedAnswer
from gateway.concurrency.threads import Threads
from gateway.contracts import Chain, Clock, OutputStore, Quote, Selling
from gateway.domain import Endpoint, GenerationRequest, Task
from gateway.domain.description import price_range
from gateway.domain.refund_promise import RefundPromise
from gateway.payments import MethodSettlements, Payments, Refunds, Settlements
from gateway.payments.refund_promises import RefundPromises
from gateway.running.leadership import Leadership
from gateway.running.readiness import KEPT_S, Check, Readiness
from gateway.sandbox.fair_share import FairShare, Shares
from gateway.sandbox.pages import Pages
from gateway.sandbox.sent_pictures import SentPictures
from gateway.settings import Settings
from gateway.store import SqlStore
from gateway.tasks import WorkerPool
from gateway.tasks.announcer import Announcer
from gateway.tasks.notifications import LongPolls, TaskNotifications
from gateway.telemetry.redaction import Redactor
from gateway.web.checked_files import CheckedFiles
from gateway.web.long_texts import LongTexts
from gateway_mcp import McpDoor
from gateway_mcp.linked_files import LinkedFiles
from gateway_operator.desk.admin_password import AdminPassword
from gateway_operator.desk.live_changes import LiveChanges
from gateway_webhooks import Deliveries

CHECKS = Shares(
    # Each may take 600 MB, and as much processor as a paid document.
    slots=2,
    slots_per_address=1,
    # Each waits with a file of up to 7.5 MB.
    waiting=16,
    waiting_per_address=8,
    # Shorter than `Timing.validation_s`, which also has the check in it.
    wait_s=15.0,
    # An ordinary file takes half a second, and the largest picture 1.5 s.
    undisturbed_s=3.0,
    # Four files that take as long as they may; a quarter of a processor in the long run.
    budget_s=20.0,
    regained=0.25,
)

if TYPE_CHECKING:
    # What only the operator's pages and alarms need is imported when it is asked for.
    from gateway.catalog.shared_states import SharedProviders

    # At run time `rate_limits` imports this module, for the decorator of its routes.
    from gateway.web.rate_limits import RateLimits
    from gateway_backups import Backups
    from gateway_operator.alarms.channels import Notify
    from gateway_operator.alarms.watch import AlarmWatch
    from gateway_operator.desk.desk import Desk

# Keys of `app.extensions`: the `Services`, and the error that stopped the start.
EXTENSION = "gateway"
FAILURE = "gateway-failure"

# Streams of events at the same time, in all and for one address. With the requests that wait for a
# task they stay under the number of connections that fly.toml's proxy passes on.
_MAX_STREAMS = 200
_MAX_STREAMS_PER_ADDRESS = 4
# Answers of `/mcp` with pictures in them: each takes up to 16 MB until it is sent.
_MAX_PICTURED = 8
_MAX_PICTURED_PER_ADDRESS = 4


@attrs.frozen(kw_only=True)
class Timing:
    """How long one gateway waits, in seconds."""

    # Warming up starts after the first answer, or after this time without a request.
    warm_up_s: float = 1.0
    # Between two attempts to give disk space back that the database no longer needs.
    give_back_space_s: float = 30.0
    # Between two looks at disk, gas and refund key.
    state_watch_s: float = 60.0
    # Between two looks for what operators changed about endpoints, in this process or another.
    changes_s: float = 2.0
    # Between two looks for what other nodes found out about providers.
    provider_states_s: float = 2.0
    # Between two passes over mined transactions whose gas or time is not known.
    gas_records_s: float = 60.0
    # For the check of a request before its payment. A large document may wait behind others.
    validation_s: float = 30.0
    # Between two looks at a task that a request waits for. When this process ends a task, or hears
    # that another one did, it wakes the request at once; the looks are for what it does not hear.
    look_s: float = 10.0
    # The same while this process should hear of others and cannot.
    deaf_look_s: float = 1.0
    # Between two looks at a task that is streamed. A worker writes progress down once a second.
    stream_look_s: float = 1.0
    # After so long without a change a stream carries a comment.
    stream_quiet_s: float = 15.0
    # The longest stream; the client then connects again.
    stream_s: float = 600.0
    # For reading the pictures of one answer of `/mcp`, and for showing there what was paid for once
    # its wait is over.
    pictures_s: float = 5.0
    show_sold_s: float = 8.0
    # At the end, for payments that are being settled, then for tasks that are being generated.
    # With the last webhooks and the server's wait for open requests they stay under the
    # `kill_timeout` of 120 s in fly.toml.
    drain_payments_s: float = 20.0
    drain_tasks_s: float = 75.0
    # Between two looks at what needs the operator.
    alarms_s: float = 30.0


@attrs.define(kw_only=True)
class Services:
    """The parts of one running gateway."""

    settings: Settings
    redactor: Redactor
    store: SqlStore
    chain: Chain
    catalog: Catalog
    output_store: OutputStore
    settlements: Settlements
    method_settlements: MethodSettlements
    # None without a refund key.
    refunds: Refunds | None
    refund_promises: RefundPromises
    # None where GATEWAY_BACKUP_URL names no place.
    backups: "Backups | None" = None
    payments: Payments
    workers: WorkerPool
    leadership: Leadership
    # None on a single machine.
    shared_providers: "SharedProviders | None"
    limits: "RateLimits"
    notifications: TaskNotifications
    announcer: Announcer
    long_polls: LongPolls
    streams: LongPolls = attrs.field(
        factory=lambda: LongPolls(_MAX_STREAMS, _MAX_STREAMS_PER_ADDRESS)
    )
    pictured: LongPolls = attrs.field(
        factory=lambda: LongPolls(_MAX_PICTURED, _MAX_PICTURED_PER_ADDRESS)
    )
    deliveries: Deliveries
    readiness: Readiness
    wallet: WalletCheck
    now: Clock
    # The checks of files before their payment.
    checks: FairShare = attrs.field(factory=lambda: FairShare(CHECKS))
    checked_files: CheckedFiles = attrs.field(factory=CheckedFiles)
    long_texts: LongTexts = attrs.field(init=False)

    @long_texts.default
    def _make_long_texts(self) -> LongTexts:
        return LongTexts(self.store)

    pages: Pages = attrs.field(factory=Pages)
    sent_pictures: SentPictures = attrs.field(factory=SentPictures)
    # Set once the first answer has been sent.
    answered: asyncio.Event = attrs.field(factory=asyncio.Event)
    # Set once the heavy libraries are imported.
    warmed: asyncio.Event = attrs.field(factory=asyncio.Event)
    # Set once this process may not go on with its database.
    unfit: asyncio.Event = attrs.field(factory=asyncio.Event)
    password: AdminPassword = attrs.field(repr=False)
    # None where `/mcp` is switched off, or the SDK is not installed.
    mcp: McpDoor | None = None
    linked_files: LinkedFiles = attrs.field(factory=LinkedFiles)
    # The threads that decode and hash large bodies.
    bodies: Threads = attrs.field(factory=lambda: Threads("bodies", 2))
    timing: Timing = attrs.field(factory=Timing)
    # The plugins' functions that tell alarms, by the plugins' names.
    notifiers: Mapping[str, "Notify"] = attrs.field(factory=dict)
    # None until the server starts.
    watchdog: Watchdog | None = None
    # The work of finishing what has begun, once it was asked for.
    draining: asyncio.Task[None] | None = None
    # Unix seconds.
    started_at: float = attrs.field(init=False)

    @started_at.default
    def _look_at_clock(self) -> float:
        return self.now()

    # What operators change about endpoints while the gateway runs.
    changes: LiveChanges = attrs.field(init=False)

    @changes.default
    def _make_changes(self) -> LiveChanges:
        return LiveChanges(self.catalog, self.store, self.now)

    # The checks of /api/ready that ask the chain or the database.
    shared_checks: SharedAnswer[Sequence[Check]] = attrs.field(init=False)

    @shared_checks.default
    def _make_shared_checks(self) -> SharedAnswer[Sequence[Check]]:
        return SharedAnswer(self.now, kept_s=KEPT_S)

    # None until they are asked for.
    _desk: "Desk | None" = attrs.field(default=None, init=False)
    _alarms: "AlarmWatch | None" = attrs.field(default=None, init=False)

    @property
    def desk(self) -> "Desk":
        """What an operator's pages work with."""
        if self._desk is None:
            from gateway_operator.running import make_desk  # noqa: PLC0415

            self._desk = make_desk(self)
        return self._desk

    @property
    def alarms(self) -> "AlarmWatch":
        """What tells the operator that something is wrong."""
        if self._alarms is None:
            from gateway_operator.running import make_alarms  # noqa: PLC0415

            self._alarms = make_alarms(self)
        return self._alarms

    async def close_operator_parts(self) -> None:
        """Put down what desk and alarms have begun, if they were asked for."""
        if self._alarms is not None:
            await self._alarms.close()
        if self._desk is not None:
            await self._desk.unclaimed.close()

    @property
    def look_s(self) -> float:
        """Seconds between two looks at a task that a request waits for."""
        wakes = self.store.wakes
        return self.timing.look_s if wakes is None or wakes.is_live else self.timing.deaf_look_s

    @property
    def serves_mcp(self) -> bool:
        """Whether `POST /mcp` is there."""
        return self.mcp is not None

    def stop_selling(self) -> None:
        """Sell nothing more; what was sold goes on, and so do polls, files, pages and streams."""
        self.readiness.is_draining = True

    def end_waits(self) -> None:
        """Answer the requests that wait for a task with its present state, and end the streams."""
        self.readiness.is_drained = True
        self.notifications.post_all()

    @property
    def selling(self) -> Selling:
        """What can be bought now, as it was known at the last look; asks nobody."""
        is_stopped = self.wallet.problem is not None or self.readiness.find_problem() is not None
        if is_stopped or not len(self.catalog):
            return "nothing"
        return self.settlements.obstacles.selling

    def _selling_of(self, slug: str) -> Selling:
        """Return what can be bought of an endpoint.

        While the gateway stops, a price is given all the same: the purchase with it is told when to
        come again, and clients do. Without an entry they would give up.
        """
        if self.readiness.is_draining:
            return "everything"
        return self.selling if self.catalog[slug].sells_now else "nothing"

    def unsold_because(self, slug: str | None = None) -> str | None:
        """Return the buyer's sentence about why not all can be bought by every way to pay, or None.

        With `slug`, the endpoint's own problem counts, too.
        """
        problem = self.readiness.find_problem(slug)
        return self.settlements.obstacles.said if problem is None else problem.message

    def quote(self, endpoint: Endpoint, request: GenerationRequest | None = None) -> Quote:
        """Return the price of a request and where to pay it.

        Without a request, the price is the endpoint's own.
        """
        settings = self.settings
        price_units = endpoint.price_of(request) if request else endpoint.price_units
        return Quote(
            endpoint=endpoint,
            price_units=price_units,
            wallet=settings.wallet,
            network=settings.chain,
            resource_url=f"{settings.base_url}/api/x402/{endpoint.slug}",
            earlier_units=self._earlier_units(endpoint.slug, request),
            refund=self.refund_promises.of(price_units),
            selling=self._selling_of(endpoint.slug),
        )

    def refund_promise(self) -> RefundPromise:
        """Return what is promised whatever is bought now: the dearest offer decides."""
        dearest = self.catalog.keep(
            "dearest", lambda: max((price_range(one)[1] for one in self.catalog), default=0)
        )
        return self.refund_promises.of(dearest)

    def _earlier_units(self, slug: str, request: GenerationRequest | None) -> tuple[int, ...]:
        """Return what the request cost in 402s that are still good."""
        earlier = self.catalog[slug].earlier if request is not None else ()
        if not earlier or request is None:
            return ()
        now = self.now()
        return tuple(one.price_of(request) for one, until in earlier if now < until)

    def callback_secret(self, task: Task, request: GenerationRequest) -> str | None:
        """Return the secret that signs the events of a task; None if its request wants none."""
        return self.deliveries.secrets.of(task.id) if request.callback_url else None


def services() -> Services:
    """Return the parts of the app that handles the current request."""
    return cast(Services, current_app.extensions[EXTENSION])
