"""The address of an API as an operator writes it into the settings."""

from urllib.parse import urlsplit

from gateway.errors import SettingsError
from gateway.settings.sections import variable


def base_url(value: str, *, name: str) -> str:
    """Return an address without a slash at its end; `name` is the setting's: `acme_base_url`.

    Raises `SettingsError` for anything that paths cannot be put after. It does not show the
    value: some put a key into it.
    """
    try:
        url = urlsplit(value)
        is_right = url.scheme in ("http", "https") and bool(url.hostname)
    except ValueError:  # such as an unclosed bracket
        is_right = False
    if not is_right or any(mark in value for mark in "?#") or not value.isprintable():
        raise SettingsError(
            f"{variable(name)} is not right: an address that begins with http:// or https:// and "
            f"has no query. Example: {variable(name)}=https://api.example.com/v1"
        )
    return value.rstrip("/")
