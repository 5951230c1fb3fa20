"""The list of what a gateway needs before it sells, for `gateway check` and the overview.

None of it stops a sale, and each item names what to do. What stops sales is a failed check.
"""

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

import attrs

from gateway.catalog.catalog import Catalog
from gateway.domain import Endpoint
from gateway.domain.costs import worst_sales
from gateway.domain.eip3009 import checksum_address
from gateway.installed import is_disabled
from gateway.settings import Settings, is_chain_local
from gateway.store.meta import earlier_wallet
from gateway.store.sql import Connection
from gateway_backups.settings import backup_settings_of
from gateway_operator.desk.wording import counted

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1", "0.0.0.0", "::")  # noqa: S104 - compared
# Names that RFC 2606 reserves.
_EXAMPLES = ("example.com", "example.org", "example.net", "example", "invalid", "test")
_MOST_NAMED = 5


@attrs.frozen(kw_only=True)
class Item:
    """One thing to do before selling, or done."""

    # The name of its row in `gateway check`.
    name: str
    is_done: bool
    # A sentence; of an open item, with what to do.
    found: str
    # Where the overview's button leads; empty: it is done on the machine.
    button: str = ""
    href: str = ""


@attrs.frozen(kw_only=True)
class Stored:
    """The database's part of the list."""

    sold: int = 0
    # The wallet that took this database's payments before, in lower case.
    earlier_wallet: str | None = None
    # Whether a login needs more than the password.
    has_second_factor: bool = False


def read_stored(db: Connection, wallet: str) -> Stored:
    """Return the database's part of the list; `wallet` is the one of the settings."""
    sold = db.execute("SELECT count(*) FROM payments WHERE paid_tx IS NOT NULL").fetchone()[0]
    codes = db.execute(
        """SELECT (SELECT count(*) FROM operator_codes WHERE confirmed_at IS NOT NULL)
               + (SELECT count(*) FROM operator_passkeys)"""
    ).fetchone()[0]
    return Stored(sold=sold, earlier_wallet=earlier_wallet(db, wallet), has_second_factor=codes > 0)


def make_checklist(
    settings: Settings,
    catalog: Catalog,
    stored: Stored,
    *,
    ignored: Sequence[str],
    channels: Sequence[str],
    has_refund_key: bool,
) -> list[Item]:
    """Return the list, in the order in which to do it.

    `ignored` are variables that no plugin reads, `channels` the channels of alarms.
    """
    every: Iterable[Iterator[Item]] = (
        _address(settings),
        _wallet(settings, stored),
        _ignored(ignored),
        _refunds(has_refund_key=has_refund_key),
        _copies(settings),
        _alarms(channels),
        _costs(list(catalog)),
        _login(stored),
        _test_sale(settings, list(catalog), stored),
    )
    return [item for items in every for item in items]


def _address(settings: Settings) -> Iterator[Item]:
    url = urlsplit(settings.base_url)
    host = url.hostname or ""
    problem = None
    if any(host == name or host.endswith(f".{name}") for name in _EXAMPLES):
        problem = "an example: buyers would be sent to a stranger's server"
    elif host in _THIS_MACHINE and not is_chain_local(settings):
        problem = "an address of this machine, so no buyer reaches it"
    elif url.scheme != "https" and not is_chain_local(settings):
        problem = "not https, so anybody on the way reads payments and results"
    found = f"buyers reach this gateway at {settings.base_url}"
    if problem is not None:
        found = (
            f"GATEWAY_BASE_URL is {settings.base_url}, {problem}. Set the https address of this "
            "gateway."
        )
    yield Item(
        name="address",
        is_done=problem is None,
        found=found,
        button="View the settings",
        href="/admin/system#settings",
    )


def _wallet(settings: Settings, stored: Stored) -> Iterator[Item]:
    before = stored.earlier_wallet
    if before is None:
        return
    yield Item(
        name="earlier wallet",
        is_done=False,
        found=(
            f"earlier payments went to {checksum_address(before)}, new ones go to "
            f"{checksum_address(settings.wallet_key)}. Transfers to the earlier wallet buy nothing "
            "and are not listed: check that the new one is yours."
        ),
        button="Show the wallet",
        href="/admin/system#keys",
    )


def _ignored(names: Sequence[str]) -> Iterator[Item]:
    if names:
        yield Item(
            name="ignored settings",
            is_done=False,
            found=(
                f"{', '.join(names[:_MOST_NAMED])}: no plugin that is on has such a setting. "
                "Correct the name (docs/settings.md), or remove it."
            ),
            button="View the settings",
            href="/admin/system#settings",
        )


def _refunds(*, has_refund_key: bool) -> Iterator[Item]:
    found = (
        "a refund key is set"
        if has_refund_key
        else "no refund key: no buyer gets money back after a failure. Set GATEWAY_REFUND_KEY, and "
        "send its address some USDC and ETH."
    )
    yield Item(
        name="refund key",
        is_done=has_refund_key,
        found=found,
        button="View the keys",
        href="/admin/system#keys",
    )


def _copies(settings: Settings) -> Iterator[Item]:
    if settings.database_url:
        return
    is_on = not is_disabled("gateway_backups", settings.plugins_disabled)
    has_place = is_on and bool(backup_settings_of(settings).backup_url)
    found = (
        "backups go to GATEWAY_BACKUP_URL"
        if has_place
        else "no backups: if the disk is lost, so are the records of payments and refunds. Set "
        "GATEWAY_BACKUP_URL."
    )
    yield Item(
        name="backups",
        is_done=has_place,
        found=found,
        button="View backups",
        href="/admin/system#backups",
    )


def _alarms(channels: Sequence[str]) -> Iterator[Item]:
    found = (
        f"alarms go to {', '.join(channels)}; `gateway alarms test` tries them"
        if channels
        else "no alarm reaches you: no channel is set. Set GATEWAY_ALARM_URLS, then run "
        "`gateway alarms test`."
    )
    yield Item(
        name="alarms",
        is_done=bool(channels),
        found=found,
        button="View the alarms",
        href="/admin/alarms",
    )


def slugs_without_cost(endpoints: Iterable[Endpoint]) -> list[str]:
    """Return the endpoints of which the cost of a sale is not known."""
    return [
        endpoint.slug
        for endpoint in endpoints
        if any(sale.cost_micros is None for sale in worst_sales(endpoint))
    ]


def _costs(endpoints: Sequence[Endpoint]) -> Iterator[Item]:
    slugs = slugs_without_cost(endpoints)
    more = f" and {len(slugs) - _MOST_NAMED} more" if len(slugs) > _MOST_NAMED else ""
    found = (
        f"the cost is unknown for {', '.join(slugs[:_MOST_NAMED])}{more}, so a loss would not "
        "show. Set what one generation costs you: `gateway endpoints cost`."
        if slugs
        else "the cost of every sale is known"
    )
    yield Item(
        name="costs",
        is_done=not slugs,
        found=found,
        button="Set a cost" if slugs else "",
        href=f"/admin/endpoints/{slugs[0]}/cost" if slugs else "",
    )


def _login(stored: Stored) -> Iterator[Item]:
    found = (
        "a login needs more than the password"
        if stored.has_second_factor
        else "a stolen password alone opens the operator's pages. Add a passkey, or turn on codes."
    )
    yield Item(
        name="login",
        is_done=stored.has_second_factor,
        found=found,
        button="Set up",
        href="/admin/access",
    )


def _test_sale(settings: Settings, endpoints: Sequence[Endpoint], stored: Stored) -> Iterator[Item]:
    if stored.sold:
        found = f"{counted(stored.sold, 'payment')} so far"
        yield Item(name="first sale", is_done=True, found=found)
        return
    cheapest = min(endpoints, key=lambda one: one.price_units, default=None)
    if cheapest is None:
        return
    slug = cheapest.slug
    has_shop = not is_disabled("gateway_shop", settings.plugins_disabled)
    yield Item(
        name="first sale",
        is_done=False,
        found=(
            "nothing was sold yet. Buy once yourself, from a wallet of your own: "
            f"`gateway buy {slug} --url {settings.base_url}`"
        ),
        button="Buy it" if has_shop else "",
        href=f"/play/{slug}" if has_shop else "",
    )
