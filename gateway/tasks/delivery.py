"""Turns a provider's result into outputs that the buyer can fetch."""

import asyncio
import contextlib
import math
from functools import partial

import attrs
import structlog

from gateway.catalog.registered import Registered
from gateway.contracts import Cost, Lease, OutputStoreUnavailable
from gateway.contracts.store import CostSource
from gateway.domain import (
    Endpoint,
    GenerationRequest,
    Link,
    Output,
    Result,
)
from gateway.domain.acceptance import accept
from gateway.domain.offers import MAX_OUTPUTS, MAX_RESULT_BYTES
from gateway.errors import LinkDead, NotAsOrdered, ResultUnusable
from gateway.sandbox import SandboxLost
from gateway.sandbox.kinds import ResultChecks
from gateway.tasks.resources import Resources
from gateway.telemetry import signals

MAX_TEXT_CHARS = 20_000_000
# A shorter text is searched for words in the event loop.
_SHORT_CHARS = 20_000
# A million dollars. A higher cost must be a provider's mistake.
_MAX_COST_MICROS = 10**12
_NOT_FETCHED = "The result was made, but cannot be fetched."
_log = structlog.get_logger()


@attrs.define(eq=False, repr=False)
class Delivery:
    """Downloads, checks and stores the result of one lease."""

    resources: Resources
    lease: Lease

    async def fetch(self, result: Result) -> Result:
        """Return a result of a checked shape with each link replaced by its download.

        Raises as `check_shape` does, and `LinkDead`.
        """
        if type(result.outputs) is tuple and not has_links(result):
            return result
        # Copy the outputs, because a plugin may change its list later.
        outputs: list[Output | Link] = []
        for output in result.outputs:
            outputs.append(await self._download(output) if isinstance(output, Link) else output)
            # Stop as soon as the outputs together are too large.
            check_shape(attrs.evolve(result, outputs=tuple(outputs)))
        return attrs.evolve(result, outputs=tuple(outputs))

    async def _download(self, link: Link) -> Output:
        """Download an output. Retry after failures, but not if the file is too large."""
        timing = self.resources.timing
        next_pause_s = self.resources.shortages.pauses(timing.download_pauses_s, self.lease.task_id)
        while True:
            try:
                data = await self.resources.links.download(
                    link.url, timeout_s=timing.download_timeout_s
                )
                return Output(data=data, media_type=link.media_type)
            except Exception as error:
                is_known = isinstance(error, ResultUnusable)
                reason = str(error) if is_known else type(error).__name__
                _log.warning("output.not_fetched", task=self.lease.task_id, reason=reason)
                if is_known and not isinstance(error, LinkDead):
                    raise
                pause_s = next_pause_s(error)
                if pause_s is None:
                    raise LinkDead(reason if is_known else _NOT_FETCHED) from error
                await asyncio.sleep(pause_s)

    async def check(self, result: Result, endpoint: Endpoint) -> Result:
        """Return the result for the buyer, after `check_result`.

        Raises as `check_result` does, and `WriteFailed` if the sandbox keeps failing.
        """
        return await self.resources.retry_write(
            lambda: check_result(result, self.lease.request, endpoint, self.resources.results),
            self.lease.task_id,
            on=SandboxLost,
        )

    async def store(self, result: Result, registered: Registered) -> None:
        """Store the outputs and complete the task; raises `WriteFailed`.

        Deletes the outputs if the lease was lost. A repeat of `complete` after a lost response is
        no such case: it returns True for a task that has these outputs.
        """
        resources, lease = self.resources, self.lease
        # One folder per lease, so that attempts never overwrite each other's files.
        folder = f"{lease.task_id}-{lease.token[:16].lower()}"
        stored = await resources.retry_write(
            partial(resources.output_store.save, folder, result), lease.task_id
        )
        now = resources.now()
        complete = partial(
            resources.queue.complete,
            lease,
            stored,
            expires_at=now + resources.retention_s,
            now=now,
            cost=cost_of(result, registered, lease.request),
            provider=registered.upstream.provider.name,
        )
        if await resources.retry_write(complete, lease.task_id):
            seconds = max(0.0, resources.now() - lease.started_at)
            signals.task_ended.send(slug=lease.bought, seconds=seconds)
            _log.info("task.completed", task=lease.task_id, attempt=lease.attempt)
        else:
            # Otherwise retention deletes them later.
            with contextlib.suppress(OutputStoreUnavailable):
                await resources.output_store.delete(stored.outputs)


def check_shape(result: Result) -> None:
    """Check that a result can be stored, so that later only the disk can refuse it.

    Raises `ValueError` for a result that no provider may return, and `ResultUnusable` for one that
    is too large.
    """
    if not isinstance(result, Result) or not isinstance(result.outputs, tuple | list):
        raise ValueError("the provider returned no gateway.Result")  # noqa: TRY004 - one error
    size = sum(map(_count_output_bytes, result.outputs)) + _count_text_bytes(result.text)
    if len(result.outputs) > MAX_OUTPUTS:
        raise ValueError("the provider returned too many outputs")
    if size > MAX_RESULT_BYTES:
        raise ResultUnusable("The result was made, but is larger than what is sold.")


def has_links(result: Result) -> bool:
    """Whether an output has yet to be downloaded."""
    return any(isinstance(output, Link) for output in result.outputs)


async def check_result(
    result: Result, request: GenerationRequest, endpoint: Endpoint, checks: ResultChecks
) -> Result:
    """Return a result as it is sold: outputs are checked by their kind, and all is as ordered.

    Raises what `ResultChecks.check` and the declaration's `accept` raise. A `NotAsOrdered` states
    whether the vendor reported the result as free.
    """
    try:
        result = await checks.check(result, request, endpoint)
        if len(result.text or "") < _SHORT_CHARS and not endpoint.declaration.accepts_slowly:
            return accept(endpoint, request, result)
        return await asyncio.to_thread(accept, endpoint, request, result)
    except NotAsOrdered as error:
        error.is_free = result.cost_micros == 0 and result.is_cost_told
        raise


def _count_output_bytes(output: object) -> int:
    if not isinstance(output, Output | Link) or not isinstance(output.media_type, str):
        raise ValueError("an output is neither a gateway.Output nor a gateway.Link")  # noqa: TRY004 - one error
    if isinstance(output, Link):
        return 0
    measures = (output.width, output.height)
    if not isinstance(output.data, bytes) or not all(isinstance(m, int | None) for m in measures):
        raise ValueError("an output is not bytes, or its measures are no whole numbers")
    seconds = output.seconds
    is_number = isinstance(seconds, int | float) and math.isfinite(seconds) and seconds >= 0
    if seconds is not None and not is_number:
        raise ValueError("an output's seconds are no number")
    return len(output.data)


def _count_text_bytes(text: object) -> int:
    if text is None:
        return 0
    if not isinstance(text, str):
        raise ValueError("the text is no text")  # noqa: TRY004 - one error
    if len(text) > MAX_TEXT_CHARS:
        raise ResultUnusable("The text was made, but is longer than what is sold.")
    # `encode` raises ValueError for half of a surrogate pair.
    return len(text.encode())


def cost_of(result: Result, registered: Registered, request: GenerationRequest) -> Cost | None:
    """Return the operator's cost, or None if it is unknown or implausible.

    The provider's cost of this result takes precedence over the endpoint's. An implausible cost
    does not fail the task, because the buyer's result matters more.
    """
    micros: object = registered.endpoint.cost_of(request)
    source: CostSource = "set" if registered.is_cost_set else "table"
    if result.cost_micros is not None:
        micros, source = result.cost_micros, "told" if result.is_cost_told else "set"
    if isinstance(micros, int) and 0 <= micros <= _MAX_COST_MICROS:
        return Cost(micros=micros, source=source)
    return None
