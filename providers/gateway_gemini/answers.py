"""The parts of `generateContent`'s response that are used.

Next to a picture there is a `thoughtSignature` that may be as large as the picture. These classes
omit it, so msgspec skips it cheaply.
"""

from typing import Any

import attrs


@attrs.frozen
class Picture:
    """A picture in Base64."""

    data: str = attrs.field(default="", repr=False)
    mimeType: str | None = None  # noqa: N815 - the API's name

    @property
    def media_type(self) -> str:
        """The media type; empty if the response has none."""
        return self.mimeType or ""


@attrs.frozen
class Part:
    """One piece of a model's output or thoughts."""

    inlineData: Picture | None = None  # noqa: N815 - the API's name
    thought: bool | None = None


@attrs.frozen
class Content:
    """A model's whole output."""

    parts: list[Part] | None = None


@attrs.frozen
class Candidate:
    """One generation of the model, and why it ended."""

    content: Content | None = None
    finishReason: str | None = None  # noqa: N815 - the API's name


@attrs.frozen
class Feedback:
    """Feedback about the prompt."""

    blockReason: str | None = None  # noqa: N815 - the API's name


@attrs.frozen
class Generation:
    """The whole response."""

    candidates: list[Candidate] | None = None
    promptFeedback: Feedback | None = None  # noqa: N815 - the API's name
    usageMetadata: Any = None  # noqa: N815 - the API's name
    error: Any = None


def first_picture(generation: Generation) -> Picture | None:
    """Return the first picture that is not a draft of a thinking model, or None."""
    for candidate in generation.candidates or ():
        for part in (candidate.content and candidate.content.parts) or ():
            if part.inlineData is not None and part.inlineData.data and not part.thought:
                return part.inlineData
    return None
