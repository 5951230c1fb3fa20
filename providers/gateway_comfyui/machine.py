"""One ComfyUI server: its routes, and the state of a job on it.

The routes and answers are those of ComfyUI 0.3.64 and 0.33.0, as recorded.
"""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

import attrs

from gateway import (
    AccountProblem,
    Answer,
    Attachment,
    JobFailed,
    Outbound,
    Transient,
)
from gateway.vendors import as_object, as_text, json_object, media_type
from gateway_comfyui.answers import begun_ms_of

# Of one question that needs no work of ComfyUI.
_ASK_S = 5.0
_SUBMIT_S = 30.0
_FILE_S = 120.0
_FOLDER = "gateway"
_SUCCESS = "success"
_NOT_FOUND = 404
# Of a file in the history.
_FILE_FIELDS = ("filename", "subfolder", "type")
# ComfyUI sends progress to the socket of this id, and some versions list no files without one.
CLIENT = "gateway"
# Of the newest runs, among which the operator's own is searched.
_RUNS = 50
# Number, id, graph, extra data and outputs, in an entry of the history.
_PARTS = 5

State = Literal["waiting", "running", "ended", "unknown"]


@attrs.frozen
class JobState:
    """A job as a server knows it. Only one that ended has an entry of the history."""

    state: State
    entry: Mapping[str, Any] = attrs.field(factory=dict, repr=False)

    @property
    def status(self) -> dict[str, Any]:
        """The status with its messages."""
        return as_object(self.entry.get("status"))

    @property
    def has_succeeded(self) -> bool:
        """Whether the job ended without an error."""
        return self.state == "ended" and self.status.get("status_str") == _SUCCESS


@attrs.frozen
class About:
    """Version and command line of a server."""

    version: str
    arguments: tuple[str, ...]


@attrs.frozen
class Run:
    """A run of the operator's own, and when it began."""

    graph: Any = attrs.field(repr=False)
    begun_ms: int


@attrs.define(eq=False)
class Machine:
    """A client of one ComfyUI server."""

    outbound: Outbound
    name: str
    """Host, port and path of its address."""

    @classmethod
    def at(cls, url: str, headers: Mapping[str, str], max_bytes: int) -> "Machine":
        """Return the client of an address."""
        parts = urlsplit(url)
        return cls(
            Outbound(url, headers=headers, max_bytes=max_bytes),
            parts.netloc + parts.path,
        )

    async def find(self, prompt_id: str) -> JobState:
        """Find a job in the history, the queue, and the history again.

        A job leaves the queue and enters the history in one step, so it cannot be missed.
        """
        if entry := await self._entry(prompt_id):
            return JobState("ended", entry)
        queue = await self._get("/queue")
        if _is_in(queue.get("queue_running"), prompt_id):
            return JobState("running")
        if _is_in(queue.get("queue_pending"), prompt_id):
            return JobState("waiting")
        entry = await self._entry(prompt_id)
        return JobState("ended", entry) if entry else JobState("unknown")

    async def _entry(self, prompt_id: str) -> dict[str, Any]:
        history = await self._get(f"/history/{quote(prompt_id, safe='')}")
        return as_object(history.get(prompt_id))

    async def queue_length(self) -> int:
        """Return how many jobs run and wait, the operator's own included."""
        found = as_object((await self._get("/prompt")).get("exec_info")).get("queue_remaining")
        if not isinstance(found, int):
            raise Transient("ComfyUI did not report its queue.")
        return found

    async def submit(self, order: Mapping[str, Any]) -> Answer:
        """Queue a job; returns the answer, whatever its status."""
        return await self.outbound.request("POST", "/prompt", json=order, timeout_s=_SUBMIT_S)

    async def upload(self, file: Attachment, name: str) -> str:
        """Upload a buyer's picture under a name of ours; return what LoadImage takes."""
        answer = await self.outbound.request(
            "POST",
            "/upload/image",
            files={
                "image": (f"{name}{file.extension}", file.data, media_type(file)),
                # Without a name, these are form fields and not files.
                "subfolder": ("", _FOLDER.encode(), "text/plain"),
                "overwrite": ("", b"true", "text/plain"),
            },
            bills=False,
        )
        check(answer)
        body = json_object(answer)
        stored, folder = as_text(body.get("name")), as_text(body.get("subfolder"))
        if not stored:
            raise Transient("ComfyUI did not report where it put the picture.")
        return f"{folder}/{stored}" if folder else stored

    async def stop(self, prompt_id: str) -> None:
        """Remove a job from the queue, then interrupt it if it runs.

        In this order, a job that begins between the two requests is interrupted.
        """
        await self._post("/queue", {"delete": [prompt_id]})
        await self._post("/interrupt", {"prompt_id": prompt_id})

    async def free(self) -> None:
        """Unload all models, after a job ran out of memory."""
        await self._post("/free", {"unload_models": True, "free_memory": True})

    async def download(self, file: Mapping[str, Any]) -> bytes:
        """Return a file that the history lists."""
        query = urlencode({name: as_text(file.get(name)) for name in _FILE_FIELDS})
        answer = await self.outbound.request("GET", f"/view?{query}", timeout_s=_FILE_S)
        if answer.status == _NOT_FOUND:
            raise JobFailed("ComfyUI no longer has the file of the job.")
        answer.check_poll()
        return answer.body

    async def about(self) -> About:
        """Return version and command line."""
        system = as_object((await self._get("/system_stats")).get("system"))
        arguments = system.get("argv")
        listed = arguments if isinstance(arguments, list) else []
        return About(as_text(system.get("comfyui_version")), tuple(map(str, listed)))

    async def node(self, kind: str) -> dict[str, Any] | None:
        """Return the description of a class of nodes; None if the server has none."""
        found = (await self._get(f"/object_info/{quote(kind, safe='')}")).get(kind)
        return as_object(found) or None

    async def last_run(self) -> Run | None:
        """Return the newest run that is no sale and no trial; None if there was none."""
        entries = (await self._get(f"/history?max_items={_RUNS}")).values()
        for entry in map(as_object, reversed(entries)):
            parts = entry.get("prompt")
            if isinstance(parts, list) and len(parts) >= _PARTS and not _is_sale(*parts[2:4]):
                return Run(parts[2], begun_ms_of(as_object(entry.get("status"))))
        return None

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()

    async def _get(self, path: str) -> dict[str, Any]:
        answer = await self.outbound.request("GET", path, timeout_s=_ASK_S)
        check(answer)
        found = answer.json()
        if not isinstance(found, dict):
            raise Transient("The answer is none of ComfyUI's.")
        return found

    async def _post(self, path: str, body: Mapping[str, Any]) -> None:
        answer = await self.outbound.request("POST", path, json=body, timeout_s=_ASK_S, bills=False)
        check(answer)


def check(answer: Answer) -> None:
    """Raise the error that a status means. A 404 means that the address is wrong."""
    if answer.status == _NOT_FOUND:
        raise AccountProblem(
            "The address is no ComfyUI's: check GATEWAY_COMFYUI_URLS, which has no path at the end."
        )
    answer.check()


def _is_sale(graph: object, extra: object) -> bool:
    """Whether a run was ordered by the gateway: its prompt is a buyer's."""
    prefixes = [
        as_text(as_object(as_object(node).get("inputs")).get("filename_prefix"))
        for node in as_object(graph).values()
    ]
    is_named = any(prefix.startswith(f"{_FOLDER}/") for prefix in prefixes)
    return is_named or as_object(extra).get("client_id") == CLIENT


def _is_in(entries: object, prompt_id: str) -> bool:
    listed = entries if isinstance(entries, list) else []
    return any(isinstance(one, list) and one[1:2] == [prompt_id] for one in listed)
