"""The header that says when an answer was made."""

import email.utils
import functools
import time


def date_line() -> bytes:
    """Return the line of the present second."""
    return _line(int(time.time()))


@functools.lru_cache(maxsize=1)
def _line(second: int) -> bytes:
    return f"date: {email.utils.formatdate(second, usegmt=True)}\r\n".encode()
