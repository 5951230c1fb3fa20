"""The lengths of Opus packets (RFC 6716, section 3.1)."""

from gateway_media.child.bounds import UnfitError

RATE = 48_000
_MOST_SAMPLES = 5760


def packet_samples(packet: bytes) -> int:
    """Return the samples of a packet at 48 kHz; raises `UnfitError` for a malformed one."""
    if not packet:
        raise UnfitError("has an empty packet")
    config, code = packet[0] >> 3, packet[0] & 3
    if config < 12:  # noqa: PLR2004 - SILK
        size = (480, 960, 1920, 2880)[config & 3]
    elif config < 16:  # noqa: PLR2004 - hybrid
        size = (480, 960)[config & 1]
    else:
        size = (120, 240, 480, 960)[config & 3]
    count = (1, 2, 2, packet[1] & 0x3F if len(packet) > 1 else 0)[code]
    if not 0 < size * count <= _MOST_SAMPLES:
        raise UnfitError("has a malformed packet")
    return size * count
