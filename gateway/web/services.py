"""What a route may use; built once per app and carried by it."""

import asyncio
import shutil
from typing import cast

import attrs
from quart import current_app

from gateway.chain.wallet_check import WalletCheck
from gateway.contracts import Chain, Clock, OutputStore, Quote, Store
from gateway.domain import Endpoint, GenerationRequest
from gateway.errors import ExecutionError
from gateway.payments import Payments, Refunds, Settlements
from gateway.plugins.catalog import Catalog
from gateway.redaction import Redactor
from gateway.sandbox.pages import Pages
from gateway.settings import Settings
from gateway.tasks import WorkerPool
from gateway.tasks.notifications import LongPolls, TaskNotifications
from gateway.threads import Threads
from gateway.web.admin_password import AdminPassword
from gateway.web.rate_limits import RateLimits
from gateway.web.readiness import SharedChecks

FAILURE = "gateway-failure"
EXTENSION = "gateway"


@attrs.define
class Readiness:
    """Whether anything may be sold now; shared by routes and payments."""

    settings: Settings
    catalog: Catalog
    is_draining: bool = False

    def free_disk_mb(self) -> float:
        """Return the megabytes (10⁶ bytes) free in the data folder."""
        return shutil.disk_usage(self.settings.data_dir).free / 10**6

    def check_serving(self, slug: str) -> None:
        """Raise `ExecutionError` where a task could not be kept, or its provider does not work."""
        if self.is_draining:
            raise ExecutionError("The gateway is restarting; nothing was charged. Try again soon.")
        if self.free_disk_mb() < self.settings.min_free_disk_mb:
            raise ExecutionError("The gateway's disk is nearly full; nothing was charged.")
        if self.catalog[slug].upstream.circuit.is_open:
            raise ExecutionError("The provider does not work now; nothing was charged.")


@attrs.define(kw_only=True)
class Services:
    """The parts of one running gateway."""

    settings: Settings
    redactor: Redactor
    store: Store
    chain: Chain
    catalog: Catalog
    output_store: OutputStore
    settlements: Settlements
    refunds: Refunds | None  # None without a refund key
    payments: Payments
    workers: WorkerPool
    limits: RateLimits
    notifications: TaskNotifications
    long_polls: LongPolls
    readiness: Readiness
    wallet: WalletCheck
    now: Clock
    started_at: float
    pages: Pages = attrs.field(factory=Pages)
    answered: asyncio.Event = attrs.field(factory=asyncio.Event)  # the first answer went out
    warmed: asyncio.Event = attrs.field(factory=asyncio.Event)  # what is heavy is imported
    password: AdminPassword = attrs.field(repr=False)
    bodies: Threads = attrs.field(factory=lambda: Threads("bodies", 2))  # read and hash large ones
    shared_checks: SharedChecks = attrs.field(init=False)  # of /api/ready

    @shared_checks.default
    def _shared_checks(self) -> SharedChecks:
        return SharedChecks(self.now)

    def quote(self, endpoint: Endpoint, request: GenerationRequest | None = None) -> Quote:
        """Return the price of a request, and where it is paid; without one, the endpoint's."""
        settings = self.settings
        return Quote(
            endpoint=endpoint,
            price_units=endpoint.price_of(request) if request else endpoint.price_units,
            wallet=settings.wallet,
            network=settings.chain,
            resource_url=f"{settings.base_url}/api/x402/{endpoint.slug}",
        )


def services() -> Services:
    """Return the parts of the app that handles the current request."""
    return cast(Services, current_app.extensions[EXTENSION])
