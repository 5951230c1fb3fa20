"""Makes vouchers: `python -m gateway_vouchers --value 0.05 --count 10 --days 90`."""

import argparse
import os
import secrets
import time
from collections.abc import Callable, Sequence

from gateway import SettingsError, usdc
from gateway_vouchers.voucher import (
    DEFAULT_NAME,
    NAME_VARIABLE,
    SECRET_VARIABLE,
    Seal,
    Voucher,
    checked_name,
)

_DAY_S = 86_400
_MAX_COUNT = 10_000
_MAX_DAYS = 3_650


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one token per line. For invalid input, print one sentence and exit with code 2."""
    parser = _parser()
    wanted = parser.parse_args(arguments)
    try:
        seal = Seal(_secret())
        name = checked_name(os.environ.get(NAME_VARIABLE, DEFAULT_NAME))
        expires = int(time.time()) + wanted.days * _DAY_S
        tokens = [
            seal.token_of(
                Voucher(
                    serial=secrets.token_hex(16),
                    value_units=usdc(wanted.value),
                    expires=expires,
                    gateway=name,
                    refund_to=wanted.refund_to,
                )
            )
            for _ in range(wanted.count)
        ]
    except (SettingsError, ValueError) as error:
        parser.error(str(error))
    print("\n".join(tokens))


def _secret() -> str:
    """Return the gateway's secret; raises `SettingsError` without one."""
    secret = os.environ.get(SECRET_VARIABLE, "")
    if not secret:
        raise SettingsError(f"{SECRET_VARIABLE} is not set. Give it the gateway's value.")
    return secret


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gateway_vouchers",
        description="Print vouchers, one token per line. Anyone who reads a token can spend it.",
        epilog=f"{SECRET_VARIABLE} and {NAME_VARIABLE} are read from the environment; they must "
        "be those of the gateway that takes the vouchers.",
    )
    parser.add_argument("--value", required=True, help="the value of each in USDC, such as 0.05")
    parser.add_argument("--count", type=_up_to(_MAX_COUNT), default=1, help="how many (1)")
    parser.add_argument(
        "--days", type=_up_to(_MAX_DAYS), default=90, help="days until they expire (90)"
    )
    parser.add_argument("--refund-to", help="the address 0x… for refunds")
    return parser


def _up_to(most: int) -> Callable[[str], int]:
    """Return a parser of numbers from 1 to `most`."""

    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not 1 to {most}")
        return int(text)

    return number


if __name__ == "__main__":
    main()
