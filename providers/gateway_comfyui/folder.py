"""Reads the folder of workflows. Each mistake is one sentence that names the file."""

import json
import re
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gateway import SettingsError, usdc
from gateway.vendors import as_object
from gateway_comfyui.graphs import graph_of, is_link
from gateway_comfyui.workflows import KINDS, PLACES, REFUSED, SIZES, Place, Workflow

_NAME = re.compile(r"[a-z0-9]+(?:[-._][a-z0-9]+)*")
_MAX_NAME_CHARS = 100
_TIMEOUT_S = 300.0
_STEP = 16
_MAX_SIDE = 16_384
_TEXTS = ("title", "description", "capability", "price", "cost", "output")
_TABLES = ("inputs", "sizes", "prices")
_FIELDS = (*_TEXTS, "timeout_s", "step", "refused", *_TABLES)
# Inputs that a buyer fills with a text; the others are numbers.
_STRINGS = ("prompt", "picture")
_NEEDED = ("title", "capability", "price", "output")


def read_folder(folder: Path) -> list[Workflow]:
    """Return the workflows of a folder by name; raises `SettingsError` for a mistake."""
    if not folder.is_dir():
        raise SettingsError(
            f"GATEWAY_COMFYUI_WORKFLOWS: there is no folder {folder}. Create it, or put a first "
            "workflow into it: gateway comfyui add --last --name portrait --price 0.03"
        )
    return [read_workflow(path) for path in sorted(folder.glob("*.toml"))]


def read_workflow(path: Path) -> Workflow:
    """Return the workflow of a NAME.toml and its NAME.json; raises `SettingsError`."""
    graph_path = path.with_suffix(".json")
    try:
        text, graph = path.read_text("utf-8"), json.loads(graph_path.read_bytes())
    except FileNotFoundError:
        raise SettingsError(
            f"{path.name} needs {graph_path.name} beside it, the workflow in API format."
        ) from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise SettingsError(f"{graph_path.name} is no JSON, or {path.name} no UTF-8.") from None
    return parse_workflow(path.stem, text, graph_of(graph, graph_path.name))


def parse_workflow(slug: str, text: str, graph: Mapping[str, Any]) -> Workflow:
    """Return a workflow by its name, the text of its TOML, and its graph."""
    try:
        about = tomllib.loads(text)
        _check_name(slug)
        _check_fields(about)
        inputs = {name: _places_of(name, one) for name, one in about.get("inputs", {}).items()}
        _check_inputs(about["capability"], inputs, graph)
        _check_output(about["output"], graph)
        sizes, prices = _sizes_of(about, inputs), _prices_of(about)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{slug}.toml is no TOML: {error}.") from None
    except _Mistake as mistake:
        raise SettingsError(f"{slug}.toml: {mistake}") from None
    return Workflow(
        slug=slug,
        title=about["title"],
        description=about.get("description") or f"{about['title']}, on the operator's own machine.",
        capability=about["capability"],
        price=about["price"],
        graph=graph,
        inputs=inputs,
        output=about["output"],
        sizes=sizes,
        prices=prices,
        cost=about.get("cost", ""),
        step=about.get("step", _STEP),
        timeout_s=float(about.get("timeout_s", _TIMEOUT_S)),
        refused=tuple(about.get("refused", REFUSED)),
    )


class _Mistake(ValueError):
    """A mistake in a TOML, as a sentence without the file's name."""


def _check_name(slug: str) -> None:
    if len(slug) > _MAX_NAME_CHARS or not _NAME.fullmatch(slug):
        raise _Mistake(
            "the file's name becomes part of the address: use a-z and 0-9, with -, . or _ between."
        )


def _check_fields(about: Mapping[str, Any]) -> None:
    for name in about:
        if name not in _FIELDS:
            raise _Mistake(f"{name!r} is none of {', '.join(_FIELDS)}.")
    for name in _NEEDED:
        if not about.get(name):
            raise _Mistake(f"{name} is missing.")
    for name in _TEXTS:
        if not isinstance(about.get(name, ""), str):
            raise _Mistake(f'{name} is a text in quotes, such as {name} = "{about[name]}".')
    for name in _TABLES:
        if not isinstance(about.get(name, {}), dict):
            raise _Mistake(f"{name} is a table: write [{name}] on a line of its own.")
    _check_capability(about["capability"])
    _check_numbers(about)


def _check_capability(capability: str) -> None:
    if capability not in KINDS:
        raise _Mistake(f"capability {capability!r} is none of {', '.join(KINDS)}.")
    if KINDS[capability].is_sound and find_spec("soundfile") is None:
        raise _Mistake("selling sound needs a decoder: install generation-gateway[audio].")


def _check_numbers(about: Mapping[str, Any]) -> None:
    step, timeout_s = about.get("step", _STEP), about.get("timeout_s", _TIMEOUT_S)
    if type(step) is not int or not 1 <= step <= 1024:  # noqa: PLR2004
        raise _Mistake("step is a whole number from 1 to 1024, such as 16 or 32.")
    if type(timeout_s) not in (int, float) or not 1 <= timeout_s <= 86_400:  # noqa: PLR2004
        raise _Mistake("timeout_s is a number of seconds, such as 240.")
    refused = about.get("refused", [])
    if not isinstance(refused, list) or not all(isinstance(one, str) and one for one in refused):
        raise _Mistake('refused is a list of texts, such as refused = ["embedding:", "<lora:"].')
    _check_amount("price", about["price"])
    try:
        cost = float(about.get("cost") or 0)
    except ValueError:
        cost = -1.0
    if not 0 <= cost < 1_000:  # noqa: PLR2004
        raise _Mistake('cost is in US dollars, such as cost = "0.004".')


def _check_amount(name: str, value: object) -> None:
    try:
        is_right = isinstance(value, str) and usdc(value) > 0
    except ValueError:
        is_right = False
    if not is_right:
        raise _Mistake(f'{name} is an amount of USDC in quotes, such as "0.03", not {value!r}.')


def _places_of(name: str, given: object) -> tuple[Place, ...]:
    """Return the places of an input, from "6.text" or a list of such texts."""
    if name not in PLACES:
        raise _Mistake(f"[inputs] {name!r} is none of {', '.join(PLACES)}.")
    texts = given if isinstance(given, list) else [given]
    places = []
    for text in texts:
        node, dot, field = text.partition(".") if isinstance(text, str) else ("", "", "")
        if not (node and dot and field):
            raise _Mistake(
                f'[inputs] {name} is a node\'s number and an input, such as {name} = "6.text".'
            )
        places.append((node, field))
    return tuple(places)


def _check_inputs(
    capability: str, inputs: Mapping[str, tuple[Place, ...]], graph: Mapping[str, Any]
) -> None:
    kind = KINDS[capability]
    for name in kind.needs:
        if not inputs.get(name):
            raise _Mistake(f"{capability} needs {name} in [inputs].")
    for name in inputs:
        if name not in (*kind.needs, *kind.takes, "seed", *SIZES):
            raise _Mistake(f"{capability} has no {name}: take it out of [inputs].")
    if ("width" in inputs) != ("height" in inputs):
        raise _Mistake("[inputs] has only one of width and height: name both, or none.")
    for name, places in inputs.items():
        for node, field in places:
            _check_place(name, node, field, graph)


def _check_place(name: str, node: str, field: str, graph: Mapping[str, Any]) -> None:
    fields = as_object(graph.get(node)).get("inputs", {})
    if field not in fields:
        raise _Mistake(f"{name} is at {node}.{field}, which the workflow does not have.")
    if is_link(fields[field]):
        raise _Mistake(
            f"{name} is at {node}.{field}, which is linked to node {fields[field][0]}: "
            "name an input of that node."
        )
    wanted, named = (str, "text") if name in _STRINGS else (int, "whole number")
    if type(fields[field]) is not wanted:
        raise _Mistake(f"{name} is at {node}.{field}, which is no {named} in the workflow.")


def _check_output(output: str, graph: Mapping[str, Any]) -> None:
    if output not in graph:
        raise _Mistake(f"output {output!r} is no node of the workflow.")


def _sizes_of(about: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, int]:
    sizes: dict[str, int] = about.get("sizes", {})
    if ("width" in inputs) != bool(sizes):
        raise _Mistake(
            'width and height need the table [sizes], such as "1K" = 1024, and no table without '
            "them."
        )
    for name, side in sizes.items():
        if type(side) is not int or not 16 <= side <= _MAX_SIDE:  # noqa: PLR2004
            raise _Mistake(f'[sizes] "{name}" is the side of a square in pixels, such as 1024.')
    return sizes


def _prices_of(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the prices of resolutions other than the first, which costs `price`."""
    sizes, prices = list(about.get("sizes", {})), about.get("prices", {})
    for name, price in prices.items():
        if name not in sizes[1:]:
            known = ", ".join(sizes[1:]) or "none"
            raise _Mistake(
                f'[prices] "{name}": it prices resolutions of [sizes] after the first: {known}.'
            )
        _check_amount(f'[prices] "{name}"', price)
    return dict(prices)
