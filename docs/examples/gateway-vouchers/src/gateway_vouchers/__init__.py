"""Prepaid vouchers as a payment method: sold by the operator and redeemed once.

`GATEWAY_VOUCHERS_SECRET` turns them on.
"""

from collections.abc import Callable

import attrs
import typed_settings as ts

from gateway import PaymentMethod, PluginContext, hookimpl, secret, setting
from gateway_vouchers.ledger import Ledger
from gateway_vouchers.method import VoucherMethod
from gateway_vouchers.voucher import DEFAULT_NAME, Seal, checked_name


@attrs.frozen(kw_only=True)
class VoucherSettings:
    """The operator's settings."""

    name: str = setting(
        DEFAULT_NAME,
        "Name of this gateway in its vouchers: 1 to 60 of a-z, 0-9, `.` and `-`. Gateways with "
        "the same secret need different names.",
    )
    secret: ts.SecretStr = secret(
        "The key that signs vouchers, at least 32 characters. Keep it secret: it can make "
        "vouchers. It turns the payment method on.",
        switches_on=True,
    )


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define the settings: `GATEWAY_VOUCHERS_SECRET` and `GATEWAY_VOUCHERS_NAME`."""
    register("vouchers", VoucherSettings)


@hookimpl
def register_payment_method(
    register: Callable[[PaymentMethod], None], context: PluginContext
) -> None:
    """Accept vouchers if there is a secret. The first voucher opens the ledger."""
    mine = context.settings.section("vouchers", VoucherSettings)
    if not str(mine.secret):
        return
    ledger = Ledger(context.settings.data_dir / "vouchers.db", context.now)
    register(VoucherMethod(checked_name(mine.name), Seal(str(mine.secret)), ledger))
