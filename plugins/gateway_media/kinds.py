"""The declarations of sounds and videos."""

from importlib.util import find_spec

from gateway import FileKind, InSandbox, Limit, ResultKind
from gateway_media import samples
from gateway_media.child import bounds

_SOUND, _VIDEO = "gateway_media.child.sound", "gateway_media.child.video"
_DECODER = "gateway_media.child.decoder:warm"
# A check may return a file with another header.
_ANSWER_BYTES = 64_001_000
_HAS_PYAV = find_spec("av") is not None
_PACKED = ("gateway_media.child.packed_sound:warm",) if _HAS_PYAV else ()
_PLAYER = ("gateway_media.child.player:warm",) if _HAS_PYAV else ()
_LENGTH = f"{bounds.LEAST_SECONDS:g} to {bounds.MOST_SECONDS:,}"
_SECONDS = Limit(measure="seconds", least=bounds.LEAST_SECONDS, most=bounds.MOST_SECONDS)

_PLAIN_SOUNDS = {
    ".wav": samples.WAV,
    ".mp3": samples.MP3,
    ".flac": samples.FLAC,
    ".ogg": samples.OGG,
    ".opus": samples.OGG,
}
_PACKED_SOUNDS = {".m4a": samples.M4A, ".webm": samples.WEBM_SOUND} if _HAS_PYAV else {}
_VIDEO_SOUNDS = "AAC or Opus" if _HAS_PYAV else "Opus"
_PACKED_NOTE = ", an M4A with AAC, a WebM with Opus or Vorbis" if _HAS_PYAV else ""

SOUND_FILE = FileKind(
    name="sound",
    plural="sounds",
    endings=(*_PLAIN_SOUNDS, *_PACKED_SOUNDS),
    read=InSandbox(
        function=f"{_SOUND}:read_sound",
        warm=(_DECODER, *_PACKED),
        cpu_s=15,
        wall_s=40.0,
    ),
    measures=("seconds",),
    limits=(_SECONDS,),
    about=f" One sound of {_LENGTH} seconds in one or two channels.",
    note=(
        f"the file is a WAV with plain samples, a FLAC, an MP3, an Ogg with Opus or Vorbis"
        f"{_PACKED_NOTE}: one sound of {_LENGTH} s in one or two channels; a second has at most "
        f"{bounds.PRICED_RATE:,} samples"
    ),
    facts={"maxSoundSeconds": bounds.MOST_SECONDS},
    samples=_PLAIN_SOUNDS | _PACKED_SOUNDS,
    sample_name="sound",
)
SOUND = ResultKind(
    name="sound",
    media_types={
        "audio/wav": "wav",
        "audio/flac": "flac",
        "audio/mpeg": "mp3",
        "audio/ogg": "ogg",
    },
    check=InSandbox(
        function=f"{_SOUND}:check_sound",
        warm=(_DECODER,),
        memory_bytes=900_000_000,
        cpu_s=30,
        wall_s=75.0,
        answer_bytes=_ANSWER_BYTES,
    ),
    facts=("seconds",),
    shown="sound",
)
VIDEO_FILE = FileKind(
    name="video",
    plural="videos",
    endings=(".mp4", ".webm"),
    read=InSandbox(function=f"{_VIDEO}:read_video", warm=_PLAYER, cpu_s=15, wall_s=40.0),
    measures=("seconds", "width", "height"),
    limits=(_SECONDS,),
    about=f" One video of {_LENGTH} seconds, with at most one sound track.",
    note=(
        f"the file is an MP4 without fragments, or a WebM: one video track of {_LENGTH} s, and at "
        f"most one sound track of {_VIDEO_SOUNDS}; each side "
        f"{bounds.LEAST_SIDE} to {bounds.MOST_SIDE:,} pixels; a second has at most "
        f"{bounds.PRICED_FRAME_RATE} frames"
    ),
    facts={"maxVideoSeconds": bounds.MOST_SECONDS},
    samples={".mp4": samples.MP4, ".webm": samples.WEBM},
    sample_name="video",
)
VIDEO = ResultKind(
    name="video",
    media_types={"video/mp4": "mp4", "video/webm": "webm"},
    check=InSandbox(
        function=f"{_VIDEO}:check_video",
        warm=_PLAYER,
        memory_bytes=900_000_000,
        cpu_s=20,
        wall_s=50.0,
        answer_bytes=_ANSWER_BYTES,
    ),
    facts=("width", "height", "seconds"),
    shown="video",
)
