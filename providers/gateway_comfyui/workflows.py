"""A workflow on sale: its endpoint, and its graph filled in for one buyer."""

import copy
import json
import secrets
from collections.abc import Mapping
from typing import Any

import attrs

from gateway import (
    PICTURE_FILE,
    PICTURES,
    Capability,
    Choice,
    Endpoint,
    GenerationRequest,
    InvalidInput,
    PriceStep,
    usdc,
)
from gateway.domain.capabilities import DECLARED
from gateway.vendors import picture_size
from gateway_media.capabilities import ALWAYS, WITH_SOUND
from gateway_media.kinds import SOUND, VIDEO

NAME = "comfyui"
RATIOS = {"1:1": (1, 1), "4:3": (4, 3), "3:4": (3, 4), "16:9": (16, 9), "9:16": (9, 16)}
ENDINGS = (".png", ".jpg", ".jpeg", ".webp")
# Syntax in a prompt by which common nodes load a file.
REFUSED = ("embedding:", "<lora:")
# Each node takes smaller seeds; some take no larger ones.
_MAX_SEED = 2**31 - 1
_MICROS = 1_000_000
# Of the ordered pixels: models round the sides.
_LEAST_PART = 0.9
# Nodes whose files are PNGs, from which the gateway removes the graph.
_SAVES_PNG = ("SaveImage", "PreviewImage")

# The results of workflows: one kind each.
_MADE = ((PICTURES,), (VIDEO,), (SOUND,))

Graph = Mapping[str, Any]
Place = tuple[str, str]
"""A node's number, and the name of one of its inputs."""


@attrs.frozen
class Kind:
    """Inputs and formats of the workflows of one capability."""

    needs: tuple[str, ...]
    takes: tuple[str, ...]
    # Values of `output_format`. The gateway converts pictures only.
    formats: tuple[str, ...]
    is_sound: bool


def _kind_of(capability: Capability) -> Kind | None:
    """Return the kind by a capability's declaration; None if no workflow can make it."""
    sends_picture = PICTURE_FILE in capability.files
    if capability.results not in _MADE or (capability.files and not sends_picture):
        return None
    needs_prompt = capability.prompt.use == "required"
    return Kind(
        needs=(*(["prompt"] if needs_prompt else []), *(["picture"] if sends_picture else [])),
        takes=() if needs_prompt else ("prompt",),
        formats=capability.output_formats if capability.results == (PICTURES,) else (),
        is_sound=capability.results == (SOUND,),
    )


# By capability. Any of them may also take a seed, and width with height.
KINDS = {
    one.name: kind
    for one in (*DECLARED.values(), *ALWAYS, *WITH_SOUND)
    if (kind := _kind_of(one)) is not None
}
SIZES = ("width", "height")
PLACES = ("prompt", "picture", "seed", *SIZES)


@attrs.frozen(kw_only=True)
class Workflow:
    """A graph of ComfyUI, with the inputs that a buyer's request fills in."""

    slug: str
    title: str
    description: str
    capability: str
    price: str
    # As JSON, 1 and true differ.
    graph: Graph = attrs.field(eq=json.dumps, repr=False)
    # The places of each name in `PLACES`. A model with a refiner has two prompts.
    inputs: Mapping[str, tuple[Place, ...]]
    # The node whose files are sold.
    output: str
    # By resolution: the side of the square with as many pixels. The first is the default.
    sizes: Mapping[str, int]
    prices: Mapping[str, str]
    cost: str
    # Sides are multiples of it.
    step: int
    timeout_s: float
    refused: tuple[str, ...]

    @property
    def kind(self) -> Kind:
        """Inputs and formats of its capability."""
        return KINDS[self.capability]

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of its nodes."""
        return tuple(sorted({node["class_type"] for node in self.graph.values()}))

    @property
    def makes_png(self) -> bool:
        """Whether its files are PNGs, from which the graph can be removed."""
        return self.graph[self.output]["class_type"] in _SAVES_PNG

    def endpoint(self) -> Endpoint:
        """Return its offer."""
        resolutions, is_sized = tuple(self.sizes), "width" in self.inputs
        default_ratio = None if "picture" in self.inputs else "1:1"
        formats = self.kind.formats
        return Endpoint(
            slug=self.slug,
            title=self.title,
            description=self.description,
            model=self.slug,
            provider=NAME,
            capability=self.capability,
            price_units=usdc(self.price),
            price_steps=tuple(
                PriceStep(price_units=usdc(price), resolution=name)
                for name, price in self.prices.items()
            ),
            cost_micros=round(float(self.cost) * _MICROS) if self.cost else None,
            required_fields=self._required_fields(),
            file_extensions=ENDINGS if "picture" in self.inputs else (),
            aspect_ratio=Choice(values=tuple(RATIOS), default=default_ratio)
            if is_sized
            else Choice(),
            resolution=Choice(values=resolutions, default=next(iter(resolutions), None)),
            output_format=Choice(values=formats, default=next(iter(formats), None)),
            least_pixels=self._least_pixels(),
            timeout_s=self.timeout_s,
        )

    def _required_fields(self) -> tuple[str, ...]:
        prompt = ("prompt",) if "prompt" in self.inputs else ()
        return (*prompt, *(("fileBase64", "fileName") if "picture" in self.inputs else ()))

    def _least_pixels(self) -> dict[str, int]:
        """Return the pixels that each resolution promises, for the core's check of pictures."""
        found = {}
        for name in self.sizes:
            sides = [self._sides(name, *ratio) for ratio in RATIOS.values()]
            found[name] = int(min(width * height for width, height in sides) * _LEAST_PART)
        return found

    def check(self, request: GenerationRequest) -> None:
        """Refuse a prompt by which a node would load a file."""
        lowered = request.prompt.lower()
        for mark in self.refused:
            if mark.lower() in lowered:
                raise InvalidInput(f"The prompt must not contain {mark!r} here.")

    def filled(self, request: GenerationRequest, job_id: str, picture: str = "") -> dict[str, Any]:
        """Return the graph with the buyer's values, which are only ever strings and numbers."""
        graph = copy.deepcopy(dict(self.graph))
        width, height = self.size_of(request)
        values: dict[str, str | int] = {
            "prompt": request.prompt,
            "picture": picture,
            "seed": secrets.randbelow(_MAX_SEED),
            "width": width,
            "height": height,
        }
        for name, places in self.inputs.items():
            for node, field in places:
                graph[node]["inputs"][field] = values[name]
        # An own prefix makes the node run again, and no file has the name of another sale's.
        if "filename_prefix" in graph[self.output]["inputs"]:
            graph[self.output]["inputs"]["filename_prefix"] = f"gateway/{job_id}"
        return graph

    def size_of(self, request: GenerationRequest) -> tuple[int, int]:
        """Return width and height with about the pixels of the resolution.

        An edit without a ratio keeps that of its picture. Zeros if the workflow has no sizes.
        """
        if not self.sizes:
            return 0, 0
        across, down = RATIOS[request.aspect_ratio or "1:1"]
        if request.aspect_ratio is None and request.attachment is not None:
            across, down = picture_size(request.attachment)
        return self._sides(request.resolution or next(iter(self.sizes)), across, down)

    def _sides(self, resolution: str, across: int, down: int) -> tuple[int, int]:
        scale = self.sizes[resolution] / (across * down) ** 0.5 / self.step
        return (
            max(round(across * scale), 1) * self.step,
            max(round(down * scale), 1) * self.step,
        )
