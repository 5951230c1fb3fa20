"""What a capability declares: prompt, files, results and prices. All doors derive from it.

The built-in declarations are in `built_in`. A plugin registers its own by the hook
`register_capabilities`, and the catalog attaches them to the endpoints that name them.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal

import attrs

from gateway.domain.kinds import DOCUMENT_FILE, FileKind, ResultKind, Shown
from gateway.domain.units import KILOCHARACTERS, MEGAPIXEL, PAGE, SECOND, Unit
from gateway.errors import ResultUnusable

TEXT_TO_IMAGE = "text-to-image"
IMAGE_EDITING = "image-editing"
DOCUMENT_PARSING = "document-parsing"
DOCUMENT_EXTRACTION = "document-extraction"

# `output_format` of pictures, spec §2.1, and of parsed documents: Markdown alone, or with its pages
# as JSON.
OUTPUT_FORMATS = ("png", "jpg", "webp")
DOCUMENT_FORMATS = ("markdown", "json")
_EXAMPLE = "a lighthouse above a stormy sea at night"
_CHEAPEST = "A small red boat on a calm sea"
_QUESTION = "What does it show?"

# From an `Endpoint`, a `GenerationRequest` and a `Result` to a `Result`. Their module is above this
# one, because endpoints have capabilities.
Accept = Callable[[Any, Any, Any], Any]


def accept_anything(endpoint: Any, request: Any, result: Any) -> Any:  # noqa: ARG001 - one signature
    """Accept any result that is not empty."""
    if not result.outputs and result.text is None:
        raise ResultUnusable("The provider returned nothing.")
    return result


@attrs.frozen(kw_only=True)
class Prompt:
    """The prompt of a capability's requests."""

    # "absent": ignored, unless an endpoint requires it.
    use: Literal["required", "optional", "absent"] = "required"
    # Its meaning, for documentation.
    about: str = "What to make, in your own words."
    # The same while it is ignored.
    ignored: str = "Ignored, so leave it out."
    # A further check before payment: raises `ValueError` with a sentence for the buyer. Quick, and
    # without backtracking expressions: it runs on the event loop.
    check: Callable[[str], object] | None = None
    # A line for /llms.txt about that check.
    note: str = ""
    # For documentation.
    example: str = _EXAMPLE
    # For `gateway check --live`; harmless, since every vendor's filter must pass it.
    cheapest: str = _CHEAPEST
    # Proposals on the form.
    ideas: tuple[str, ...] = ()
    # For `gateway examples`: offers take turns.
    examples: tuple[str, ...] = (_QUESTION,)


@attrs.frozen(kw_only=True)
class Capability:
    """A kind of generation that gateways sell, by the name that agents search for."""

    # Such as "text-to-image".
    name: str
    # Of one offer, and the heading above several. Empty: made from the name.
    title: str = ""
    heading: str = ""
    # The request in a sentence, and the provider's result and how the gateway processes it.
    about: str = ""
    result: str = ""
    prompt: Prompt = Prompt()
    # The kinds of file that a request carries. An endpoint chooses of their extensions.
    files: tuple[FileKind, ...] = ()
    # The values that endpoints may offer as `output_format`, with a description for some of them.
    output_formats: tuple[str, ...] = OUTPUT_FORMATS
    formats_about: str = ""
    # The values that endpoints may offer as `resolution`. Empty: any.
    resolutions: tuple[str, ...] = ()
    # Empty: any result, unchecked.
    results: tuple[ResultKind, ...] = ()
    # What a price may count.
    units: tuple[Unit, ...] = (PAGE, SECOND, KILOCHARACTERS, MEGAPIXEL)
    # Compares a checked result with the order, and returns it as it is kept. Raises
    # `gateway.ResultUnusable` with a sentence about the problem.
    accept: Accept = accept_anything
    # Whether `accept` takes long also for a short text; it then runs in a thread.
    accepts_slowly: bool = False
    # Whether an endpoint without the required fields is refused. False: the test kit reports it.
    is_strict: bool = True

    @property
    def required_fields(self) -> tuple[str, ...]:
        """The fields that each request must have."""
        file = ("fileBase64", "fileName") if self.files else ()
        return (*(("prompt",) if self.prompt.use == "required" else ()), *file)

    @property
    def shown(self) -> Shown | None:
        """How pages show the first result; None if that is unknown."""
        return self.results[0].shown if self.results else None

    def file_kind(self, extension: str) -> FileKind:
        """Return the kind of a file by its extension."""
        named = (one for one in self.files if extension in one.endings)
        open_kinds = (one for one in self.files if not one.endings)
        return next(named, None) or next(open_kinds, None) or DOCUMENT_FILE

    def result_kind(self, media_type: str) -> ResultKind | None:
        """Return the kind of an output: by its media type, else the first that is checked."""
        named = (one for one in self.results if media_type in one.media_types)
        return next(named, None) or next((one for one in self.results if one.is_checked), None)


DECLARED: dict[str, Capability] = {}
"""The built-in capabilities by name."""


def declare(capability: Capability) -> Capability:
    """Add a built-in capability."""
    DECLARED[capability.name] = capability
    return capability


def declaration_of(name: str) -> Capability:
    """Return a built-in declaration, or a loose one for a name that nothing declares."""
    return DECLARED.get(name) or _undeclared(name)


@functools.lru_cache(maxsize=256)
def _undeclared(name: str) -> Capability:
    return Capability(name=name, prompt=Prompt(use="optional"), is_strict=False)
