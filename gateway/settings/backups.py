"""Settings of the copies of the database: where they go, how often, and which one to restore."""

import attrs
import typed_settings as ts

from gateway.settings.sections import secret, setting


# Classes with slots cannot be bases of one class.
@attrs.frozen(kw_only=True, slots=False)
class BackupSettings:
    """What an operator may set about copies of the database."""

    backup_url: str = setting(
        "",
        "Where copies of the database go: a bucket of an S3-compatible store with a prefix, or a "
        "folder as file:///folder. Empty: no copies are made. They hold payers and prompts, so the "
        "bucket is private.",
        example="s3://my-backups/gateway",
    )
    backup_hours: float = setting(1.0, "Hours between two copies.")
    backup_s3_endpoint: str = setting(
        "",
        "Address of that store. Empty: AWS_ENDPOINT_URL_S3, else Amazon's.",
        example="https://fly.storage.tigris.dev",
    )
    backup_s3_region: str = setting(
        "",
        "Region of that bucket. Empty: AWS_REGION, else `us-east-1` at Amazon and `auto` "
        "elsewhere.",
        example="eu-central-1",
    )
    backup_s3_addressing: str = setting(
        "auto", "As GATEWAY_OUTPUTS_ADDRESSING, for the bucket of the copies."
    )
    backup_s3_access_key_id: ts.SecretStr = secret(
        "Key that may list, write, read and delete in the bucket of the copies. It must be another "
        "key than that of the outputs.",
        example="tid_...",
    )
    backup_s3_secret_access_key: ts.SecretStr = secret("Secret of that key.", example="tsec_...")
    restore: str = setting(
        "",
        "A copy that the next start puts in the database's place, once: `latest`, the name of a "
        "copy in GATEWAY_BACKUP_URL, its s3:// address, or a file. While the value stays, later "
        "starts do nothing; unset it afterwards.",
        example="latest",
    )
