"""The shape of `generateContent`'s answer, as far as it is read.

Beside a picture stands a `thoughtSignature` that may be as large as the picture. It is no field of
these classes, so msgspec skips it without building it.
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
        """The media type; empty if the answer names none."""
        return self.mimeType or ""


@attrs.frozen
class Part:
    """One of the things that a model said, drew or thought."""

    inlineData: Picture | None = None  # noqa: N815 - the API's name
    thought: bool | None = None


@attrs.frozen
class Content:
    """All that a model said."""

    parts: list[Part] | None = None


@attrs.frozen
class Candidate:
    """One generation of the model, and why it ended."""

    content: Content | None = None
    finishReason: str | None = None  # noqa: N815 - the API's name


@attrs.frozen
class Feedback:
    """What the API says about the prompt."""

    blockReason: str | None = None  # noqa: N815 - the API's name


@attrs.frozen
class Generation:
    """The whole answer."""

    candidates: list[Candidate] | None = None
    promptFeedback: Feedback | None = None  # noqa: N815 - the API's name
    usageMetadata: Any = None  # noqa: N815 - the API's name
    error: Any = None


def first_picture(generation: Generation) -> Picture | None:
    """Return the first picture that is no draft of a thinking model; None if there is none."""
    for candidate in generation.candidates or ():
        for part in (candidate.content and candidate.content.parts) or ():
            if part.inlineData is not None and part.inlineData.data and not part.thought:
                return part.inlineData
    return None
