"""The seconds of the sound of an MP4, by its packets."""

from gateway_media.child import opus
from gateway_media.child.bounds import LEAST_RATE, UnfitError, priced_seconds
from gateway_media.child.boxes import Box
from gateway_media.child.movie import Track
from gateway_media.child.mp4_entries import check_sound, decoder_config, decoder_info

# ISO/IEC 14496-3.
_AAC = 0x40
_LC, _SBR, _PS = 2, 5, 29
_AAC_RATES = (
    *(96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000),
    *(12_000, 11_025, 8_000, 7_350),
)
_EXPLICIT_RATE = 15
_AAC_SAMPLES = 1024


def measure(
    data: bytes, entry: Box, parts: list[Box], places: list[tuple[int, int]], track: Track
) -> None:
    """Note the seconds that the packets of a sound decode to at least.

    Raises `UnfitError` for another form than AAC and Opus.
    """
    own = check_sound(entry, parts)
    if entry.name == b"Opus":
        samples = sum(opus.packet_samples(data[at : at + min(size, 2)]) for at, size in places)
        track.packets_s = samples / opus.RATE
        return
    config = decoder_config(data[own.body + 4 : own.end])
    if config[0] != _AAC:
        raise UnfitError("has a sound track that is not AAC or Opus")
    track.packets_s = priced_seconds(len(places) * _AAC_SAMPLES, _aac_rate(decoder_info(config)))
    # One packet may have several frames, each with its own rate.
    track.needs_decoder = True


def _aac_rate(info: bytes) -> int:
    """Return the rate of the samples that packets are counted in."""
    bits = int.from_bytes(info[:8].ljust(8, b"\0"))
    form, index = bits >> 59, bits >> 55 & 0xF
    rate = bits >> 31 & 0xFFFFFF if index == _EXPLICIT_RATE else 0
    if index < len(_AAC_RATES):
        rate = _AAC_RATES[index]
    if form not in (_LC, _SBR, _PS) or rate < LEAST_RATE:
        raise UnfitError("has a sound track that is not plain AAC")
    return rate
