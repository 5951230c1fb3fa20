"""A client of the gateway, as an agent might write one: post, poll the task, download."""

import hashlib
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import attrs
import requests

from gateway_demo.tour.errors import DemoError

# The gateway may take 20 seconds to respond to a payment.
_TIMEOUT_S = 40.0
# Four polls a second; the gateway's limit is five.
_POLL_S = 0.25
_DONE_S = 120.0


def open_session() -> requests.Session:
    """Return a session that uses no proxy."""
    session = requests.Session()
    session.trust_env = False
    return session


@attrs.define
class Client:
    """A client of one gateway."""

    base_url: str
    session: requests.Session = attrs.field(repr=False)

    def answers(self) -> bool:
        """Whether the gateway is up."""
        try:
            return self.session.get(f"{self.base_url}/api/health", timeout=_TIMEOUT_S).ok
        except requests.ConnectionError:
            return False

    def manifest(self) -> dict[str, Any]:
        """Return the manifest: the offers, and the wallet to pay."""
        return self._get("/.well-known/agent-manifest.json")

    def post(
        self, path: str, body: Any, *, expect: HTTPStatus, **headers: str
    ) -> requests.Response:
        """Post JSON; raises `DemoError` for any status but the expected one."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"{self.base_url}{path}"
        answer = self.session.post(url, json=body, headers=names, timeout=_TIMEOUT_S)
        return _check_status(answer, expect)

    def follow(self, status_url: str, show: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Poll a task until it is done, and call `show` with each response.

        Raises `DemoError` if the task fails or is not done in time.
        """
        deadline = time.monotonic() + _DONE_S
        while time.monotonic() < deadline:
            task = self._get(status_url)
            show(task)
            if task["status"] == "failed":
                raise DemoError(f"The generation failed: {task['error']} ({task['details']})")
            if task["done"]:
                return task
            time.sleep(_POLL_S)
        raise DemoError(f"The task {status_url} is not done after {_DONE_S:.0f} seconds.")

    def download(self, output: dict[str, Any]) -> bytes:
        """Return an output's bytes; raises `DemoError` if its checksum differs."""
        answer = _check_status(self.session.get(output["url"], timeout=_TIMEOUT_S), HTTPStatus.OK)
        if hashlib.sha256(answer.content).hexdigest() != output["sha256"]:
            raise DemoError(f"The file at {output['url']} does not match its SHA-256.")
        return answer.content

    def _get(self, path: str) -> dict[str, Any]:
        answer = self.session.get(f"{self.base_url}{path}", timeout=_TIMEOUT_S)
        read: dict[str, Any] = _check_status(answer, HTTPStatus.OK).json()
        return read


def _check_status(answer: requests.Response, status: HTTPStatus) -> requests.Response:
    if answer.status_code == status:
        return answer
    try:
        fields = answer.json()
        why = " ".join(
            str(fields[name]) for name in ("code", "error", "details") if fields.get(name)
        )
    except (ValueError, AttributeError):
        why = answer.text[:200]
    asked = f"{answer.request.method} {answer.request.path_url}"
    raise DemoError(f"{asked} returned {answer.status_code}: {why}")
