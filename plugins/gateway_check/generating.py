"""One generation with a real adapter and without a sale: for `check --live` and for examples."""

import asyncio
from typing import Self

import attrs

from gateway.catalog.registered import Registered
from gateway.contracts import Cancelling, Polling
from gateway.domain import Endpoint, GenerationRequest, Handle, Link, Output, Result
from gateway.errors import RateLimited, SubmitUncertain, Transient
from gateway.outputs.downloads import Downloader
from gateway.sandbox.kinds import ResultChecks
from gateway.settings import Settings
from gateway.tasks.delivery import check_result, check_shape

_POLL_S = 2.0
_LONGEST_POLL_S = 30.0


@attrs.define
class _UnsoldJob:
    """A job that is not stored."""

    endpoint: Endpoint
    task_id: str
    attempt: int = 1

    async def progress(self, fraction: float, note: str = "") -> None:
        """Ignore progress."""

    async def save(self, handle: Handle) -> None:
        """Ignore the handle: an interrupted command polls no more."""


@attrs.define
class Generator:
    """Generates at the operator's expense; a context manager."""

    # The task's id, as the vendors see it.
    task_id: str
    results: ResultChecks = attrs.field(factory=ResultChecks)
    links: Downloader = attrs.field(factory=Downloader)

    @classmethod
    def of(cls, settings: Settings, task_id: str) -> Self:
        """Return a generator that follows the same links as a sale."""
        return cls(task_id, links=Downloader(follows_loopback=settings.allow_loopback_links))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.results.close()
        await self.links.close()

    async def generate(self, registered: Registered, request: GenerationRequest) -> Result:
        """Submit once and poll until done, within the endpoint's timeout; then cancel the job.

        Raises whatever the adapter raises.
        """
        async with asyncio.timeout(registered.endpoint.timeout_s):
            return await self._generate(registered, request)

    async def _generate(self, registered: Registered, request: GenerationRequest) -> Result:
        upstream, job = registered.upstream, _UnsoldJob(registered.endpoint, self.task_id)
        await upstream.validate(request, registered.endpoint)
        submitted = await upstream.call(upstream.provider.submit, request, job)
        provider = upstream.provider
        if isinstance(submitted, Result):
            return submitted
        if not isinstance(provider, Polling):
            raise TypeError("The provider returned a handle and has no `poll`.")
        try:
            while True:
                answer = await _poll(registered, submitted, job)
                if isinstance(answer, Result):
                    return answer
                await asyncio.sleep(min(answer, _LONGEST_POLL_S))
        except asyncio.CancelledError:
            if isinstance(provider, Cancelling):
                await upstream.call(provider.cancel, submitted)
            raise

    async def fetch(
        self, result: Result, request: GenerationRequest, endpoint: Endpoint
    ) -> tuple[tuple[Output, ...], str | None]:
        """Download and check a result as for a sale; return its outputs and its text.

        Raises as `check_shape`, `check_result` and `Downloader.download` do, and `ValueError` if it
        is empty.
        """
        check_shape(result)
        outputs = [
            Output(data=await self.links.download(one.url), media_type=one.media_type)
            if isinstance(one, Link)
            else one
            for one in result.outputs
        ]
        whole = attrs.evolve(result, outputs=tuple(outputs))
        check_shape(whole)
        whole = await check_result(whole, request, endpoint, self.results)
        made = tuple(one for one in whole.outputs if isinstance(one, Output))
        if not made and whole.text is None:
            raise ValueError("The provider returned nothing.")
        return made, whole.text


async def _poll(registered: Registered, handle: Handle, job: _UnsoldJob) -> Result | float:
    """Return the result, or the seconds until the next poll."""
    provider = registered.upstream.provider
    assert isinstance(provider, Polling)  # noqa: S101 - checked by `_generate`
    try:
        answer = await registered.upstream.call(provider.poll, handle, job)
    except RateLimited as error:
        return error.retry_after_s
    except (Transient, SubmitUncertain):
        return _POLL_S
    return answer if isinstance(answer, Result) else answer.poll_after_s or _POLL_S


def describe_cost(micros: int | None) -> str:
    """Return a cost of 10⁻⁶ US dollars in words."""
    return "not known" if micros is None else f"${micros / 10**6:.4f}"


def write_bill(lines: list[tuple[Endpoint, int | None]], what: str) -> str:
    """Return the bill before it is agreed to: a line per endpoint, and the sum of known costs."""
    rows = [
        f"{endpoint.slug}: {endpoint.model or endpoint.slug}, "
        + (describe_cost(micros) if micros is not None else _unknown_cost(endpoint))
        for endpoint, micros in lines
    ]
    total = describe_cost(sum(micros or 0 for _, micros in lines))
    more = ", plus unknown costs" if None in [micros for _, micros in lines] else ""
    count = f"{len(lines)} {what}{'s' if len(lines) != 1 else ''}"
    return "\n".join([*rows, f"Your vendors bill about {total} for {count}{more}."])


def _unknown_cost(endpoint: Endpoint) -> str:
    return f"cost unknown; sold for {endpoint.price_units / 10**6:g} USDC"
