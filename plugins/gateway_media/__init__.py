"""Kinds of sound and video, and capabilities of several sellers; it offers nothing to buyers.

`SOUND_FILE` and `SOUND` need the extra `audio`, and M4A and WebM of `SOUND_FILE` the extra `m4a`.
`VIDEO_FILE` needs `m4a` only for sound with AAC, and `VIDEO` needs none.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gateway import Capability, SettingsError, hookimpl

if TYPE_CHECKING:
    from gateway_media.kinds import SOUND, SOUND_FILE, VIDEO, VIDEO_FILE

__all__ = ["SOUND", "SOUND_FILE", "VIDEO", "VIDEO_FILE"]

_NEED_DECODER = ("SOUND", "SOUND_FILE")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a kind; raises `SettingsError` with the remedy if its decoder is missing."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _NEED_DECODER and find_spec("soundfile") is None:
            raise SettingsError(
                f"gateway_media.{name} needs a decoder of sounds: install "
                "generation-gateway[audio]."
            )
        from gateway_media import kinds  # noqa: PLC0415 - most gateways sell neither

        return getattr(kinds, name)


@hookimpl
def register_capabilities(register: Callable[[Capability], None]) -> None:
    """Declare the capabilities whose results can be checked here."""
    from gateway_media.capabilities import available  # noqa: PLC0415 - the kinds import slowly

    for capability in available():
        register(capability)
