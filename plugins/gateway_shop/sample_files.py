"""Files for buyers who have none at hand, also sent by `gateway examples`; all are built assets."""

import attrs

from gateway.domain import PICTURE_FILE, Endpoint


@attrs.frozen
class SampleFile:
    """A built asset that serves as a buyer's file."""

    asset: str

    @property
    def ending(self) -> str:
        """Its extension with the dot."""
        return self.asset[self.asset.rindex(".") :]


# A drawing to edit, a photograph with one clear subject, and a spoken sentence.
_LAKE = SampleFile("sandbox.webp")
_PHOTOGRAPH = SampleFile("photo.webp")
_SPEECH = SampleFile("speech.ogg")


def choose(endpoint: Endpoint) -> SampleFile | None:
    """Return the file that shows best what an endpoint does, or None."""
    kinds = endpoint.file_kinds
    if PICTURE_FILE in kinds:
        return _LAKE if "prompt" in endpoint.required_fields else _PHOTOGRAPH
    return _SPEECH if any(".ogg" in kind.endings for kind in kinds) else None
