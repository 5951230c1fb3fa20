"""The bucket for outputs, from our settings or what Fly and Amazon's tools set."""

import os
import re
from urllib.parse import urlsplit

import attrs

from gateway.settings.model import Settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
_PREFIX = re.compile(r"([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?")
# At these stores, a new bucket can be reached only by a host name that holds its name.
_NAMED_BY_HOST = (".amazonaws.com", ".tigris.dev", ".storage.dev")


@attrs.frozen(kw_only=True)
class Bucket:
    """One bucket of an S3-compatible store, and the key for it."""

    name: str
    # Every object's key starts with it: "" or "a/b".
    prefix: str
    # The store's address, without the bucket.
    endpoint: str
    region: str
    # Whether the bucket's name goes into the host instead of the path.
    is_in_host: bool
    access_key_id: str = attrs.field(repr=False)
    secret_access_key: str = attrs.field(repr=False)

    @property
    def base_url(self) -> str:
        """The address before the path; it holds the bucket's name if the host does."""
        scheme, _, host = self.endpoint.partition("://")
        return f"{scheme}://{self.name}.{host}" if self.is_in_host else self.endpoint

    def __str__(self) -> str:
        return f"{self.name} at {urlsplit(self.endpoint).netloc}"


def bucket_of(settings: Settings) -> Bucket | None:
    """Return the bucket of the outputs; None where outputs are kept on the disk."""
    if not settings.outputs_url:
        return None
    return make_bucket(
        settings.outputs_url,
        default_name=_read_variable("BUCKET_NAME"),
        given=settings.outputs_endpoint,
        region=settings.outputs_region,
        addressing=settings.outputs_addressing,
        key=str(settings.outputs_access_key_id) or _read_variable("AWS_ACCESS_KEY_ID"),
        secret=str(settings.outputs_secret_access_key) or _read_variable("AWS_SECRET_ACCESS_KEY"),
    )


def check_bucket(settings: Settings) -> dict[str, bool]:
    """Return for each setting of the outputs' bucket whether its value is right."""
    addressing = settings.outputs_addressing in ("auto", "host", "path")
    bucket = bucket_of(settings)
    if bucket is None:
        return {"outputs_addressing": addressing}
    return {
        "outputs_url": is_bucket_url(settings.outputs_url, bucket),
        "outputs_endpoint": is_endpoint(bucket.endpoint),
        "outputs_region": is_region(bucket.region),
        "outputs_addressing": addressing,
        "outputs_access_key_id": bool(bucket.access_key_id),
        "outputs_secret_access_key": bool(bucket.secret_access_key),
    }


def make_bucket(
    url: str,
    *,
    default_name: str,
    given: str,
    region: str,
    addressing: str,
    key: str,
    secret: str,
) -> Bucket:
    """Return a bucket; `given` is the setting of the store's address, which may be empty."""
    given = given or _read_variable("AWS_ENDPOINT_URL_S3")
    region = region or _read_variable("AWS_REGION") or ("auto" if given else "us-east-1")
    endpoint = (given or f"https://s3.{region}.amazonaws.com").rstrip("/")
    parts = urlsplit(url)
    return Bucket(
        name=parts.netloc or default_name,
        prefix=parts.path.removeprefix("/").removesuffix("/"),
        endpoint=endpoint,
        region=region,
        is_in_host=_is_in_host(addressing, endpoint),
        access_key_id=key,
        secret_access_key=secret,
    )


def is_bucket_url(text: str, bucket: Bucket) -> bool:
    """Whether this is an address such as s3://bucket/prefix, with names that a store takes."""
    url = urlsplit(text)
    return (
        url.scheme == "s3"
        and not (url.query or url.fragment)
        and bool(_NAME.fullmatch(bucket.name))
        and bool(_PREFIX.fullmatch(bucket.prefix))
    )


def is_endpoint(text: str) -> bool:
    """Whether this is the address of a store, without a path."""
    url = urlsplit(text)
    is_plain = not (url.path or url.query or url.username)
    return url.scheme in ("http", "https") and bool(url.hostname) and is_plain


def is_region(text: str) -> bool:
    """Whether this may be a region's name."""
    return bool(re.fullmatch(r"[A-Za-z0-9-]+", text))


def _is_in_host(addressing: str, endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return addressing == "host" or (addressing == "auto" and host.endswith(_NAMED_BY_HOST))


def _read_variable(name: str) -> str:
    return os.environ.get(name, "")
