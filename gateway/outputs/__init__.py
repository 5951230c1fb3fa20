"""Where outputs are kept, how buyers get them, and when they are deleted.

The file that a buyer sends with a request lies in the database, until its task has ended.
"""

from gateway.contracts import OutputStore
from gateway.outputs.bucket import BucketOutputs
from gateway.outputs.bucket_with_fallback import BucketWithFallback
from gateway.outputs.disk import DiskOutputs
from gateway.settings import Settings
from gateway.settings.bucket import bucket_of

__all__ = ["BucketOutputs", "BucketWithFallback", "DiskOutputs", "open_outputs"]


def open_outputs(settings: Settings, secret: str) -> OutputStore:
    """Return the place for outputs that the settings name.

    `secret` is this installation's own: it signs links, and names its folder in a bucket.
    """
    disk = DiskOutputs(settings.data_dir / "outputs", secret)
    bucket = bucket_of(settings)
    if bucket is None:
        return disk
    if settings.database_url:
        # What lies on this machine's disk is a sold result that no other node can show.
        return BucketOutputs(bucket, secret)
    return BucketWithFallback(BucketOutputs(bucket, secret), disk)
