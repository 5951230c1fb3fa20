"""Every kind of output store: on disk, and in a bucket of a real S3 server."""

from tests.plugins.gateway_bucket.app.conftest import (
    _no_keys_of_others,
    bucket,
    dead_bucket,
    folder,
    local,
    output_store,
    s3,
)

__all__ = ["_no_keys_of_others", "bucket", "dead_bucket", "folder", "local", "output_store", "s3"]
