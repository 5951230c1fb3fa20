"""The bucket that outputs are kept in: by our settings, else as Fly and Amazon's tools name it."""

import os
import re
from urllib.parse import urlsplit

import attrs

from gateway.settings.model import Settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
_PREFIX = re.compile(r"([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?")
# New buckets of these are known by their host name only.
_NAMED_BY_HOST = (".amazonaws.com", ".tigris.dev", ".storage.dev")


@attrs.frozen(kw_only=True)
class Bucket:
    """One bucket of an S3-compatible store, and the key to it."""

    name: str
    prefix: str  # of every object; "" or "a/b"
    endpoint: str  # the store's address, without the bucket
    region: str
    is_in_host: bool  # whether the bucket's name goes into the host, not into the path
    access_key_id: str = attrs.field(repr=False)
    secret_access_key: str = attrs.field(repr=False)

    @property
    def base_url(self) -> str:
        """The address that paths are put after; with the bucket, where that is in the host."""
        scheme, _, host = self.endpoint.partition("://")
        return f"{scheme}://{self.name}.{host}" if self.is_in_host else self.endpoint

    def __str__(self) -> str:
        return f"{self.name} at {urlsplit(self.endpoint).netloc}"


def bucket_of(settings: Settings) -> Bucket | None:
    """Return the bucket, or None where outputs stay on the disk."""
    if not settings.outputs_url:
        return None
    url = urlsplit(settings.outputs_url)
    given = settings.outputs_endpoint or _set_by_others("AWS_ENDPOINT_URL_S3")
    elsewhere = "auto" if given else "us-east-1"
    region = settings.outputs_region or _set_by_others("AWS_REGION") or elsewhere
    endpoint = (given or f"https://s3.{region}.amazonaws.com").rstrip("/")
    return Bucket(
        name=url.netloc or _set_by_others("BUCKET_NAME"),
        prefix=url.path.removeprefix("/").removesuffix("/"),
        endpoint=endpoint,
        region=region,
        is_in_host=_is_in_host(settings.outputs_addressing, endpoint),
        access_key_id=str(settings.outputs_access_key_id) or _set_by_others("AWS_ACCESS_KEY_ID"),
        secret_access_key=str(settings.outputs_secret_access_key)
        or _set_by_others("AWS_SECRET_ACCESS_KEY"),
    )


def bucket_verdicts(settings: Settings) -> dict[str, bool]:
    """Return which of the bucket's settings are right."""
    addressing = settings.outputs_addressing in ("auto", "host", "path")
    bucket = bucket_of(settings)
    if bucket is None:
        return {"outputs_addressing": addressing}
    url, endpoint = urlsplit(settings.outputs_url), urlsplit(bucket.endpoint)
    return {
        "outputs_url": url.scheme == "s3"
        and not (url.query or url.fragment)
        and bool(_NAME.fullmatch(bucket.name))
        and bool(_PREFIX.fullmatch(bucket.prefix)),
        "outputs_endpoint": endpoint.scheme in ("http", "https")
        and bool(endpoint.hostname)
        and not (endpoint.path or endpoint.query or endpoint.username),
        "outputs_region": bool(re.fullmatch(r"[A-Za-z0-9-]+", bucket.region)),
        "outputs_addressing": addressing,
        "outputs_access_key_id": bool(bucket.access_key_id),
        "outputs_secret_access_key": bool(bucket.secret_access_key),
    }


def _is_in_host(addressing: str, endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return addressing == "host" or (addressing == "auto" and host.endswith(_NAMED_BY_HOST))


def _set_by_others(variable: str) -> str:
    return os.environ.get(variable, "")
