"""The facts from which conditions are derived."""

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from gateway.catalog.registered import Registered
from gateway.chain.smart_wallets import KEY_GAS
from gateway.contracts import Selling
from gateway.contracts.parts import Condition as PartCondition
from gateway.domain import Block
from gateway.domain.costs import worst_sales
from gateway.domain.eip3009 import BALANCE_OF, word
from gateway_operator.desk.chain_pace import PaceFacts, read_pace
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.fallbacks import describe_fallback
from gateway_operator.desk.last_seen import Seen
from gateway_operator.desk.machine_facts import MachineFacts, read_machine
from gateway_operator.desk.running import Check
from gateway_operator.sql import current_state, fallbacks, sums
from gateway_operator.sql.current_state import Override, OwedNow, Waiting

_DAY_S = 86_400.0


@attrs.frozen(kw_only=True)
class EndpointFacts:
    """One endpoint now. Times are Unix seconds, money is in units of 10⁻⁶."""

    slug: str
    provider: str
    plugin: str
    price_units: int
    # None: neither reported nor set.
    cost_micros: int | None
    # Why it was taken off sale automatically; None if it was not.
    problem: str | None
    # Whether only the operator can fix it, as with a rejected key or an unpaid bill.
    is_account: bool
    # Since when it is off sale, and the next attempt.
    off_since: float | None
    next_try_at: float | None
    # In the settings.
    is_switched_off: bool
    pause: Override | None
    price_override: Override | None
    cost_override: Override | None
    # Of the last day.
    sold: int
    uncosted: int
    # Of its newest finished tasks.
    failed: int
    recent_tasks: int
    # The average of its newest 20 tasks; None: fewer, or not known.
    margin_units: int | None = None
    model: str = ""
    # Every price, from the lowest, and whether the settings name the lowest.
    prices: Sequence[int] = ()
    is_price_in_settings: bool = False
    # When the vendor retires the model, and whether that time has come.
    retires_at: float = math.inf
    is_retired: bool = False
    # Whether it is off sale because a value of the page Settings is not read.
    is_held: bool = False
    # Whether it is off sale because nothing checks its results.
    is_unchecked: bool = False
    # The operator's choice of a fallback, and why that cannot make orders now; empty: it can.
    fallback: str | None = None
    fallback_problem: str = ""
    fallback_doubts: str = ""
    # The fallback, while it makes the new orders.
    made_by: str | None = None

    @property
    def is_paused(self) -> bool:
        """Whether the operator has paused it."""
        return self.pause is not None and self.pause.value is not None

    @property
    def sells(self) -> bool:
        """Whether it can be bought now."""
        is_off = self.is_paused or self.is_switched_off or self.is_retired
        return (self.problem is None or self.made_by is not None) and not is_off


@attrs.frozen(kw_only=True)
class KeyFacts:
    """An address of the operator's, with its last known balances."""

    # `wallet`, `settlement` or `refund`.
    role: str
    address: str
    # None if the role needs none.
    usdc: Seen[int] | None
    wei: Seen[int] | None
    # About how many transactions its ETH pays for; None: not known.
    lasts_for: int | None = None


@attrs.frozen(kw_only=True)
class Facts:
    """The facts as of `at` (Unix seconds)."""

    at: float
    # None in a command.
    checks: Sequence[Check] | None
    # None if `checks` is.
    selling: Selling | None
    owed: OwedNow
    open_payments: Waiting
    waiting_tasks: Waiting
    running_tasks: Mapping[str, int]
    endpoints: Sequence[EndpointFacts]
    keys: Sequence[KeyFacts]
    head: Seen[Block]
    backup_at: float | None
    has_backup_url: bool
    machine: MachineFacts = attrs.field(factory=MachineFacts)
    # None: not known.
    pace: PaceFacts | None = None

    # Added by plugins' parts.
    of_parts: Sequence[PartCondition] = ()

    # Open payments by payment method, which only the method can close.
    open_by_method: Mapping[str, int] = attrs.field(factory=dict)

    def key(self, role: str) -> KeyFacts | None:
        """Return the first key of a role, or None."""
        return next((one for one in self.keys if one.role == role), None)


async def read_facts(desk: Desk) -> Facts:
    """Return the facts, cached for two seconds.

    Uses the last known values if the chain does not respond within two seconds.
    """
    facts: Facts = await desk.shared.get("facts", lambda: _read_facts(desk))
    return facts


async def _read_facts(desk: Desk) -> Facts:
    now = desk.now()
    read_stored = partial(_read_stored, is_automatic=desk.settings.refunds_automatically)
    stored, head, checks, machine, pace = await asyncio.gather(
        desk.store.sum(read_stored, now),
        desk.last_seen.ask("head", desk.chain.head),
        _ask_checks(desk),
        read_machine(desk),
        read_pace(desk),
    )
    return Facts(
        at=now,
        checks=checks,
        selling=None if desk.running is None or checks is None else desk.running.selling(checks),
        owed=stored["owed"],
        open_payments=stored["open_payments"],
        waiting_tasks=stored["waiting_tasks"],
        running_tasks=stored["running_tasks"],
        endpoints=[_describe_endpoint(desk, one, stored, now) for one in desk.catalog.everything()],
        keys=await _read_keys(desk),
        head=head,
        backup_at=stored["backup_at"],
        has_backup_url=machine.backups is not None and machine.backups.is_on,
        machine=machine,
        pace=pace,
        of_parts=[] if desk.running is None else await desk.running.conditions(),
        open_by_method=stored["open_by_method"],
    )


def _read_stored(db: Any, now: float, *, is_automatic: bool) -> dict[str, Any]:
    """Return the facts of one database state."""
    slugs = sums.sold_slugs(db)
    makers = {*slugs, *fallbacks.ever_chosen(db)}
    day = sums.Period(since=now - _DAY_S, step_s=_DAY_S, bars=1)
    return {
        "owed": current_state.owed_now(db, is_automatic=is_automatic),
        "open_payments": current_state.open_payments(db),
        "open_by_method": current_state.open_by_method(db),
        "waiting_tasks": current_state.waiting_tasks(db),
        "running_tasks": current_state.running_tasks(db),
        "overrides": {(one.slug, one.field): one for one in current_state.overrides(db)},
        "failures": {slug: current_state.recent_failures(db, slug) for slug in makers},
        "margins": {slug: current_state.recent_margin(db, slug) for slug in slugs},
        "day": {one.slug: one for one in sums.sales(db, day)},
        "backup_at": current_state.newest_backup_at(db),
    }


async def _ask_checks(desk: Desk) -> Sequence[Check] | None:
    return None if desk.running is None else await desk.running.checks()


def _describe_endpoint(
    desk: Desk, one: Registered, stored: Mapping[str, Any], now: float
) -> EndpointFacts:
    endpoint, circuit = one.endpoint, one.open_circuit or one.upstream.circuit
    slug, overrides = endpoint.slug, stored["overrides"]
    day = stored["day"].get(slug)
    failed, recent_tasks = stored["failures"].get(slug, (0, 0))
    fallback = describe_fallback(desk.catalog, one)
    return EndpointFacts(
        slug=slug,
        provider=one.upstream.provider.name,
        plugin=one.upstream.plugin,
        price_units=endpoint.price_units,
        cost_micros=endpoint.cost_micros,
        problem=one.obstacle or _without_kind(circuit.problem),
        is_account=circuit.is_account or bool(one.obstacle),
        off_since=now - circuit.open_s if circuit.is_open else None,
        next_try_at=circuit.probe_at if circuit.is_open else None,
        is_switched_off=not _is_switched_on(desk, slug),
        pause=overrides.get((slug, "paused")),
        price_override=overrides.get((slug, "price")),
        cost_override=overrides.get((slug, "cost")),
        sold=day.sold if day else 0,
        uncosted=day.completed - day.costed if day else 0,
        failed=failed,
        recent_tasks=recent_tasks,
        margin_units=stored["margins"].get(slug),
        model=endpoint.model,
        prices=sorted({sale.price_units for sale in worst_sales(endpoint)}),
        is_price_in_settings=_has_price(desk, slug),
        retires_at=endpoint.retires_at,
        is_retired=now >= endpoint.retires_at,
        is_held=bool(one.held),
        is_unchecked=bool(one.unchecked),
        fallback=fallback.slug if fallback else None,
        fallback_problem=fallback.problem if fallback else "",
        fallback_doubts=fallback.doubts if fallback else "",
        made_by=fallback.slug if fallback and fallback.is_used else None,
    )


def _without_kind(problem: str | None) -> str | None:
    return None if problem is None else re.sub(r"^[A-Z][A-Za-z]+: ", "", problem)


def _has_price(desk: Desk, slug: str) -> bool:
    setting = desk.settings.endpoints.get(slug)
    return setting is not None and (setting.price is not None or bool(setting.prices))


def _is_switched_on(desk: Desk, slug: str) -> bool:
    setting = desk.settings.endpoints.get(slug)
    return setting is None or setting.enabled


# -- keys and wallet


async def _read_keys(desk: Desk) -> list[KeyFacts]:
    """Read wallet and keys concurrently."""
    settlement = desk.running.settlement_keys() if desk.running else ()
    refund = () if desk.refunds is None else (desk.refunds.address,)
    each_wei = await _cost_of_transaction(desk)
    return list(
        await asyncio.gather(
            _read_key(desk, "wallet", desk.settings.wallet, None),
            *(_read_key(desk, "settlement", address, each_wei) for address in settlement),
            *(_read_key(desk, "refund", address, each_wei) for address in refund),
        )
    )


async def _read_key(desk: Desk, role: str, address: str, each_wei: int | None) -> KeyFacts:
    ask, chain = desk.last_seen.ask, desk.chain
    usdc = wei = None
    if role != "settlement":
        question = BALANCE_OF + word(address)
        usdc = await ask(f"usdc {address}", lambda: chain.call_uint(question))
    if role != "wallet":
        wei = await ask(f"wei {address}", lambda: chain.gas_balance(address))
    holds = None if wei is None else wei.value
    lasts_for = None if holds is None or each_wei is None else holds // each_wei
    return KeyFacts(role=role, address=address, usdc=usdc, wei=wei, lasts_for=lasts_for)


async def _cost_of_transaction(desk: Desk) -> int | None:
    """Return the cost of one transaction as the settler counts it: the gas limit at today's fee."""
    fees = await desk.last_seen.ask("fees", desk.chain.fees)
    return None if fees.value is None else max(1, sum(fees.value) * KEY_GAS)
