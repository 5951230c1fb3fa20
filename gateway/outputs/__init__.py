"""Storage of outputs, links to them, and their deletion after the retention period.

A buyer's uploaded file is in the database instead, until its task ends.
"""

from gateway.contracts import OutputStore
from gateway.outputs.bucket import BucketOutputs
from gateway.outputs.bucket_with_fallback import BucketWithFallback
from gateway.outputs.disk import DiskOutputs
from gateway.settings import Settings
from gateway.settings.bucket import bucket_of

__all__ = ["BucketOutputs", "BucketWithFallback", "DiskOutputs", "open_outputs"]


def open_outputs(settings: Settings, secret: str) -> OutputStore:
    """Return the output store that the settings select.

    `secret` is this installation's own: it signs links, and names its folder in a bucket.
    """
    disk = DiskOutputs(settings.data_dir / "outputs", secret)
    bucket = bucket_of(settings)
    if bucket is None:
        return disk
    if settings.database_url:
        # Outputs on this machine's disk would be invisible to other nodes.
        return BucketOutputs(bucket, secret)
    return BucketWithFallback(BucketOutputs(bucket, secret), disk)
