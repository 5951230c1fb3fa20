"""Capabilities that several bundled plugins sell, so that an offer has one name and one check."""

from importlib.util import find_spec

from gateway import (
    KILOCHARACTERS,
    MEGAPIXEL,
    PICTURE_FILE,
    PICTURES,
    SECOND,
    Capability,
    Prompt,
    ResultKind,
)
from gateway_media.kinds import SOUND, SOUND_FILE, VIDEO

_SOUND_FORMATS = ("mp3", "opus", "flac", "wav")
_VIDEO_FORMATS = ("mp4", "webm")
_NO_PROMPT = Prompt(use="absent", cheapest="", ignored="Ignored: the file is enough.")
_HARBOUR = "The harbour was quiet. At ten past six the first boats came home."

TRANSCRIPT = ResultKind(
    name="transcript",
    media_types={
        "text/plain": "txt",
        "application/x-subrip": "srt",
        "text/vtt": "vtt",
        "application/json": "json",
    },
    shown="text",
)

BACKGROUND_REMOVAL = Capability(
    name="background-removal",
    title="Cut-out",
    heading="Cut-outs of your pictures",
    about="The subject of the buyer's picture, without its background.",
    result="A picture with alpha as `outputs`.",
    prompt=Prompt(
        use="optional",
        about="A colour for the background, such as `white` or `#ffcc00`.",
        example="white",
        cheapest="",
        ideas=("white", "#ffcc00"),
        examples=("white",),
    ),
    files=(PICTURE_FILE,),
    output_formats=("png", "webp"),
    results=(PICTURES,),
    units=(MEGAPIXEL,),
)
IMAGE_UPSCALING = Capability(
    name="image-upscaling",
    title="Enlarged picture",
    heading="Enlargements of your pictures",
    about="The buyer's picture with more pixels.",
    result="A picture as `outputs`.",
    prompt=_NO_PROMPT,
    files=(PICTURE_FILE,),
    results=(PICTURES,),
    units=(MEGAPIXEL,),
)
TEXT_TO_VIDEO = Capability(
    name="text-to-video",
    title="Video",
    heading="Videos",
    about="A video of the prompt's subject.",
    result="A video as `outputs`.",
    prompt=Prompt(about="What to show in the video."),
    output_formats=_VIDEO_FORMATS,
    results=(VIDEO,),
)
IMAGE_TO_VIDEO = Capability(
    name="image-to-video",
    title="Moving picture",
    heading="Videos of your pictures",
    about="A video that begins with the buyer's picture.",
    result="A video as `outputs`.",
    prompt=Prompt(use="optional", about="What moves in the video.", example="the waves roll in"),
    files=(PICTURE_FILE,),
    output_formats=_VIDEO_FORMATS,
    results=(VIDEO,),
)
TEXT_TO_AUDIO = Capability(
    name="text-to-audio",
    title="Sound",
    heading="Sounds and music",
    about="A sound as the prompt describes it.",
    result="A sound as `outputs`.",
    prompt=Prompt(about="What to hear.", example="rain on a tin roof", cheapest="soft rain"),
    output_formats=_SOUND_FORMATS,
    results=(SOUND,),
)
TEXT_TO_SPEECH = Capability(
    name="text-to-speech",
    title="Speech",
    heading="Texts read aloud",
    about="The prompt, read aloud.",
    result="A sound as `outputs`.",
    prompt=Prompt(
        about="The text to read.",
        example=_HARBOUR,
        cheapest="Good morning.",
        ideas=(_HARBOUR,),
        examples=(_HARBOUR,),
    ),
    output_formats=_SOUND_FORMATS,
    results=(SOUND,),
    units=(KILOCHARACTERS,),
)
SPEECH_TO_TEXT = Capability(
    name="speech-to-text",
    title="Transcript",
    heading="Transcripts of recordings",
    about="The words of the buyer's recording.",
    result="A text: plain, with times as subtitles, or as JSON.",
    prompt=_NO_PROMPT,
    files=(SOUND_FILE,),
    output_formats=("txt", "srt", "vtt", "json"),
    formats_about="`srt` and `vtt` are subtitles; `json` has the times of each sentence.",
    results=(TRANSCRIPT,),
    units=(SECOND,),
)
SPEECH_CLEANUP = Capability(
    name="speech-cleanup",
    title="Clean recording",
    heading="Recordings without noise",
    about="The speech of the buyer's recording, without its noise.",
    result="A sound as `outputs`, as long as the recording.",
    prompt=_NO_PROMPT,
    files=(SOUND_FILE,),
    output_formats=("flac", "wav"),
    results=(SOUND,),
    units=(SECOND,),
)

ALWAYS = (BACKGROUND_REMOVAL, IMAGE_UPSCALING, TEXT_TO_VIDEO, IMAGE_TO_VIDEO)
# They decode sound, which needs the extra `audio`.
WITH_SOUND = (TEXT_TO_AUDIO, TEXT_TO_SPEECH, SPEECH_TO_TEXT, SPEECH_CLEANUP)


def available() -> tuple[Capability, ...]:
    """Return the capabilities whose results can be checked here."""
    return (*ALWAYS, *WITH_SOUND) if find_spec("soundfile") else ALWAYS
