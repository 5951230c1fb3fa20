"""A fake ComfyUI with its queue and history, after the recorded answers in `answers.json`.

It runs one job at a time. While `held`, the running job does not end.
"""

import copy
import json
import re
import socket
import struct
import threading
import zlib
from pathlib import Path

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from gateway_media.samples import MP4
from gateway_testing.fakes.api import picture_of

RECORDED = json.loads((Path(__file__).parent / "answers.json").read_text())
NEW, OLD = RECORDED["comfyui 0.33.0"], RECORDED["comfyui 0.3.64, where it differs"]
_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
_IMAGE = ["IMAGE"]
NODES = {
    **NEW["object_info (shortened)"],
    "EmptyImage": {
        "input": {
            "required": {
                "width": ["INT", {"default": 512, "min": 1}],
                "height": ["INT", {"default": 512, "min": 1}],
                "batch_size": ["INT", {"default": 1}],
                "color": ["INT", {"default": 0}],
            }
        },
        "output_node": False,
        "python_module": "nodes",
    },
    "ImageScaleBy": {
        "input": {
            "required": {
                "image": _IMAGE,
                "upscale_method": [["nearest-exact", "lanczos"]],
                "scale_by": ["FLOAT", {"default": 1.0}],
            }
        },
        "output_node": False,
        "python_module": "nodes",
    },
    "CreateVideo": {
        "input": {"required": {"images": _IMAGE, "fps": ["FLOAT", {"default": 30.0}]}},
        "output_node": False,
        "python_module": "comfy_extras.nodes_video",
    },
    "SaveVideo": {
        "input": {
            "required": {
                "video": ["VIDEO"],
                "filename_prefix": ["STRING", {"multiline": False}],
                "format": ["COMBO", {"options": ["auto", "mp4"]}],
                "codec": ["COMBO", {"options": ["auto", "h264"]}],
            }
        },
        "output_node": True,
        "python_module": "comfy_extras.nodes_video",
    },
    "SlowImage": {
        "input": {
            "required": {
                "image": _IMAGE,
                "text": ["STRING", {"multiline": True}],
                "seconds": ["FLOAT", {"default": 0.1}],
                "seed": ["INT", {"default": 0}],
                "mode": [["ok", "error", "memory", "exit"]],
            }
        },
        "output_node": False,
        "python_module": "custom_nodes.slow_node",
    },
}
_ERRORS = {"error": "ValueError", "memory": "torch.OutOfMemoryError"}


def with_graph(png: bytes, graph) -> bytes:
    """A PNG as ComfyUI saves it: with the graph in a text chunk."""
    data = b"prompt\0" + json.dumps(graph).encode()
    head = len(b"\x89PNG\r\n\x1a\n") + 25
    chunk = b"tEXt" + data
    text = struct.pack(">I", len(data)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png[:head] + text + png[head:]


class ComfyServer:
    """One server."""

    def __init__(self, http: HTTPServer) -> None:
        self.http = http
        self.url = http.url_for("").rstrip("/")
        self.version = "0.33.0"
        self.argv = ["main.py", "--listen", "127.0.0.1", "--disable-metadata"]
        self.nodes = copy.deepcopy(NODES)
        # Every POST of a job, and the ids of the jobs that ended, in order.
        self.orders: list[dict] = []
        self.ran: list[str] = []
        self.asked: list[str] = []
        self.freed = 0
        self.held = False
        self.is_away = False
        self.needs_key = ""
        # What happens to the next answers of POST /prompt: "cut", "500" or "wait".
        self.answers: list[str] = []
        self.gate = threading.Event()
        self.uploads: dict[str, bytes] = {}
        self.files: dict[tuple[str, str], bytes] = {}
        self._cached: dict[str, list] = {}
        self._lock = threading.RLock()
        self.restart()
        http.clear()
        http.expect_request(re.compile(".*")).respond_with_handler(self._serve)

    def restart(self) -> None:
        """Lose queue, history and cache, as a restart of ComfyUI does."""
        self.queue: list[dict] = []
        self.history: dict[str, dict] = {}
        self._cached.clear()

    # -- HTTP

    def _serve(self, request: Request) -> Response:
        line = f"{request.method} {request.path}"
        self.asked.append(line)
        if self.is_away:
            return cut(request)
        if self.needs_key and request.headers.get("Authorization") != self.needs_key:
            return Response("Unauthorized", 401)
        with self._lock:
            self._step()
            name = re.sub(r"\W", "_", f"{request.method.lower()}_{request.path.split('/')[1]}")
            found = getattr(self, f"_{name}")(request)
        if line == "POST /prompt" and self.answers:
            return self._spoil(request, found)
        return found

    def _spoil(self, request: Request, answer: Response) -> Response:
        how = self.answers.pop(0)
        if how == "wait":
            self.gate.wait(30)
        return Response(NEW["not json"][1], 500) if how == "500" else cut(request)

    def _get_history(self, request: Request) -> Response:
        wanted = request.path.removeprefix("/history").strip("/")
        if wanted:
            entry = self.history.get(wanted)
            return _json({wanted: entry} if entry else NEW["history unknown"][1])
        newest = list(self.history.items())[-int(request.args.get("max_items", 100)) :]
        return _json(dict(newest))

    def _get_queue(self, _: Request) -> Response:
        rows = [
            [n, job["id"], job["graph"], {}, job["outputs"]] for n, job in enumerate(self.queue)
        ]
        return _json({"queue_running": rows[:1], "queue_pending": rows[1:]})

    def _get_prompt(self, _: Request) -> Response:
        return _json({"exec_info": {"queue_remaining": len(self.queue)}})

    def _get_system_stats(self, _: Request) -> Response:
        return _json({"system": {"comfyui_version": self.version, "argv": self.argv}})

    def _get_object_info(self, request: Request) -> Response:
        name = request.path.split("/")[2]
        return _json({name: self.nodes[name]} if name in self.nodes else {})

    def _get_view(self, request: Request) -> Response:
        if ".." in request.args["filename"]:
            return Response("", NEW["view dotdot"][0])
        data = self.files.get((request.args["subfolder"], request.args["filename"]))
        return Response("", 404) if data is None else Response(data, 200)

    def _post_upload(self, request: Request) -> Response:
        file, folder = request.files["image"], request.form.get("subfolder", "")
        name, stem = file.filename, Path(file.filename)
        if f"{folder}/{name}" in self.uploads and request.form.get("overwrite") != "true":
            name = f"{stem.stem} (1){stem.suffix}"
        self.uploads[f"{folder}/{name}"] = file.read()
        return _json({"name": name, "subfolder": folder, "type": "input"})

    def _post_queue(self, request: Request) -> Response:
        gone = request.json["delete"]
        self.queue[1:] = [job for job in self.queue[1:] if job["id"] not in gone]
        return Response("")

    def _post_interrupt(self, request: Request) -> Response:
        if self.queue and self.queue[0]["id"] == request.json.get("prompt_id"):
            job = self.queue.pop(0)
            message = copy.deepcopy(NEW["history interrupted"]["status"])
            self._end(job, {}, message)
        return Response("")

    def _post_free(self, _: Request) -> Response:
        self.freed += 1
        return Response("")

    def _post_prompt(self, request: Request) -> Response:
        order = request.get_json(force=True, silent=True)
        self.orders.append(order)
        if not isinstance(order, dict) or isinstance(order.get("prompt", {}).get("nodes"), list):
            return Response(NEW["not json"][1], 500)
        if self.version != "0.3.64" and not _UUID.fullmatch(order.get("prompt_id", "")):
            return _json(NEW["prompt_id='task-123/4'"][1], 400)
        graph = order["prompt"]
        unknown = [
            one["class_type"] for one in graph.values() if one["class_type"] not in self.nodes
        ]
        if unknown:
            return _json((OLD if self.version == "0.3.64" else NEW)["unknown node"][1], 400)
        return self._queue(order, graph)

    def _queue(self, order, graph) -> Response:
        ends = [n for n, one in graph.items() if self.nodes[one["class_type"]]["output_node"]]
        faults = {n: fault for n, one in graph.items() if (fault := self._fault(one))}
        for number, fault in faults.items():
            fault["dependent_outputs"] = [end for end in ends if number in _above(graph, end)]
        bad = {end for fault in faults.values() for end in fault["dependent_outputs"]}
        good = [end for end in ends if end not in bad]
        if not good:
            error = NEW["missing model"][1]["error"]
            return _json({"error": error, "node_errors": faults}, 400)
        # It does not notice that an id is used again.
        job = {"id": order["prompt_id"], "graph": graph, "outputs": good, "extra": {}}
        job["extra"]["client_id"] = order["client_id"]
        self.queue.append(job)
        answer = {"prompt_id": job["id"], "number": len(self.orders), "node_errors": faults}
        return _json(answer)

    def _fault(self, node):
        """What ComfyUI finds wrong with a node before it queues, or None."""
        inputs, kind = node["inputs"], node["class_type"]
        if kind == "CheckpointLoaderSimple":
            models = self.nodes[kind]["input"]["required"]["ckpt_name"][0]
            if inputs["ckpt_name"] not in models:
                return _fault(kind, "ckpt_name", "value_not_in_list")
        if kind == "LoadImage" and inputs["image"] not in self.uploads:
            return _fault(kind, "image", "custom_validation_failed")
        if kind == "EmptyImage" and inputs["width"] > 16_384:
            return _fault(kind, "width", "value_bigger_than_max")
        if kind == "SlowImage" and "unsayable" in inputs["text"]:
            return _fault(kind, "text", "value_not_in_list")
        return None

    # -- jobs

    def _step(self) -> None:
        """End the running job."""
        while self.queue and not self.held:
            self._run(self.queue.pop(0))

    def _run(self, job) -> None:
        self.ran.append(job["id"])
        slow = [one["inputs"] for one in job["graph"].values() if one["class_type"] == "SlowImage"]
        mode = slow[0]["mode"] if slow else "ok"
        if mode == "exit":
            return self.restart()
        if mode in _ERRORS:
            status = copy.deepcopy(NEW["history error"]["status"])
            status["messages"][-1][1] |= {
                "exception_type": _ERRORS[mode],
                "exception_message": f"prompt was: {slow[0]['text']}",
                "current_inputs": {"text": [slow[0]["text"]]},
            }
            return self._end(job, {}, status)
        status = copy.deepcopy(NEW["history done"]["status"])
        status["messages"][-1][1]["timestamp"] += 2_000
        return self._end(job, {end: self._save(job, end) for end in job["outputs"]}, status)

    def _end(self, job, outputs, status) -> None:
        prompt = [0, job["id"], job["graph"], job["extra"], job["outputs"]]
        self.history[job["id"]] = {"prompt": prompt, "outputs": outputs, "status": status}

    def _save(self, job, end):
        """Save the file of an output; an equal graph is answered with the earlier file."""
        node = job["graph"][end]
        key = json.dumps([job["graph"], end])
        if key in self._cached:
            return self._cached[key]
        prefix = node["inputs"]["filename_prefix"]
        folder, _, stem = prefix.rpartition("/")
        is_video = node["class_type"] == "SaveVideo"
        name = f"{stem}_{len(self.files) + 1:05}_.{'mp4' if is_video else 'png'}"
        self.files[folder, name] = self._file(job["graph"], is_video=is_video)
        listed = {"images": [{"filename": name, "subfolder": folder, "type": "output"}]}
        self._cached[key] = listed | ({"animated": [True]} if is_video else {})
        return self._cached[key]

    def _file(self, graph, *, is_video: bool) -> bytes:
        has_graph = "--disable-metadata" not in self.argv
        if is_video:
            return MP4 + (json.dumps(graph).encode() if has_graph else b"")
        sides = [one["inputs"] for one in graph.values() if "width" in one["inputs"]]
        width, height = (sides[0]["width"], sides[0]["height"]) if sides else (128, 128)
        # Always with the graph, as a save node that ignores the option.
        return with_graph(picture_of(width, height), graph)


def _fault(kind: str, field: str, reason: str):
    error = {"type": reason, "extra_info": {"input_name": field, "received_value": "SECRET"}}
    return {"errors": [error], "class_type": kind}


def _above(graph, end):
    seen, line = set(), [end]
    while line:
        number = line.pop()
        seen.add(number)
        links = [one[0] for one in graph[number]["inputs"].values() if isinstance(one, list)]
        line += [one for one in links if one not in seen]
    return seen


def _json(body, status: int = 200) -> Response:
    return Response(json.dumps(body), status, content_type="application/json")


def cut(request: Request) -> Response:
    """End the connection without an answer."""
    request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return Response()
