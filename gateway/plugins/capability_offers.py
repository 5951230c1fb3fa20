"""Validates the capabilities that plugins register; each mistake is one sentence."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from gateway.domain import Capability, FileKind, InSandbox, Prompt, ResultKind
from gateway.domain.capabilities import DECLARED
from gateway.domain.kinds import CORE_FILES
from gateway.outputs.keys import MediaTypes
from gateway.plugins.registration import CAPABILITY_NAME, RegistrationMistake
from gateway.sandbox import SandboxLimits

_ENDING = re.compile(r"\.[a-z0-9]{1,10}")
_WORD = re.compile(r"[a-z0-9]{1,20}")
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,60}")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
# Browsers run scripts in these, so no output is displayed as one.
_ACTIVE = ("html", "svg", "xml", "xsl", "script", "multipart", "message")


def capability_offer(types: MediaTypes, capability: Capability) -> tuple[str, Capability]:
    """Return the name and the capability; note the media types of its results in `types`.

    Raises `RegistrationMistake` with a sentence that names the mistake, `TypeError` for an object
    that is no `Capability`.
    """
    if not isinstance(capability, Capability):
        raise TypeError(f"it registers a {type(capability).__name__}, not a gateway.Capability")
    mistake = next(_mistakes_in(capability, types), None)
    if mistake is not None:
        raise RegistrationMistake(f"capability {capability.name!r}: {mistake}")
    for kind in capability.results:
        types.add(kind)
    return capability.name, capability


def _mistakes_in(one: Capability, types: MediaTypes) -> Iterator[str]:
    if not isinstance(one.name, str) or not CAPABILITY_NAME.fullmatch(one.name):
        yield "its name is not spelled like text-to-speech"
    if one.name in DECLARED:
        yield "the gateway declares it itself"
    if not isinstance(one.prompt, Prompt):
        yield "prompt is no gateway.Prompt"
    if one.prompt.use == "absent" and not one.files:
        yield "a request has neither a prompt nor a file"
    if not callable(one.accept) or not (one.prompt.check is None or callable(one.prompt.check)):
        yield "accept or prompt.check is no function"
    for value in one.output_formats:
        if not isinstance(value, str) or not _WORD.fullmatch(value):
            yield f"output_format {value!r} is not lower-case letters and digits"
    yield from _mistakes_in_files(one.files)
    for result in one.results:
        yield from _mistakes_in_result(result, types)


def _mistakes_in_files(kinds: Sequence[FileKind]) -> Iterator[str]:
    for kind in kinds:
        yield from _mistakes_in_file(kind)
    if len({kind.name for kind in kinds}) < len(kinds):
        yield "two kinds of file have one name"


def _mistakes_in_file(kind: FileKind) -> Iterator[str]:
    if not isinstance(kind, FileKind):
        yield f"files has a {type(kind).__name__}, not a gateway.FileKind"
    for ending in kind.endings:
        if not _ENDING.fullmatch(ending):
            yield f"file extension {ending!r} is not spelled like .pdf"
    for limit in kind.limits:
        if limit.measure not in kind.measures:
            yield f"the {kind.name}'s limit of {limit.measure!r} is none of its measures"
    if (kind.measures or kind.limits) and kind.read is None and kind not in CORE_FILES:
        yield f"the {kind.name} has measures or limits, but no read that measures them"
    yield from _mistakes_in_function(kind.read, f"{kind.name}.read")


def _mistakes_in_result(kind: ResultKind, types: MediaTypes) -> Iterator[str]:
    if not isinstance(kind, ResultKind):
        yield f"results has a {type(kind).__name__}, not a gateway.ResultKind"
    if kind.facts and kind.check is None and kind not in types.core_kinds:
        yield f"the {kind.name} has facts, but no check that finds them"
    for media_type, ending in kind.media_types.items():
        if not _MEDIA_TYPE.fullmatch(media_type) or not _WORD.fullmatch(ending):
            yield f"media type {media_type!r} or its extension {ending!r} is not spelled right"
        if kind.is_inline and any(word in media_type for word in _ACTIVE):
            yield f"{media_type} may run scripts, so it is not displayed: is_inline=False"
    if (clash := types.find_clash(kind)) is not None:
        yield clash
    yield from _mistakes_in_function(kind.check, f"{kind.name}.check")


def _mistakes_in_function(declared: Any, name: str) -> Iterator[str]:
    if declared is None:
        return
    if not isinstance(declared, InSandbox) or not _FUNCTION.fullmatch(declared.function):
        yield f'{name} is no InSandbox(function="package.module:name")'
    limits = {n: getattr(declared, n) for n in ("memory_bytes", "cpu_s", "wall_s", "answer_bytes")}
    try:
        SandboxLimits(**limits)
    except (ValueError, TypeError):
        yield f"a limit of {name} is no number above 0"
