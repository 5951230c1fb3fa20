"""Guesses which inputs of a graph a buyer fills in, by its links and the server's descriptions."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from gateway_comfyui.checking import Kinds, details_of
from gateway_comfyui.graphs import is_link

_TEXTS = ("text", "prompt", "positive_prompt", "clip_l", "t5xxl", "value", "string")
_SEEDS = ("seed", "noise_seed")
# The kind of a result by an input of its save node.
_MADE = {"images": "image", "video": "video", "audio": "audio"}
_MOVING = ("webm", "videocombine", "savevideo")
_SIDES = {"positive", "negative"}
_ZEROS = "ConditioningZeroOut"
# Nodes of such names may read a file or an address of the buyer's choice.
_RISKY = ("load", "path", "file", "url", "http", "folder")
_CORE_MODULES = ("nodes", "comfy_extras.")
_SIDE_STEP = 16
_LEAST_1K = 768


@attrs.define
class Guess:
    """A capability, the sold node, and the places of a buyer's values, with warnings."""

    capability: str = ""
    output: str = ""
    inputs: dict[str, list[str]] = attrs.field(factory=dict)
    side: int = 0
    warnings: list[str] = attrs.field(factory=list)

    def add(self, name: str, node: str, field: str) -> None:
        """Add a place, once."""
        places = self.inputs.setdefault(name, [])
        if f"{node}.{field}" not in places:
            places.append(f"{node}.{field}")

    def toml(self, *, title: str, price: str, cost: str) -> str:
        """Return the text of its TOML."""
        lines = [
            f"title = {json.dumps(title, ensure_ascii=False)}",
            f"capability = {json.dumps(self.capability)}",
            f"price = {json.dumps(price)}",
            *([f"cost = {json.dumps(cost)}"] if cost else []),
            f"output = {json.dumps(self.output)}",
            "",
            "[inputs]",
        ]
        for name, places in self.inputs.items():
            lines.append(f"{name} = {json.dumps(places[0] if len(places) == 1 else places)}")
        if self.side:
            # Agents expect a megapixel of 1K.
            name = "1K" if self.side >= _LEAST_1K else f"{self.side}px"
            lines += ["", "[sizes]", f'"{name}" = {self.side}']
        return "\n".join(lines) + "\n"


def guess(graph: Mapping[str, Any], kinds: Kinds) -> Guess:
    """Return the guess; `kinds` are the server's descriptions of the graph's classes."""
    found = Guess()
    found.output = _find_output(graph, kinds, found)
    if not found.output:
        return found
    above = list(_above(graph, found.output))
    _find_prompts(graph, kinds, above, found)
    for number in above:
        _find_values(number, graph[number], kinds.get(graph[number]["class_type"]) or {}, found)
    found.capability = _capability(graph[found.output], found)
    _warn(graph, kinds, found)
    return found


def _find_output(graph: Mapping[str, Any], kinds: Kinds, found: Guess) -> str:
    """Return the save node with "output" in its title, else the first that saves a file."""
    ends = [
        number
        for number, node in graph.items()
        if (kinds.get(node["class_type"]) or {}).get("output_node")
    ]
    saves = [number for number in ends if "filename_prefix" in graph[number]["inputs"]] or ends
    titled = [number for number in saves if "output" in _title(graph[number])]
    if not saves:
        found.warnings.append("No node saves a file: add Save Image or Save Video.")
        return ""
    if len(saves) > 1 and not titled:
        names = ", ".join(f"{number} ({graph[number]['class_type']})" for number in saves)
        found.warnings.append(
            f"Several nodes save files: {names}. Node {saves[0]} is sold; change `output` if "
            "another one should be."
        )
    return (titled or saves)[0]


def _title(node: Mapping[str, Any]) -> str:
    meta = node.get("_meta")
    return str(meta.get("title", "")).lower() if isinstance(meta, dict) else ""


def _find_prompts(graph: Mapping[str, Any], kinds: Kinds, above: list[str], found: Guess) -> None:
    """Follow the positive input of each sampler to the nearest text.

    A text that equals the first one is the same prompt, such as that of a refiner.
    """
    first: str | None = None
    for side in ("positive", "conditioning"):
        for number in above:
            link = graph[number]["inputs"].get(side)
            place = _nearest_text(graph, kinds, link[0], "positive") if is_link(link) else None
            if place is not None:
                text = graph[place[0]]["inputs"][place[1]]
                first = text if first is None else first
                if text == first:
                    found.add("prompt", *place)
    negative = {
        place
        for number in above
        if is_link(link := graph[number]["inputs"].get("negative"))
        and (place := _nearest_text(graph, kinds, link[0], "negative")) is not None
    }
    both = {f"{number}.{field}" for number, field in negative} & {*found.inputs.get("prompt", ())}
    found.warnings += [
        f"The prompt at {one} is also the negative one: check [inputs]." for one in sorted(both)
    ]
    place = _nearest_text(graph, kinds, found.output)
    if first is None and place is not None and place not in negative:
        found.add("prompt", *place)


def _nearest_text(
    graph: Mapping[str, Any], kinds: Kinds, start: str, side: str = ""
) -> tuple[str, str] | None:
    for number in _above(graph, start, side):
        node = graph[number]
        for name in _TEXTS:
            details = details_of(kinds.get(node["class_type"]) or {}, name)
            is_long = details.get("multiline") or name == "value"
            if is_long and isinstance(node["inputs"].get(name), str):
                return number, name
    return None


def _find_values(
    number: str, node: Mapping[str, Any], about: Mapping[str, Any], found: Guess
) -> None:
    """Find seeds, sizes of new pictures, and the buyer's picture."""
    inputs = node["inputs"]
    for name in _SEEDS:
        if type(inputs.get(name)) is int:
            found.add("seed", number, name)
    sides = [inputs.get(name) for name in ("width", "height")]
    if "batch_size" in inputs and all(type(side) is int for side in sides):
        found.add("width", number, "width")
        found.add("height", number, "height")
        pixels = sides[0] * sides[1]
        found.side = found.side or max(round(pixels**0.5 / _SIDE_STEP), 1) * _SIDE_STEP
    is_upload = details_of(about, "image").get("image_upload")
    if is_upload and "picture" not in found.inputs and isinstance(inputs.get("image"), str):
        found.add("picture", number, "image")


def _capability(save: Mapping[str, Any], found: Guess) -> str:
    made = next((kind for name, kind in _MADE.items() if name in save["inputs"]), "image")
    if any(word in save["class_type"].lower() for word in _MOVING):
        made = "video"
    if "picture" not in found.inputs or made == "audio":
        return f"text-to-{made}"
    if made == "video":
        return "image-to-video"
    return "image-editing" if "prompt" in found.inputs else "image-upscaling"


def _warn(graph: Mapping[str, Any], kinds: Kinds, found: Guess) -> None:
    if "prompt" in found.inputs and "seed" not in found.inputs:
        found.warnings.append("There is no seed: buyers of one prompt get equal results.")
    for place in found.inputs.get("prompt", []):
        kind = graph[place.partition(".")[0]]["class_type"]
        module = str((kinds.get(kind) or {}).get("python_module", ""))
        if not module.startswith(_CORE_MODULES) and any(word in kind.lower() for word in _RISKY):
            found.warnings.append(
                f"The prompt is at {place} of a custom node, which may read files or addresses "
                "by it. Sell it only if you know that it does not."
            )


def _above(graph: Mapping[str, Any], start: str, side: str = "") -> Iterator[str]:
    """Yield a node and those that it depends on, the nearest first.

    A node with both prompts, such as that of a ControlNet, is left by the input `side` only. A
    negative prompt of zeros has no text.
    """
    seen, line = {start}, [start]
    while line:
        number = line.pop(0)
        yield number
        inputs = graph[number]["inputs"]
        if side and inputs.keys() >= _SIDES:
            inputs = {side: inputs[side]}
        if side == "negative" and graph[number]["class_type"] == _ZEROS:
            continue
        for value in inputs.values():
            if is_link(value) and value[0] in graph and value[0] not in seen:
                seen.add(value[0])
                line.append(value[0])
