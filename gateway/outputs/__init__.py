"""Outputs: where they are kept, and how they are handed out."""

from gateway.contracts import OutputStore
from gateway.outputs.bucket import BucketOutputs
from gateway.outputs.bucket_with_fallback import BucketWithFallback
from gateway.outputs.disk import DiskOutputs
from gateway.settings import Settings
from gateway.settings.bucket import bucket_of

__all__ = ["BucketOutputs", "BucketWithFallback", "DiskOutputs", "open_outputs"]


def open_outputs(settings: Settings, secret: str) -> OutputStore:
    """Return where the settings want outputs; `secret` signs links and is this installation's."""
    disk = DiskOutputs(settings.data_dir / "outputs", secret)
    bucket = bucket_of(settings)
    if bucket is None:
        return disk
    return BucketWithFallback(BucketOutputs(bucket, secret), disk)
