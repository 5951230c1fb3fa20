"""The date in answers."""

import email.utils
import functools
import time


def date_line() -> bytes:
    """Return the `Date` header."""
    return _date_line(int(time.time()))


@functools.lru_cache(maxsize=1)
def _date_line(second: int) -> bytes:
    return f"date: {email.utils.formatdate(second, usegmt=True)}\r\n".encode()
