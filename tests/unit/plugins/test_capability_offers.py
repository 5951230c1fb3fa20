"""A wrong declaration of a capability is one sentence; its endpoints are checked by it."""

import attrs
import pytest

from gateway import (
    KILOCHARACTERS,
    MEGAPIXEL,
    PAGE,
    PICTURE_FILE,
    PICTURES,
    SECOND,
    Capability,
    Choice,
    FileKind,
    InSandbox,
    Limit,
    Prompt,
    ResultKind,
    UnitPrice,
)
from gateway.outputs.keys import MediaTypes
from gateway.plugins.capability_offers import capability_offer
from gateway.plugins.registration import endpoint_offer
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider

READ = InSandbox(function="acme.child:read")
FILE = FileKind(name="recording", endings=(".wav",), read=READ, measures=("seconds",))
SOUND = ResultKind(name="sound", media_types={"audio/wav": "wav"}, check=READ, facts=("seconds",))
CAPABILITY = Capability(
    name="sound-cleaning",
    prompt=Prompt(use="absent"),
    files=(FILE,),
    output_formats=("wav",),
    resolutions=("48k",),
    results=(SOUND,),
)
UPSCALING = Capability(
    name="upscaling", prompt=Prompt(use="absent"), files=(PICTURE_FILE,), results=(PICTURES,)
)
OFFER = attrs.evolve(
    ENDPOINT,
    capability=CAPABILITY.name,
    required_fields=("fileBase64", "fileName"),
    file_extensions=(".wav",),
)


def offer(capability):
    return capability_offer(MediaTypes(), capability)


def test_a_right_declaration_is_taken():
    assert offer(CAPABILITY) == (CAPABILITY.name, CAPABILITY)
    assert offer(UPSCALING) == (UPSCALING.name, UPSCALING)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "Sound"}, "not spelled like"),
        ({"name": "text-to-image"}, "declares it itself"),
        ({"files": ()}, "neither a prompt nor a file"),
        ({"prompt": None}, "no gateway.Prompt"),
        ({"prompt": Prompt(check="words")}, "no function"),
        ({"output_formats": ("WAV",)}, "lower-case"),
        ({"files": ("a file",)}, "not a gateway.FileKind"),
        ({"files": (attrs.evolve(FILE, endings=("wav",)),)}, "spelled like .pdf"),
        ({"files": (attrs.evolve(FILE, limits=(Limit(measure="pages", most=1),)),)}, "none of its"),
        ({"files": (attrs.evolve(FILE, read=print),)}, "no InSandbox"),
        ({"files": (attrs.evolve(FILE, read=InSandbox(function="print")),)}, "no InSandbox"),
        ({"files": (attrs.evolve(FILE, read=attrs.evolve(READ, cpu_s=0)),)}, "no number above 0"),
        ({"files": (attrs.evolve(FILE, read=None),)}, "no read that measures"),
        ({"files": (FILE, attrs.evolve(FILE, endings=(".mp3",)))}, "have one name"),
        (
            {"files": (attrs.evolve(PICTURE_FILE, limits=(Limit(measure="pixels", most=9),)),)},
            "no read that measures",
        ),
        ({"results": ("a sound",)}, "not a gateway.ResultKind"),
        ({"results": (attrs.evolve(SOUND, check=None),)}, "no check that finds them"),
        ({"results": (attrs.evolve(SOUND, media_types={"wav": "wav"}),)}, "not spelled right"),
        ({"results": (attrs.evolve(SOUND, media_types={"a/b": "../x"}),)}, "not spelled right"),
        ({"results": (attrs.evolve(SOUND, media_types={"audio/wav": "png"}),)}, "is taken"),
        ({"results": (attrs.evolve(SOUND, media_types={"a/b": "partial"}),)}, "is taken"),
        (
            {
                "results": (
                    ResultKind(name="page", media_types={"text/html": "html"}, is_inline=True),
                )
            },
            "may run scripts",
        ),
        (
            {
                "results": (
                    attrs.evolve(SOUND, media_types={"image/svg+xml": "svg"}, is_inline=True),
                )
            },
            "may run scripts",
        ),
    ],
)
def test_a_wrong_declaration_is_one_sentence(changes, words):
    with pytest.raises(ValueError, match=words):
        offer(attrs.evolve(CAPABILITY, **changes))


def test_what_is_no_capability_is_named():
    with pytest.raises(TypeError, match="registers a str"):
        offer("sound-cleaning")


def endpoint(**changes):
    known = {one.name: one for one in (CAPABILITY, UPSCALING)}
    return endpoint_offer(attrs.evolve(OFFER, **changes), ScriptedProvider(), capabilities=known)


def test_an_endpoint_carries_the_declaration_of_its_capability():
    _, (sold, _) = endpoint()
    assert sold.declaration is CAPABILITY
    _, (other, _) = endpoint(
        capability="text-to-image", file_extensions=(), required_fields=("prompt",)
    )
    assert other.declaration.name == "text-to-image"


def test_an_endpoint_may_use_what_a_missing_declaration_would_allow():
    unit = UnitPrice(unit=SECOND, price_units=1, most=9)
    wav = Choice(values=("wav",))
    _, (sold, _) = endpoint(capability="another-plugins", output_format=wav, unit_price=unit)
    assert not sold.is_declared


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"file_extensions": (".mp3",)}, "takes recording files: file_extensions are any of .wav"),
        ({"max_pages": 3}, "a recording has no pages"),
        ({"resolution": Choice(values=("9K",))}, "resolution '9K' is none of 48k"),
        ({"output_format": Choice(values=("png",))}, "output_format 'png' is none of wav"),
        ({"unit_price": UnitPrice(unit=PAGE, price_units=1, most=9)}, "price_per_page"),
        (
            {"unit_price": UnitPrice(unit=MEGAPIXEL, price_units=1, most=9)},
            "which its files do not",
        ),
        ({"unit_price": UnitPrice(unit=SECOND, price_units=1, most=0)}, "whole numbers"),
        ({"unit_price": "0.001"}, "no gateway.UnitPrice"),
        *(
            ({"unit_price": UnitPrice(unit=unit, price_units=1, most=most)}, words)
            for unit, most, words in (
                (attrs.evolve(SECOND, size=0), 9, "no gateway.Unit"),
                (attrs.evolve(SECOND, size=0.5), 9, "no gateway.Unit"),
                (attrs.evolve(SECOND, of="day"), 9, "no gateway.Unit"),
                ("second", 9, "no gateway.Unit"),
                (attrs.evolve(PAGE, name="sheet"), 9, "price_per_page"),
                (KILOCHARACTERS, 10**9, "characters of a prompt"),
                (SECOND, 10**15, "takes more than"),
            )
        ),
        ({"file_extensions": (), "required_fields": ()}, "needs fileBase64 and fileName"),
        ({"capability": "upscaling", "file_extensions": (".jpg",)}, "are .png and any of"),
    ],
)
def test_an_endpoint_that_breaks_its_declaration_is_one_sentence(changes, words):
    with pytest.raises(ValueError, match=words):
        endpoint(**changes)
