"""Outputs in an S3-compatible bucket: `GATEWAY_OUTPUTS_URL=s3://…`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from gateway import hookimpl
from gateway_bucket.settings import BucketSettings

if TYPE_CHECKING:
    from gateway.contracts import OutputStore
    from gateway.outputs import DiskOutputs
    from gateway.settings import Settings


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define GATEWAY_OUTPUTS_…, except the URL."""
    register("", BucketSettings)


def open_outputs(settings: "Settings", secret: str, disk: "DiskOutputs") -> "OutputStore":
    """Return the outputs in the bucket; `secret` is the installation's, and names its folder.

    A single machine keeps outputs on `disk` while the bucket is down. Other nodes could not read
    them there.
    """
    # Most gateways have no bucket.
    from gateway_bucket.fallback import BucketWithFallback  # noqa: PLC0415
    from gateway_bucket.outputs import BucketOutputs  # noqa: PLC0415

    bucket = settings.section("", BucketSettings).bucket(settings.outputs_url)
    outputs = BucketOutputs(bucket, secret, disk.types)
    return outputs if settings.database_url else BucketWithFallback(outputs, disk)
