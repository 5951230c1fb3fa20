"""Assembles the objects that take payments."""

import attrs

from gateway.catalog.catalog import Catalog
from gateway.contracts import PluginContext, Settler, TransferVerifier
from gateway.payments import (
    Exposure,
    FailedSettlements,
    MethodSettlements,
    Obstacles,
    PaymentMethods,
    Payments,
    Reconciler,
    Settlements,
)
from gateway.payments.obstacles import WalletCheck
from gateway.running.readiness import Readiness
from gateway.store.sql_store import SqlStore
from gateway.tasks.notifications import Announcer


@attrs.frozen(kw_only=True)
class Money:
    """The objects that take payments."""

    readiness: Readiness
    wallet: WalletCheck
    payments: Payments


def make_money(
    store: SqlStore,
    context: PluginContext,
    catalog: Catalog,
    *,
    settler: Settler,
    methods: PaymentMethods,
    transfers: TransferVerifier,
    announcer: Announcer,
    born_at: float,
) -> Money:
    """Assemble the objects; `born_at` is when the database was created, in Unix seconds."""
    settings, chain, now = context.settings, context.chain, context.now
    readiness = Readiness(settings, catalog, store)
    wallet = WalletCheck(settings, chain)
    return Money(
        readiness=readiness,
        wallet=wallet,
        payments=Payments(
            store=store,
            chain=chain,
            methods=methods,
            transfers=transfers,
            settlements=_make_settlements(store, context, settler, announcer),
            method_settlements=MethodSettlements(
                store, methods.by_name, now, announcer.queued, announcer.ended
            ),
            check_serving=readiness.check_serving,
            check_wallet=wallet.check,
            on_queued=announcer.queued,
            now=now,
            born_at=born_at,
            exposure=Exposure(
                store=store, chain=chain, held_file_bytes=settings.held_files_mb * 10**6, now=now
            ),
        ),
    )


def _make_settlements(
    store: SqlStore, context: PluginContext, settler: Settler, announcer: Announcer
) -> Settlements:
    settings, chain, now = context.settings, context.chain, context.now
    return Settlements(
        store,
        settler,
        Reconciler(store, chain, settings, now, announcer.ended),
        Obstacles(chain, settler, settings.wallet_key, now),
        FailedSettlements(store, chain, settings.chain, now),
        announcer.queued,
    )
