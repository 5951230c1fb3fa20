"""The table of limits in docs/plugin-reference.md, from the constants that define them."""

import attrs

from gateway import Endpoint, Outbound, SandboxLimits
from gateway.catalog.health import TIMEOUT_S as HEALTH_S
from gateway.catalog.upstream import CLOSE_S
from gateway.domain import (
    MAX_ATTEMPTS,
    MAX_FILE_BYTES,
    MAX_PICTURE_PIXELS,
    MAX_PROMPT_CHARS,
    MIN_PICTURE_SIDE,
)
from gateway.domain.acceptance import MAX_JSON_CHARS
from gateway.domain.offers import MAX_FILE_NAME_CHARS, MAX_OUTPUTS, MAX_RESULT_BYTES
from gateway.outputs.downloads import MAX_DOWNLOAD_BYTES
from gateway.running.timing import Timing
from gateway.sandbox.pictures import MAX_PICTURE_BYTES
from gateway.sandbox.pictures_child import MAX_PIXELS
from gateway.tasks.delivery import MAX_TEXT_CHARS
from gateway.tasks.job import MAX_HANDLE_CHARS
from gateway.tasks.polling import MAX_DEAD_LINKS
from gateway.tasks.timing import TaskTiming

_HEAD = """## Limits

MB are 10⁶ bytes. A request beyond a limit is refused before payment. A result beyond a limit fails
the task, and a refund is due.
"""


def table() -> str:
    """Return the section about limits."""
    rows = (*_of_requests(), *_of_results(), *_of_methods())
    return "\n".join((_HEAD, *(f"- {subject}: {limit}" for subject, limit in rows), ""))


def _of_requests() -> tuple[tuple[str, str], ...]:
    return (
        ("a buyer's prompt", f"{MAX_PROMPT_CHARS:,} characters, or `Endpoint.max_prompt_chars`"),
        ("a buyer's file", f"{_mb(MAX_FILE_BYTES)}; its name {MAX_FILE_NAME_CHARS} characters"),
        (
            "a buyer's picture to edit",
            f"{MIN_PICTURE_SIDE} pixels or more a side, {MAX_PICTURE_PIXELS:,} pixels in all",
        ),
        ("a buyer's document", "`Endpoint.max_pages`; without it, pages are not counted"),
    )


def _of_results() -> tuple[tuple[str, str], ...]:
    timing = TaskTiming()
    longest = attrs.fields(Outbound).max_bytes.default
    return (
        ("outputs of one result", str(MAX_OUTPUTS)),
        ("all outputs of one result, and its text", _mb(MAX_RESULT_BYTES)),
        ("one picture of a result", f"{_mb(MAX_PICTURE_BYTES)}, {MAX_PIXELS:,} pixels"),
        ("the text of a result", f"{MAX_TEXT_CHARS:,} characters; JSON {MAX_JSON_CHARS:,}"),
        (
            "the file of a `Link`",
            (
                f"{_mb(MAX_DOWNLOAD_BYTES)} in {timing.download_timeout_s:g} s, "
                f"{1 + len(timing.download_pauses_s)} tries; a job is polled for a fresh link, "
                f"until {MAX_DEAD_LINKS} were dead"
            ),
        ),
        ("an answer that `Outbound` reads", f"{_mb(longest)}, or `Outbound(max_bytes=…)`"),
        ("all texts of a `Handle`", f"{MAX_HANDLE_CHARS:,} characters"),
    )


def _of_methods() -> tuple[tuple[str, str], ...]:
    timing, sandbox = TaskTiming(), SandboxLimits()
    (least_s, most_s), (first_s, last_s) = timing.poll_after_s, timing.poll_pauses_s
    usual_s = attrs.fields(Endpoint).timeout_s.default
    (wait_s, waits_s) = timing.rate_limit_s
    return (
        ("attempts at a task", str(MAX_ATTEMPTS)),
        (
            "one attempt, with the wait for its job",
            f"`Endpoint.timeout_s`: {usual_s:g} s by default",
        ),
        ("one `poll`", f"{timing.poll_timeout_s:g} s"),
        (
            "the pause between two polls",
            (
                f"`Pending.poll_after_s`, {least_s:g} to {most_s:g} s; without it {first_s:g} s, "
                f"growing to {last_s:g} s"
            ),
        ),
        ("`cancel`", f"{timing.cancel_timeout_s:g} s"),
        ("`validate`, with the count of pages", f"{Timing().validation_s:g} s"),
        ("`health`", f"{HEALTH_S:g} s"),
        ("`close`", f"{CLOSE_S:g} s"),
        (
            "the wait that `RateLimited` asks for",
            (
                f"{wait_s:g} to {waits_s:,.0f} s; over {timing.long_wait_s:g} s the endpoint is "
                f"off sale, and a task that waits {timing.max_waited_s:,.0f} s in all fails"
            ),
        ),
        (
            "one call of a `Sandbox`",
            (f"`SandboxLimits`: {sandbox.wall_s:g} s and {_mb(sandbox.memory_bytes)} by default"),
        ),
    )


def _mb(count: int) -> str:
    return f"{count / 10**6:,g} MB"
