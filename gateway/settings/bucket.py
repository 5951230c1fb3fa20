"""The buckets for outputs and copies, from our settings or what Fly and Amazon's tools set."""

import math
import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

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
    return _make_bucket(
        settings.outputs_url,
        default_name=_read_variable("BUCKET_NAME"),
        given=settings.outputs_endpoint,
        region=settings.outputs_region,
        addressing=settings.outputs_addressing,
        key=str(settings.outputs_access_key_id) or _read_variable("AWS_ACCESS_KEY_ID"),
        secret=str(settings.outputs_secret_access_key) or _read_variable("AWS_SECRET_ACCESS_KEY"),
    )


def backup_bucket_of(settings: Settings, url: str | None = None) -> Bucket | None:
    """Return the bucket of the copies, or that of another address; None where it is no bucket.

    Its key is never taken from the variables of others: those are the outputs'.
    """
    url = url or settings.backup_url
    if not url.startswith("s3:"):
        return None
    return _make_bucket(
        url,
        default_name="",
        given=settings.backup_s3_endpoint,
        region=settings.backup_s3_region,
        addressing=settings.backup_s3_addressing,
        key=str(settings.backup_s3_access_key_id),
        secret=str(settings.backup_s3_secret_access_key),
    )


def backup_folder_of(settings: Settings) -> Path | None:
    """Return the folder of the copies; None where they go to a bucket, or nowhere."""
    url = urlsplit(settings.backup_url)
    return Path(unquote(url.path)) if url.scheme == "file" else None


def judge_bucket(settings: Settings) -> dict[str, bool]:
    """Return for each setting of the outputs' bucket whether its value is right."""
    addressing = settings.outputs_addressing in ("auto", "host", "path")
    bucket = bucket_of(settings)
    if bucket is None:
        return {"outputs_addressing": addressing}
    return {
        "outputs_url": _is_bucket_url(settings.outputs_url, bucket),
        "outputs_endpoint": _is_endpoint(bucket.endpoint),
        "outputs_region": _is_region(bucket.region),
        "outputs_addressing": addressing,
        "outputs_access_key_id": bool(bucket.access_key_id),
        "outputs_secret_access_key": bool(bucket.secret_access_key),
    }


def judge_backups(settings: Settings) -> dict[str, bool]:
    """Return for each setting of the copies whether its value is right."""
    judged = {
        "backup_s3_addressing": settings.backup_s3_addressing in ("auto", "host", "path"),
        "backup_hours": 0 < settings.backup_hours < math.inf,
    }
    if not settings.backup_url:
        return judged
    bucket = backup_bucket_of(settings)
    if bucket is None:
        return judged | {"backup_url": _is_folder_url(settings.backup_url)}
    outputs = bucket_of(settings)
    is_outputs_key = outputs is not None and outputs.access_key_id == bucket.access_key_id
    return judged | {
        "backup_url": _is_bucket_url(settings.backup_url, bucket),
        "backup_s3_endpoint": _is_endpoint(bucket.endpoint),
        "backup_s3_region": _is_region(bucket.region),
        "backup_s3_access_key_id": bool(bucket.access_key_id) and not is_outputs_key,
        "backup_s3_secret_access_key": bool(bucket.secret_access_key),
    }


def _make_bucket(
    url: str,
    *,
    default_name: str,
    given: str,
    region: str,
    addressing: str,
    key: str,
    secret: str,
) -> Bucket:
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


def _is_bucket_url(text: str, bucket: Bucket) -> bool:
    url = urlsplit(text)
    return (
        url.scheme == "s3"
        and not (url.query or url.fragment)
        and bool(_NAME.fullmatch(bucket.name))
        and bool(_PREFIX.fullmatch(bucket.prefix))
    )


def _is_folder_url(text: str) -> bool:
    """Whether this names a folder of this machine by its whole path."""
    url = urlsplit(text)
    is_plain = not (url.netloc or url.query or url.fragment)
    return url.scheme == "file" and is_plain and len(url.path) > 1 and url.path[0] == "/"


def _is_endpoint(text: str) -> bool:
    url = urlsplit(text)
    is_plain = not (url.path or url.query or url.username)
    return url.scheme in ("http", "https") and bool(url.hostname) and is_plain


def _is_region(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9-]+", text))


def _is_in_host(addressing: str, endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return addressing == "host" or (addressing == "auto" and host.endswith(_NAMED_BY_HOST))


def _read_variable(name: str) -> str:
    return os.environ.get(name, "")
