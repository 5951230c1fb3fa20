"""Copies of the database in a bucket or folder: made on schedule, thinned out, tried, restored.

Copying itself is in `gateway_backups.sqlite` and `gateway.store.sqlite.upgrade`.
"""

from gateway.errors import BackupFailed
from gateway_backups.names import Copy
from gateway_backups.schedule import Backups, BackupTiming

__all__ = ["BackupFailed", "BackupTiming", "Backups", "Copy"]
