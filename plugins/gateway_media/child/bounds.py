"""Bounds of sounds and videos, and the refusal that readers raise."""

# Buyers' files; a provider's result may be longer.
MOST_SECONDS = 1_800
LEAST_SECONDS = 0.1
MOST_RESULT_SECONDS = 4 * 3_600
# A header may promise any rate, and prices are by the second. So a second has at most these samples
# and frames: a higher rate makes no file cheaper.
PRICED_RATE = 48_000
PRICED_FRAME_RATE = 120
MOST_RATE = 192_000
LEAST_RATE = 4_000
MOST_CHANNELS = 2
LEAST_SIDE, MOST_SIDE, MOST_RESULT_SIDE = 16, 4_096, 16_384


class UnfitError(Exception):
    """The file cannot be sold. The message is a predicate, such as "is cut off"."""


CUT_OFF = "is cut off: its header promises more"
TOO_LONG = "has more than {:,} seconds"


def check_form(rate: int, channels: int, most_channels: int = MOST_CHANNELS) -> None:
    """Raise `UnfitError` for an unusual rate or number of channels."""
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise UnfitError(f"has not {LEAST_RATE:,} to {MOST_RATE:,} samples a second")
    if not 1 <= channels <= most_channels:
        raise UnfitError(f"has {channels} channels; 1 to {most_channels} are allowed")


def priced_seconds(samples: int, rate: int) -> float:
    """Return the seconds that samples of one channel are sold as."""
    return samples / min(rate, PRICED_RATE)


def check_length(seconds: float, most: float = MOST_SECONDS) -> None:
    """Raise `UnfitError` for a file without content, or a long one."""
    if not seconds > 0:
        raise UnfitError("is empty")
    if seconds > most:
        raise UnfitError(TOO_LONG.format(most))


def check_size(data: bytes, most_bytes: str) -> None:
    """Raise `UnfitError` for a file that is larger than the endpoint allows."""
    if len(data) > int(most_bytes):
        raise UnfitError(
            f"has {len(data):,} bytes, once it is read; {int(most_bytes):,} are allowed"
        )
