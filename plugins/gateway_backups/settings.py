"""Settings of the copies of the database: where they go, how often, and which one to restore."""

import math
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import attrs
import typed_settings as ts

from gateway.errors import SettingsError
from gateway.settings import Settings, secret, setting
from gateway_bucket.settings import (
    Bucket,
    bucket_of,
    is_bucket_url,
    is_endpoint,
    is_region,
    make_bucket,
)


@attrs.frozen(kw_only=True)
class BackupSettings:
    """Settings of copies of the database."""

    backup_url: str = setting(
        "",
        "Private S3-compatible bucket with a prefix, or file:///folder, for copies of the "
        "database, which hold payers and prompts. Empty: none.",
        example="s3://my-backups/gateway",
    )
    backup_hours: float = setting(1.0, "Hours between two copies.")
    backup_s3_endpoint: str = setting(
        "",
        "Address of that store; empty as for GATEWAY_OUTPUTS_ENDPOINT.",
        example="https://fly.storage.tigris.dev",
    )
    backup_s3_region: str = setting(
        "",
        "Its region; empty as for GATEWAY_OUTPUTS_REGION.",
        example="eu-central-1",
    )
    backup_s3_addressing: str = setting("auto", "As GATEWAY_OUTPUTS_ADDRESSING.")
    backup_s3_access_key_id: ts.SecretStr = secret(
        "Key that may list, write, read and delete there; not the outputs' key.",
        example="tid_...",
    )
    backup_s3_secret_access_key: ts.SecretStr = secret("Secret of that key.", example="tsec_...")
    restore: str = setting(
        "",
        "Copy that the next start restores, once: `latest`, a name, its s3:// address, or a "
        "file. Unset it afterwards.",
        example="latest",
    )

    def validate(self, settings: Settings) -> Mapping[str, bool]:
        """Return for each value whether it is right; raises `SettingsError` on PostgreSQL."""
        if settings.database_url and (self.backup_url or self.restore):
            raise SettingsError(
                "GATEWAY_BACKUP_URL and GATEWAY_RESTORE copy SQLite's file. PostgreSQL has backups "
                "of its own: unset them."
            )
        judged = {
            "backup_s3_addressing": self.backup_s3_addressing in ("auto", "host", "path"),
            "backup_hours": 0 < self.backup_hours < math.inf,
        }
        if not self.backup_url:
            return judged
        bucket = self.bucket()
        if bucket is None:
            return judged | {"backup_url": _is_folder_url(self.backup_url)}
        outputs = bucket_of(settings)
        is_outputs_key = outputs is not None and outputs.access_key_id == bucket.access_key_id
        return judged | {
            "backup_url": is_bucket_url(self.backup_url, bucket),
            "backup_s3_endpoint": is_endpoint(bucket.endpoint),
            "backup_s3_region": is_region(bucket.region),
            "backup_s3_access_key_id": bool(bucket.access_key_id) and not is_outputs_key,
            "backup_s3_secret_access_key": bool(bucket.secret_access_key),
        }

    def bucket(self, url: str | None = None) -> Bucket | None:
        """Return the bucket of the copies, or that of another address; None if it is no bucket.

        Its key is never taken from the variables of others: those are the outputs'.
        """
        url = url or self.backup_url
        if not url.startswith("s3:"):
            return None
        return make_bucket(
            url,
            default_name="",
            given=self.backup_s3_endpoint,
            region=self.backup_s3_region,
            addressing=self.backup_s3_addressing,
            key=str(self.backup_s3_access_key_id),
            secret=str(self.backup_s3_secret_access_key),
        )

    def folder(self) -> Path | None:
        """Return the folder of the copies; None if they go to a bucket, or nowhere."""
        url = urlsplit(self.backup_url)
        return Path(unquote(url.path)) if url.scheme == "file" else None


SECTION = BackupSettings


def backup_settings_of(settings: Settings) -> BackupSettings:
    """Return the checked settings of copies."""
    return settings.section("", BackupSettings)


def _is_folder_url(text: str) -> bool:
    """Whether this names a folder of this machine by its whole path."""
    url = urlsplit(text)
    is_plain = not (url.netloc or url.query or url.fragment)
    return url.scheme == "file" and is_plain and len(url.path) > 1 and url.path[0] == "/"
