"""The bucket for outputs: from our settings, else from the variables of Fly and Amazon's tools."""

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
    """Return the bucket; None where outputs are kept on the disk."""
    if not settings.outputs_url:
        return None
    url = urlsplit(settings.outputs_url)
    given = settings.outputs_endpoint or _read_variable("AWS_ENDPOINT_URL_S3")
    default_region = "auto" if given else "us-east-1"
    region = settings.outputs_region or _read_variable("AWS_REGION") or default_region
    endpoint = (given or f"https://s3.{region}.amazonaws.com").rstrip("/")
    return Bucket(
        name=url.netloc or _read_variable("BUCKET_NAME"),
        prefix=url.path.removeprefix("/").removesuffix("/"),
        endpoint=endpoint,
        region=region,
        is_in_host=_is_in_host(settings.outputs_addressing, endpoint),
        access_key_id=str(settings.outputs_access_key_id) or _read_variable("AWS_ACCESS_KEY_ID"),
        secret_access_key=str(settings.outputs_secret_access_key)
        or _read_variable("AWS_SECRET_ACCESS_KEY"),
    )


def judge_bucket(settings: Settings) -> dict[str, bool]:
    """Return for each of the bucket's settings whether its value is right."""
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


def _read_variable(name: str) -> str:
    return os.environ.get(name, "")
