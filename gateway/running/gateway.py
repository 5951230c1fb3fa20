"""The running gateway, as routes, commands and plugins use it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import attrs

from gateway.catalog.catalog import Catalog
from gateway.catalog.earlier import honours
from gateway.catalog.functions import DeclaredFunctions
from gateway.catalog.live_changes import LiveChanges
from gateway.catalog.registered import Registered
from gateway.catalog.reloads import Reloads
from gateway.catalog.watchdog import Watchdog
from gateway.concurrency.fence import Fence
from gateway.concurrency.shared_answers import SharedAnswer
from gateway.concurrency.standstills import Standstills
from gateway.contracts import Alarm, Chain, Clock, OutputStore, PluginContext, Quote, Selling
from gateway.contracts.parts import Callbacks, Check, Discovery
from gateway.domain import Endpoint, GenerationRequest
from gateway.domain.description import price_range
from gateway.domain.refund_promise import RefundPromise
from gateway.payments import MethodSettlements, Payments, Refunds, Settlements
from gateway.payments.obstacles import WalletCheck
from gateway.payments.refund_promises import RefundPromises
from gateway.running.events import EventHandover
from gateway.running.intake import Intake
from gateway.running.lifecycle import Lifecycle
from gateway.running.long_texts import LongTexts
from gateway.running.rate_limits import RateLimits
from gateway.running.readiness import TTL_S, Readiness
from gateway.running.requests import Requests
from gateway.running.timing import Timing
from gateway.settings import SectionOffer, Settings
from gateway.store import SqlStore
from gateway.tasks import WorkerPool
from gateway.tasks.notifications import Announcer, LongPolls, TaskNotifications
from gateway.telemetry.redaction import Redactor

# Concurrent event streams, in total and per address. Together with the long polls they stay under
# the connection limit of the proxy in fly.toml.
_MAX_STREAMS = 200
_MAX_STREAMS_PER_ADDRESS = 4
Kept = TypeVar("Kept")


@attrs.define(kw_only=True, eq=False, repr=False)
class Gateway:
    """A running gateway.

    Plugins may use `settings`, `context`, `now`, `store.read`, `store.write`, `lifecycle.leads`,
    `keep` and `find`. Everything else may change with any version.
    """

    # As payment plugins get it, with the installation's secret.
    context: PluginContext
    settings: Settings = attrs.field(init=False)
    chain: Chain = attrs.field(init=False)
    now: Clock = attrs.field(init=False)
    redactor: Redactor
    store: SqlStore
    catalog: Catalog
    output_store: OutputStore
    # None without a refund key.
    refunds: Refunds | None
    refund_promises: RefundPromises = attrs.field(init=False)
    payments: Payments
    settlements: Settlements = attrs.field(init=False)
    method_settlements: MethodSettlements = attrs.field(init=False)
    workers: WorkerPool
    limits: RateLimits
    notifications: TaskNotifications
    announcer: Announcer
    long_polls: LongPolls = attrs.field(init=False)
    streams: LongPolls = attrs.field(init=False)
    long_texts: LongTexts = attrs.field(init=False)
    readiness: Readiness
    wallet: WalletCheck
    intake: Intake = attrs.field(factory=Intake)
    requests: Requests = attrs.field(factory=Requests)
    standstills: Standstills
    functions: DeclaredFunctions = attrs.field(init=False)
    # Remembers the failures of plugins.
    fence: Fence = attrs.field(factory=Fence)
    timing: Timing = attrs.field(factory=Timing)
    # Operators' changes to endpoints at run time.
    changes: LiveChanges = attrs.field(init=False)
    # Functions that report alarms, by plugin.
    notifiers: Mapping[str, Callable[[Alarm], Any]] = attrs.field(factory=dict)
    # The plugins' settings, and a trial of others that raises `SettingsError`.
    sections: Sequence[SectionOffer] = ()
    try_settings: Callable[[Settings], Awaitable[None]]
    # Plugins' endpoints, offered again while the gateway runs.
    reloads: Reloads
    # None until the server starts.
    watchdog: Watchdog | None = None
    # Unix seconds.
    started_at: float = attrs.field(init=False)
    # The checks of /api/ready that are shared for some seconds.
    shared_checks: SharedAnswer[Sequence[Check]] = attrs.field(init=False)
    lifecycle: Lifecycle = attrs.field(init=False)
    events: EventHandover = attrs.field(init=False)
    # Plugins' objects for their routes, by class.
    _kept: dict[type, object] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        settings, now = self.context.settings, self.context.now
        self.settings, self.chain, self.now = settings, self.context.chain, now
        self.settlements = self.payments.settlements
        self.method_settlements = self.payments.method_settlements
        self.refund_promises = RefundPromises(self.context, self.store, self.refunds)
        self.long_polls = LongPolls(settings.max_long_polls, settings.max_long_polls_per_address)
        self.streams = LongPolls(_MAX_STREAMS, _MAX_STREAMS_PER_ADDRESS)
        self.long_texts = LongTexts(self.store)
        self.functions = DeclaredFunctions(self.catalog, self.workers.wake)
        self.reloads.on_replaced = self.functions.extend
        self.changes = LiveChanges(self.catalog, self.store, now)
        self.started_at = now()
        self.shared_checks = SharedAnswer(now, ttl_s=TTL_S)
        leads = self.store.nodes.leads
        self.lifecycle = Lifecycle(
            readiness=self.readiness,
            leads=leads,
            timing=self.timing,
            fence=self.fence,
            on_drained=self.end_waits,
        )
        self.standstills.recover = self.lifecycle.resume
        self.events = EventHandover(
            events=self.store.events, parts=self.lifecycle.parts, leads=leads, now=now
        )

    def keep(self, value: object) -> None:
        """Keep a plugin's object, which `find` returns by class."""
        self._kept[type(value)] = value

    def find(self, kind: type[Kept]) -> Kept:
        """Return the kept object of a class; raises `KeyError` if there is none."""
        return cast(Kept, self._kept[kind])

    def keeps(self, kind: type) -> bool:
        """Whether an object of a class is kept."""
        return kind in self._kept

    @property
    def callbacks(self) -> Callbacks | None:
        """The part that sends buyers events of their tasks, or None."""
        return next((one.callbacks for one in self.lifecycle.parts if one.callbacks), None)

    @property
    def discovery(self) -> Sequence[Discovery]:
        """The parts' entries in discovery documents."""
        return [part.discovery for part in self.lifecycle.parts]

    @property
    def openapi(self) -> str:
        """The path of the OpenAPI document; empty if no part serves one."""
        return next((one.openapi for one in self.discovery if one.openapi), "")

    @property
    def poll_s(self) -> float:
        """Seconds between reads of a task that a request waits for."""
        wakes = self.store.wakes
        return self.timing.poll_s if wakes is None or wakes.is_live else self.timing.fallback_poll_s

    def end_waits(self) -> None:
        """Answer waiting requests with the present state of their task, and end the streams."""
        self.readiness.is_drained = True
        self.notifications.post_all()

    @property
    def selling(self) -> Selling:
        """What can be bought now, as of the last check. No RPC call."""
        is_stopped = self.wallet.problem is not None or self.readiness.find_problem() is not None
        if is_stopped or not len(self.catalog):
            return "nothing"
        return self.settlements.obstacles.selling

    def sale_problem(self, slug: str | None = None) -> str | None:
        """Return the buyers' message if some purchases are impossible now, or None.

        With `slug`, this includes the endpoint's own problem.
        """
        problem = self.readiness.find_problem(slug)
        return self.settlements.obstacles.buyer_message if problem is None else problem.message

    def quote(
        self,
        endpoint: Endpoint,
        request: GenerationRequest | None = None,
        *,
        body_digest: str = "",
    ) -> Quote:
        """Return the price of a request and where to pay it.

        Without a request, it is the endpoint's base price. `body_digest` is that of the request.
        """
        settings, registered = self.settings, self.catalog.payable(endpoint.slug)
        earlier_units = self._earlier_prices(registered, endpoint, request)
        # While draining, prices are still quoted. A purchase is then refused with a Retry-After, so
        # clients retry; without a quote they would give up.
        selling: Selling = "everything"
        if not self.readiness.is_draining:
            selling = self.selling if registered.sells_now else "nothing"
        price_units = endpoint.price_of(request) if request else endpoint.price_units
        fallback = registered.fallback
        return Quote(
            # The given one may be an offer that was shown already.
            endpoint=registered.show(registered.endpoint),
            price_units=price_units,
            wallet=settings.wallet,
            network=settings.chain,
            resource_url=f"{settings.base_url}/api/x402/{endpoint.slug}",
            earlier_units=earlier_units,
            body_digest=body_digest,
            refund=self.refund_promises.of(price_units),
            selling=selling,
            maker=None if fallback is None else fallback.endpoint,
            names_model=registered.names_model,
        )

    def _earlier_prices(
        self, registered: Registered, endpoint: Endpoint, request: GenerationRequest | None
    ) -> tuple[int, ...]:
        """Return the prices of running quotes that a request may still pay."""
        if request is None or not registered.earlier:
            return ()
        now = self.now()
        return tuple(
            one.price_of(request)
            for one, until in registered.earlier
            if now < until and honours(one, endpoint, request)
        )

    def lookup_quote(
        self, slug: str, request: GenerationRequest | None, *, body_digest: str = ""
    ) -> Quote:
        """Return the quote to find a payment on record, also of a slug off sale or unknown.

        Without a request its price is the base price. Pages are not counted. `body_digest` is that
        of the body.
        """
        registered = self.catalog.find(slug)
        endpoint = _unknown(slug) if registered is None else registered.endpoint
        return Quote(
            endpoint=endpoint,
            price_units=endpoint.price_of(request or GenerationRequest()),
            wallet=self.settings.wallet,
            network=self.settings.chain,
            resource_url=f"{self.settings.base_url}/api/x402/{slug}",
            body_digest=body_digest,
        )

    def refund_promise(self) -> RefundPromise:
        """Return the promise that holds for every offer, by the highest price."""
        highest_units = self.catalog.cached(
            "highest_units", lambda: max((price_range(one)[1] for one in self.catalog), default=0)
        )
        return self.refund_promises.of(highest_units)


def _unknown(slug: str) -> Endpoint:
    """Return a stand-in for an endpoint that no plugin has."""
    return Endpoint(
        slug=slug, title="", description="", model="", provider="", capability="", price_units=1
    )
