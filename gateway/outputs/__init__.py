"""Artifacts: where outputs are kept, and how they are handed out."""

from gateway.contracts import Artifacts
from gateway.outputs.bucket import BucketArtifacts
from gateway.outputs.bucket_with_fallback import BucketFirst
from gateway.outputs.disk import LocalArtifacts
from gateway.settings import Settings
from gateway.settings.bucket import bucket_of

__all__ = ["BucketArtifacts", "BucketFirst", "LocalArtifacts", "artifacts_of"]


def artifacts_of(settings: Settings, secret: str) -> Artifacts:
    """Return where the settings want outputs; `secret` signs links and is this installation's."""
    disk = LocalArtifacts(settings.data_dir / "outputs", secret)
    bucket = bucket_of(settings)
    if bucket is None:
        return disk
    return BucketFirst(BucketArtifacts(bucket, secret), disk)
