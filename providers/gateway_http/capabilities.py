"""Declares capabilities that no plugin declares, from the table `declares` of a declaration."""

from collections.abc import Mapping

import gateway_media
from gateway import (
    DATA,
    DOCUMENT_FILE,
    PICTURE_FILE,
    PICTURES,
    TEXT,
    Capability,
    FileKind,
    Prompt,
    ResultKind,
    SettingsError,
)
from gateway_http.declarations import Content, Declaration, Declares, Made


def declared_in(found: Mapping[str, Declaration]) -> list[Capability]:
    """Return the capabilities that declarations declare, each once; raises `SettingsError`."""
    known: dict[str, tuple[str, Declares]] = {}
    for slug, one in found.items():
        if one.declares is None:
            continue
        first, declares = known.setdefault(one.capability, (slug, one.declares))
        if declares != one.declares:
            raise SettingsError(
                f"{first}.toml and {slug}.toml declare {one.capability} differently. Remove the "
                "table declares from one of the two."
            )
    return [_capability_of(name, declares) for name, (_, declares) in known.items()]


def _capability_of(name: str, one: Declares) -> Capability:
    is_absent = one.prompt == "absent"
    return Capability(
        name=name,
        title=one.title,
        heading=one.heading,
        about=one.about,
        prompt=Prompt(use="absent", cheapest="") if is_absent else Prompt(use=one.prompt),
        files=() if one.file is None else (_file_kind(one.file),),
        output_formats=(),
        results=(_result_kind(one.result),),
    )


def _file_kind(content: Content) -> FileKind:
    match content:
        case "picture":
            return PICTURE_FILE
        case "document":
            return DOCUMENT_FILE
        case "sound":
            return gateway_media.SOUND_FILE
        case "video":
            return gateway_media.VIDEO_FILE


def _result_kind(made: Made) -> ResultKind:
    match made:
        case "picture":
            return PICTURES
        case "text":
            return TEXT
        case "json":
            return DATA
        case "sound":
            return gateway_media.SOUND
        case "video":
            return gateway_media.VIDEO
