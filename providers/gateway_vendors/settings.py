"""Checks of an adapter's settings that every adapter has."""

from urllib.parse import urlsplit

from gateway.errors import SettingsError
from gateway.settings import Settings
from gateway.settings.sections import variable


def base_url(value: str, *, name: str) -> str:
    """Return an API's base URL without a trailing slash.

    `name` is the setting, such as `acme_base_url`. Raises `SettingsError` unless the URL is http or
    https, has a host, and has no query, so that a path can be appended. The error omits the value,
    because some operators put a key into it.
    """
    try:
        url = urlsplit(value)
        is_right = url.scheme in ("http", "https") and bool(url.hostname)
    except ValueError:
        # For example, an unclosed bracket.
        is_right = False
    if not is_right or any(mark in value for mark in "?#") or not value.isprintable():
        raise SettingsError(
            f"{variable(name)} is not right: an address that begins with http:// or https:// and "
            f"has no query. Example: {variable(name)}=https://api.example.com/v1"
        )
    return value.rstrip("/")


def limit_or_none(value: int, *, name: str) -> int | None:
    """Return an operator's limit, or None if it is 0.

    `name` is the setting, such as `acme_max_concurrency`. Raises `SettingsError` if it is negative.
    """
    if value < 0:
        raise SettingsError(
            f"{variable(name)} is not right: a whole number, 0 for no limit. "
            f"Example: {variable(name)}=4"
        )
    return value or None


def model_name(settings: Settings, slug: str, default: str, *, name: str) -> str:
    """Return the model of the table `[endpoints.<slug>]`, else `default`.

    `default` is the value of the setting `name`, such as `acme_model`. Raises `SettingsError` if
    the model's name is empty.
    """
    override = settings.endpoints.get(slug)
    model = (override.model if override is not None and override.model else default).strip()
    if not model:
        raise SettingsError(f"{variable(name)} is empty. Name a model, or unset it.")
    return model
