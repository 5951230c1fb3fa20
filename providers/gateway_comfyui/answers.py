"""What ComfyUI's answers mean: refused workflows, failed jobs, and the files of a job."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway import AccountProblem, InvalidInput, JobFailed, Transient
from gateway.vendors import as_object, as_text
from gateway_comfyui.workflows import SIZES, Workflow

# Of names in errors for the operator. ComfyUI's own messages are left out: they quote the prompt.
_MAX_NAME_CHARS = 60
_MEDIA_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "mkv": "video/x-matroska",
    "flac": "audio/flac",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "wav": "audio/wav",
}


def refusal_of(body: Mapping[str, Any], workflow: Workflow) -> Exception | None:
    """Return what ComfyUI has against a submit, also in a success that leaves the output out."""
    error, nodes = as_object(body.get("error")), as_object(body.get("node_errors"))
    if error and not nodes:
        reason = _short(error.get("type")) or "no reason"
        named = _short(as_object(error.get("extra_info")).get("class_type"))
        # Older versions name the node in the message only, which quotes nothing of a request.
        text = f": {named}" if named else f": {_short(error.get('message'), 120)}"
        return AccountProblem(f"ComfyUI refuses the workflow ({reason}{text}).", scope="model")
    for number, about in nodes.items():
        node = as_object(about)
        if workflow.output in (node.get("dependent_outputs") or ()):
            return _refusal_of_node(str(number), node, workflow)
    return None


def _refusal_of_node(number: str, node: Mapping[str, Any], workflow: Workflow) -> Exception:
    faults = [as_object(one) for one in node.get("errors") or ()]
    fields = [_short(as_object(one.get("extra_info")).get("input_name")) for one in faults]
    filled = {_name_at((number, field), workflow) for field in fields}
    if filled == {"picture"}:
        return Transient("ComfyUI no longer has the uploaded picture.")
    if filled == {"prompt"}:
        return InvalidInput("The workflow does not take this prompt.")
    reasons = ", ".join(sorted({_short(one.get("type")) for one in faults})) or "no reason"
    text = (
        f"ComfyUI refuses the workflow: node {number} ({_short(node.get('class_type'))}), "
        f"{', '.join(filter(None, fields)) or 'all inputs'}: {reasons}."
    )
    if filled and filled <= set(SIZES):
        return AccountProblem(text, scope="choice")
    return AccountProblem(text, scope="model")


def _name_at(place: tuple[str, str], workflow: Workflow) -> str:
    """Return the name in `[inputs]` of a place that is filled in; empty for another place."""
    return next((name for name, places in workflow.inputs.items() if place in places), "")


def is_out_of_memory(status: Mapping[str, Any]) -> bool:
    """Whether a failed job ran out of memory."""
    return any(
        "OutOfMemory" in _short(about.get("exception_type")) for _, about in _messages(status)
    )


def failure_of(status: Mapping[str, Any]) -> JobFailed:
    """Return why a job failed, by the types of node and exception only."""
    for name, about in _messages(status):
        if name == "execution_interrupted":
            return JobFailed("The job was interrupted in ComfyUI.")
        if name == "execution_error":
            node, error = _short(about.get("node_type")), _short(about.get("exception_type"))
            return JobFailed(f"Node {node or '?'} raised {error or 'an error'} in ComfyUI.")
    return JobFailed("The job failed in ComfyUI.")


def seconds_of(status: Mapping[str, Any]) -> float | None:
    """Return how long a job ran, by the times of its messages in milliseconds."""
    times = {name: about.get("timestamp") for name, about in _messages(status)}
    begun, ended = times.get("execution_start"), times.get("execution_success")
    if not isinstance(begun, int) or not isinstance(ended, int) or ended < begun:
        return None
    return (ended - begun) / 1_000


def begun_ms_of(status: Mapping[str, Any]) -> int:
    """Return when a job began; 0 if that is unknown."""
    times = [about.get("timestamp") for _, about in _messages(status)]
    return next((time for time in times if isinstance(time, int)), 0)


def _messages(status: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for message in status.get("messages") or ():
        if isinstance(message, list) and len(message) > 1:
            yield as_text(message[0]), as_object(message[1])


def files_of(entry: Mapping[str, Any], output: str) -> list[dict[str, Any]]:
    """Return the files of the sold node, whatever its list is called."""
    made = as_object(as_object(entry.get("outputs")).get(output))
    lists = [one for one in made.values() if isinstance(one, list)]
    entries = [as_object(one) for found in lists for one in found]
    return [one for one in entries if as_text(one.get("filename"))]


def media_type_of(file: Mapping[str, Any]) -> str:
    """Return a file's media type by its extension."""
    ending = as_text(file.get("filename")).rpartition(".")[2].lower()
    return _MEDIA_TYPES.get(ending, "application/octet-stream")


def _short(value: object, most: int = _MAX_NAME_CHARS) -> str:
    return as_text(value)[:most]
