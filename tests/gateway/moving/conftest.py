"""The settings of a gateway that is moved; no chain is asked."""

from tests.gateway.outputs.conftest import _no_keys_of_others, bucket, dead_bucket, s3
from tests.unit.conftest import settings

__all__ = ["_no_keys_of_others", "bucket", "dead_bucket", "s3", "settings"]
