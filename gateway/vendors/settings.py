"""Checks of what an operator sets about a vendor: the address of its API and its limits."""

from urllib.parse import urlsplit

from gateway.errors import SettingsError
from gateway.settings.sections import variable


def base_url(value: str, *, name: str) -> str:
    """Return the address of an API without a slash at its end.

    `name` is the setting's, such as `acme_base_url`. Raises `SettingsError` for an address that a
    path cannot be appended to: not http or https, without a host, or with a query. The error does
    not quote the value, because some operators put a key into it.
    """
    try:
        url = urlsplit(value)
        is_right = url.scheme in ("http", "https") and bool(url.hostname)
    except ValueError:
        # An unclosed bracket, for example.
        is_right = False
    if not is_right or any(mark in value for mark in "?#") or not value.isprintable():
        raise SettingsError(
            f"{variable(name)} is not right: an address that begins with http:// or https:// and "
            f"has no query. Example: {variable(name)}=https://api.example.com/v1"
        )
    return value.rstrip("/")


def limit_or_none(value: int, *, name: str) -> int | None:
    """Return a limit that the operator set; 0 means no limit and becomes None.

    `name` is the setting's, such as `acme_max_concurrency`. Raises `SettingsError` for a negative
    number.
    """
    if value < 0:
        raise SettingsError(
            f"{variable(name)} is not right: a whole number, 0 for no limit. "
            f"Example: {variable(name)}=4"
        )
    return value or None
