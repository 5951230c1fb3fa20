"""From a provider's result to outputs a buyer can fetch: fetched, looked at, kept, written down."""

import asyncio
import contextlib

import attrs
import structlog

from gateway.contracts import Lease, OutputStoreUnavailable
from gateway.domain import TEXT_TO_IMAGE, Endpoint, Link, Output, Result, StoredResult
from gateway.errors import LinkDead, ResultUnusable
from gateway.sandbox import SandboxLost
from gateway.tasks.resources import Resources, retry_write

_FETCH_S = 60.0  # of one download
_FETCH_PAUSES_S = (0.5, 2.0)  # before a download is tried again
_MAX_OUTPUTS = 16
_MAX_BYTES = 128_000_000  # of all outputs of a task
_MAX_TEXT_CHARS = 20_000_000
_MAX_COST_MICROS = 10**12  # a million dollars: whoever says more counts wrongly
_NOT_FETCHED = "The result was made, but cannot be fetched."
_log = structlog.get_logger()


@attrs.define
class Delivery:
    """Brings the result of one lease home."""

    resources: Resources
    lease: Lease

    async def fetched(self, result: Result) -> Result:
        """Return a result whose every output is here.

        Raises `ValueError` for what no provider may return, `ResultUnusable` for what is too
        large, and `LinkDead`.
        """
        check_shape(result)
        outputs: list[Output | Link] = []
        for output in result.outputs:
            outputs.append(await self._fetch(output) if isinstance(output, Link) else output)
            check_shape(attrs.evolve(result, outputs=tuple(outputs)))  # not a gigabyte, either
        return attrs.evolve(result, outputs=tuple(outputs))

    async def _fetch(self, link: Link) -> Output:
        """Download; a moment's trouble is waited for, a file beyond the limit is not."""
        for pause_s in (*_FETCH_PAUSES_S, None):
            try:
                data = await self.resources.links.download(link.url, timeout_s=_FETCH_S)
                return Output(data=data, media_type=link.media_type)
            except Exception as error:
                is_known = isinstance(error, ResultUnusable)
                reason = str(error) if is_known else type(error).__name__
                _log.warning("output.not_fetched", task=self.lease.task_id, reason=reason)
                if is_known and not isinstance(error, LinkDead):
                    raise
                if pause_s is None:
                    raise LinkDead(reason if is_known else _NOT_FETCHED) from error
                await asyncio.sleep(pause_s)
        raise AssertionError

    async def checked(self, result: Result, endpoint: Endpoint) -> Result:
        """Return the result as it is sold: of pictures, each one is looked at.

        Raises what `Pictures.check` does, and `WriteFailed`.
        """
        if endpoint.capability == TEXT_TO_IMAGE:
            wanted = self.lease.request.output_format
            return await retry_write(
                lambda: self.resources.pictures.check(result, wanted),
                self.lease.task_id,
                on=SandboxLost,
            )
        if not result.outputs and result.text is None:
            raise ResultUnusable("The provider returned nothing.")
        return result

    async def keep(self, result: Result, endpoint: Endpoint) -> None:
        """Write everything down, and end the task (T5); raises `WriteFailed`."""
        # A name of this lease's own: no other lane of the task overwrites it.
        folder = f"{self.lease.task_id}-{self.lease.token[:16].lower()}"
        stored = await retry_write(
            lambda: self.resources.output_store.save(folder, result), self.lease.task_id
        )
        if await self._complete(stored, _cost_of(result, endpoint)):
            _log.info("task.completed", task=self.lease.task_id, attempt=self.lease.attempt)
        else:
            with contextlib.suppress(OutputStoreUnavailable):  # retention deletes it, then
                await self.resources.output_store.delete(stored.outputs)

    async def _complete(self, stored: StoredResult, cost_micros: int | None) -> bool:
        now = self.resources.now()
        return await retry_write(
            lambda: self.resources.queue.complete(
                self.lease,
                stored,
                expires_at=now + self.resources.retention_s,
                now=now,
                cost_micros=cost_micros,
            ),
            self.lease.task_id,
        )


def check_shape(result: Result) -> None:
    """Raise `ValueError` for a result that no provider may return, `ResultUnusable` for a long one.

    Whatever passes can be kept: only a disk may refuse it later.
    """
    if not isinstance(result, Result) or not isinstance(result.outputs, tuple | list):
        raise ValueError("the provider returned no gateway.Result")  # noqa: TRY004 - one error
    size = sum(map(_size, result.outputs)) + _text_size(result.text)
    if len(result.outputs) > _MAX_OUTPUTS:
        raise ValueError("the provider returned too many outputs")
    if size > _MAX_BYTES:
        raise ResultUnusable("The result was made, but is larger than what is sold.")


def _size(output: object) -> int:
    """Return the bytes of an output; a link has none yet."""
    if not isinstance(output, Output | Link) or not isinstance(output.media_type, str):
        raise ValueError("an output is neither a gateway.Output nor a gateway.Link")  # noqa: TRY004 - one error
    if isinstance(output, Link):
        return 0
    measures = (output.width, output.height)
    if not isinstance(output.data, bytes) or not all(isinstance(m, int | None) for m in measures):
        raise ValueError("an output is not bytes, or its measures are no whole numbers")
    return len(output.data)


def _text_size(text: object) -> int:
    if text is None:
        return 0
    if not isinstance(text, str):
        raise ValueError("the text is no text")  # noqa: TRY004 - one error
    if len(text) > _MAX_TEXT_CHARS:
        raise ResultUnusable("The text was made, but is longer than what is sold.")
    return len(text.encode())  # a ValueError where a half of a character stands alone


def _cost_of(result: Result, endpoint: Endpoint) -> int | None:
    """Return what the operator paid; a figure that cannot be one is not worth a buyer's picture."""
    told = result.cost_micros if result.cost_micros is not None else endpoint.cost_micros
    if isinstance(told, int) and 0 <= told <= _MAX_COST_MICROS:
        return told
    return None
