"""Requests and answers of Black Forest Labs' API, as types that refuse unknown fields.

Facts of its OpenAPI document (https://api.bfl.ai/openapi.json), typed again from copies in
github.com/tryAGI/BlackForestLabs: that of 2026-04-23 for FLUX.2, and types generated from a later
one for FLUX 3, seen 2026-11-23. The document itself was not accessible.
"""

from typing import Any, Literal

import pydantic

_RATIOS = Literal[
    "auto", "1:1", "1:2", "2:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "5:7", "7:5", "9:16",
    "16:9", "9:21", "21:9",
]  # fmt: skip


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True)


class _Flux2Base(_Strict):
    prompt: str
    input_image: str | None = None
    input_image_2: str | None = None
    input_image_3: str | None = None
    input_image_4: str | None = None
    seed: int | None = None
    width: int | None = pydantic.Field(None, ge=64)
    height: int | None = pydantic.Field(None, ge=64)
    safety_tolerance: int = pydantic.Field(2, ge=0, le=5)
    output_format: Literal["jpeg", "png", "webp"] | None = "jpeg"
    webhook_url: str | None = None
    webhook_secret: str | None = None


class Flux2KleinInputs(_Flux2Base):
    """Inputs of `/v1/flux-2-klein-…`."""


class Flux2Inputs(_Flux2Base):
    """Inputs of `/v1/flux-2-pro` and `/v1/flux-2-max`."""

    input_image_5: str | None = None
    input_image_6: str | None = None
    input_image_7: str | None = None
    input_image_8: str | None = None


class Flux3ImageInputs(_Strict):
    """Inputs of `/v1/flux-3-image`."""

    prompt: str
    images: str | list[str] | None = None
    aspect_ratio: _RATIOS = "auto"
    resolution: Literal["768sq", "1k", "1.5k", "2k", "4k"] = "1k"
    safety_tolerance: int = pydantic.Field(2, ge=0, le=4)
    grounding: bool = True
    version: str = "latest"


INPUTS = {
    "flux-2-pro": Flux2Inputs,
    "flux-2-max": Flux2Inputs,
    "flux-2-klein-9b": Flux2KleinInputs,
    "flux-3-image": Flux3ImageInputs,
}


class AsyncResponse(_Strict):
    """Answer to a submit."""

    id: str
    polling_url: str
    cost: float | None = None
    input_mp: float | None = None
    output_mp: float | None = None


class ResultResponse(_Strict):
    """Answer to a poll."""

    id: str
    status: Literal[
        "Task not found", "Pending", "Request Moderated", "Content Moderated", "Ready", "Error"
    ]
    result: Any = None
    progress: float | None = None
    details: dict[str, Any] | None = None
    preview: dict[str, Any] | None = None
