"""Compares a workflow with the nodes and models of a server."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.vendors import as_object
from gateway_comfyui.graphs import is_link
from gateway_comfyui.machine import Machine

Kinds = Mapping[str, Mapping[str, Any] | None]
"""The descriptions of classes of nodes; None for a class that the server lacks."""


async def kinds_of(machine: Machine, classes: tuple[str, ...]) -> dict[str, Any]:
    """Return the server's descriptions of these classes."""
    return {name: await machine.node(name) for name in classes}


def problems_in(graph: Mapping[str, Any], kinds: Kinds) -> Iterator[str]:
    """Yield why a graph cannot be sold on a server, each as a sentence."""
    for name in sorted({node["class_type"] for node in graph.values()}):
        about = kinds.get(name)
        if about is None:
            yield f"ComfyUI has no node {name}: install it, or take it out of the workflow."
        elif about.get("api_node"):
            yield (
                f"The node {name} calls a service that bills each run, and a run may be repeated: "
                "it cannot be sold here."
            )
    for number, node in graph.items():
        yield from _missing_values(number, node, kinds.get(node["class_type"]) or {})


def _missing_values(
    number: str, node: Mapping[str, Any], about: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the values that are in no list of the server, such as a model that is missing."""
    for name, value in node["inputs"].items():
        options = options_of(about, name)
        if options is None or is_link(value) or not isinstance(value, str):
            continue
        if value not in options and not details_of(about, name).get("image_upload"):
            yield f"Node {number} ({node['class_type']}): {name} {value!r} is not there."


def metadata_problem(graph: Mapping[str, Any], output: str) -> str:
    """Return why the sold node always writes the workflow into its files; empty if it does not."""
    kind, inputs = graph[output]["class_type"], graph[output]["inputs"]
    if kind == "SaveWEBM":
        return "SaveWEBM always writes the workflow into its files: use Save Video."
    if kind == "VHS_VideoCombine" and inputs.get("save_metadata") is not False:
        return "VHS_VideoCombine writes the workflow into its files: turn its save_metadata off."
    return ""


def declared(about: Mapping[str, Any], name: str) -> list[Any]:
    """Return the declaration of an input, as type and details; empty if there is none."""
    groups = as_object(about.get("input"))
    for group in ("required", "optional"):
        found = as_object(groups.get(group)).get(name)
        if isinstance(found, list):
            return found
    return []


def details_of(about: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the details of an input, such as its default."""
    found = declared(about, name)
    return as_object(found[1]) if len(found) > 1 else {}


def options_of(about: Mapping[str, Any], name: str) -> list[Any] | None:
    """Return the values that an input may have; None if it has no list of them."""
    found = declared(about, name)
    has_list = bool(found) and isinstance(found[0], list)
    options = found[0] if has_list else details_of(about, name).get("options")
    if not isinstance(options, list):
        return None
    # An option with inputs of its own is an object.
    return [one.get("key") if isinstance(one, dict) else one for one in options]
