"""Storage of outputs, links to them, and their deletion after the retention period.

A buyer's uploaded file is in the database instead, until its task ends.
"""

from gateway.contracts import OutputStore
from gateway.installed import load_opener
from gateway.outputs.disk import DiskOutputs
from gateway.outputs.keys import MediaTypes
from gateway.settings import Settings

__all__ = ["DiskOutputs", "open_outputs"]


def open_outputs(settings: Settings, secret: str, types: MediaTypes | None = None) -> OutputStore:
    """Return the output store that the settings select: a plugin's, or the data folder.

    `secret` is this installation's own and signs links. `types`: the catalog's. Raises
    `SettingsError` if no plugin opens the store.
    """
    disk = DiskOutputs(settings.data_dir / "outputs", secret, types)
    url = settings.outputs_url
    if not url:
        return disk
    open_store = load_opener(
        "gateway.outputs", "GATEWAY_OUTPUTS_URL", url, settings.plugins_disabled
    )
    store: OutputStore = open_store(settings, secret, disk)
    return store
