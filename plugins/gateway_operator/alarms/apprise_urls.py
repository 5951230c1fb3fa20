"""Sends alarms by Apprise, in a child process, so that its memory is freed afterwards."""

import asyncio
import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from gateway.contracts.parts import Alarm
from gateway_operator.alarms.carriers import LATE, Outcomes
from gateway_operator.alarms.messages import write_letter
from gateway_operator.alarms.records import AlarmMessage

_CHILD = Path(__file__).with_name("apprise_child.py")
# For the child; messages not sent by then are retried later.
_LIMIT_S = 30.0
# To start Python and import Apprise on a busy machine.
_START_S = 30.0
# The gateway's own environment contains keys.
_KEPT_VARIABLES = (
    *("PATH", "HOME", "LANG", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
_KINDS = {"urgent": "failure", "soon": "warning", "notice": "info"}


def name_of(url: str) -> str:
    """Return a channel's name: the service, and a digest to distinguish two of a kind."""
    scheme = url.partition("://")[0][:20]
    return f"{scheme}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"


@attrs.define(kw_only=True)
class AppriseUrls:
    """Sends each URL its messages as one letter."""

    urls: Sequence[str] = attrs.field(repr=False)
    limit_s: float = _LIMIT_S
    start_s: float = _START_S

    @property
    def channels(self) -> Sequence[str]:
        """The channels' names."""
        return [name_of(url) for url in self.urls]

    async def carry(self, batches: Mapping[str, Sequence[AlarmMessage]]) -> Outcomes:
        """Send all letters by one child."""
        wanted = [(url, batches[name_of(url)]) for url in self.urls if batches.get(name_of(url))]
        letters = [_write(url, [one.alarm for one in messages]) for url, messages in wanted]
        answers = await self._run_child(letters)
        return {
            message.id: answers.get(number, LATE)
            for number, (_, messages) in enumerate(wanted)
            for message in messages
        }

    def close(self) -> None:
        """Nothing to release."""

    async def _run_child(self, letters: Sequence[Mapping[str, str]]) -> dict[int, str | None]:
        """Return None or an error by letter index, for the letters that have completed."""
        order = json.dumps({"limit_s": self.limit_s, "letters": letters}).encode()
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", str(_CHILD)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
            start_new_session=True,
        )
        answers: dict[int, str | None] = {}
        try:
            async with asyncio.timeout(self.limit_s + self.start_s):
                await _exchange(child, order, answers)
        except (TimeoutError, OSError, ValueError):
            # Results that arrived before the error count.
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        return answers


async def _exchange(
    child: asyncio.subprocess.Process, order: bytes, answers: dict[int, str | None]
) -> None:
    if child.stdin is None or child.stdout is None:
        raise OSError("the child has no pipes")
    child.stdin.write(order)
    child.stdin.write_eof()
    async for line in child.stdout:
        number, problem = json.loads(line)
        answers[number] = problem


def _write(url: str, alarms: Sequence[Alarm]) -> dict[str, str]:
    letter = write_letter(alarms)
    on = [one.urgency for one in alarms if one.event in ("raised", "again")]
    kind = "urgent" if "urgent" in on else "soon" if "soon" in on else "notice"
    is_over = all(one.event == "ended" for one in alarms)
    return {
        "url": url,
        "title": letter.title,
        "body": letter.body,
        "kind": "success" if is_over else _KINDS[kind],
    }
