"""The bucket for outputs, from our settings or the variables of Fly and Amazon's tools."""

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import attrs
import typed_settings as ts

from gateway.settings import Settings, secret, setting, wrong

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


@attrs.frozen(kw_only=True)
class BucketSettings:
    """Settings of the bucket that GATEWAY_OUTPUTS_URL names."""

    outputs_endpoint: str = setting(
        "",
        "Address of that store, also for buyers. Empty: AWS_ENDPOINT_URL_S3, else Amazon's.",
        example="https://fly.storage.tigris.dev",
    )
    outputs_region: str = setting(
        "",
        "Its region. Empty: AWS_REGION, else `us-east-1` at Amazon, `auto` elsewhere.",
        example="eu-central-1",
    )
    outputs_addressing: str = setting(
        "auto",
        "Place of the bucket's name in addresses: `host`, `path`, or `auto` (`host` at Amazon and "
        "Tigris, else `path`).",
    )
    outputs_access_key_id: ts.SecretStr = secret(
        "Permanent key that may list, write, read and delete in the bucket. Empty: "
        "AWS_ACCESS_KEY_ID.",
        example="tid_...",
    )
    outputs_secret_access_key: ts.SecretStr = secret(
        "Secret of that key. Empty: AWS_SECRET_ACCESS_KEY.", example="tsec_..."
    )

    def validate(self, settings: Settings) -> Mapping[str, bool]:
        """Return for each value whether it is right; raises `SettingsError` for a wrong URL."""
        addressing = self.outputs_addressing in ("auto", "host", "path")
        if not is_s3(settings.outputs_url):
            return {"outputs_addressing": addressing}
        bucket = self.bucket(settings.outputs_url)
        if not is_bucket_url(settings.outputs_url, bucket):
            field = attrs.fields_dict(Settings)["outputs_url"]
            raise wrong(field.name, field, "is not right")
        return {
            "outputs_endpoint": is_endpoint(bucket.endpoint),
            "outputs_region": is_region(bucket.region),
            "outputs_addressing": addressing,
            "outputs_access_key_id": _is_line(bucket.access_key_id),
            "outputs_secret_access_key": _is_line(bucket.secret_access_key),
        }

    def bucket(self, url: str) -> Bucket:
        """Return the bucket at a URL, completed by the variables of Fly and Amazon's tools."""
        key_id, key = str(self.outputs_access_key_id), str(self.outputs_secret_access_key)
        return make_bucket(
            url,
            default_name=_read_variable("BUCKET_NAME"),
            given=self.outputs_endpoint,
            region=self.outputs_region,
            addressing=self.outputs_addressing,
            key=key_id or _read_variable("AWS_ACCESS_KEY_ID"),
            secret=key or _read_variable("AWS_SECRET_ACCESS_KEY"),
        )


SECTION = BucketSettings


def bucket_of(settings: Settings) -> Bucket | None:
    """Return the bucket of the outputs; None if outputs are not in a bucket.

    Raises `SettingsError` for a wrong value.
    """
    if not is_s3(settings.outputs_url):
        return None
    return settings.section("", BucketSettings).bucket(settings.outputs_url)


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


def is_s3(url: str) -> bool:
    """Whether a URL has the scheme of a bucket."""
    return urlsplit(url).scheme == "s3"


def is_bucket_url(text: str, bucket: Bucket) -> bool:
    """Whether this is an address such as s3://bucket/prefix, with names that a store takes."""
    url = urlsplit(text)
    return (
        is_s3(text)
        and not (url.query or url.fragment)
        and bool(_NAME.fullmatch(bucket.name))
        and bool(_PREFIX.fullmatch(bucket.prefix))
    )


def is_endpoint(text: str) -> bool:
    """Whether this is the address of a store, without a path."""
    url = urlsplit(text)
    is_plain = text.isprintable() and not (url.path or url.query or url.username)
    return url.scheme in ("http", "https") and bool(url.hostname) and is_plain


def is_region(text: str) -> bool:
    """Whether this may be a region's name."""
    return bool(re.fullmatch(r"[A-Za-z0-9-]+", text))


def _is_line(text: str) -> bool:
    """Whether this is one line, and not empty."""
    return bool(text) and text.isprintable()


def _is_in_host(addressing: str, endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return addressing == "host" or (addressing == "auto" and host.endswith(_NAMED_BY_HOST))


def _read_variable(name: str) -> str:
    return os.environ.get(name, "")
