"""Copies of the database in a bucket or folder: made on schedule, thinned out, tried, restored.

Copying itself is in `gateway.store.sqlite.backup` and `gateway.store.sqlite.upgrade`.
"""

from gateway.backups.names import Copy
from gateway.backups.schedule import Backups, BackupTiming
from gateway.errors import BackupFailed

__all__ = ["BackupFailed", "BackupTiming", "Backups", "Copy"]
