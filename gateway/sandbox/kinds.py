"""Reads files and checks results in child processes, by what their kinds declare."""

import json
import math
from collections.abc import Mapping
from typing import Any

import attrs

from gateway.domain import (
    MAX_FILE_BYTES,
    PICTURES,
    Attachment,
    Endpoint,
    FileKind,
    GenerationRequest,
    InSandbox,
    Link,
    Output,
    Result,
    ResultKind,
)
from gateway.errors import ContentPolicy, ExecutionError, InvalidInput, ResultUnusable
from gateway.sandbox import (
    UNPAID_NICE,
    Sandbox,
    SandboxEnded,
    SandboxLimits,
    SandboxLost,
    SandboxRefusal,
)
from gateway.sandbox.limits import PAID_NICE
from gateway.sandbox.pictures import Pictures, check_each

_MAX_REASON_CHARS = 300
# A few numbers.
_MAX_REPORT_BYTES = 10_000
# Of a report that a decoder made up.
_WRONG_REPORT = (ValueError, TypeError, KeyError, OverflowError, RecursionError)
_REASONS = {
    "out of time": "it takes too much time",
    "out of memory": "it takes too much memory",
    "crashed": "it is damaged, or takes too much memory",
}


@attrs.define(eq=False, repr=False)
class _Sandboxes:
    """One sandbox for each function."""

    nice: int
    _kept: dict[InSandbox, Sandbox] = attrs.field(factory=dict)

    def __getitem__(self, declared: InSandbox) -> Sandbox:
        if declared not in self._kept:
            limits = attrs.asdict(declared, filter=attrs.filters.exclude("function", "warm"))
            self._kept[declared] = Sandbox(
                function=declared.function,
                warm=declared.warm,
                limits=SandboxLimits(**limits, nice=self.nice),
            )
        return self._kept[declared]

    def close(self) -> None:
        for sandbox in self._kept.values():
            sandbox.close()


@attrs.define(eq=False, repr=False)
class FileReaders:
    """Reads buyers' files before payment, by the functions of their kinds."""

    _sandboxes: _Sandboxes = attrs.field(factory=lambda: _Sandboxes(UNPAID_NICE))

    async def read(
        self, kind: FileKind, attachment: Attachment, most_bytes: int
    ) -> tuple[Attachment, dict[str, float]]:
        """Return the file as providers get it, and its measures.

        Raises `InvalidInput` with a sentence for the buyer, and `ExecutionError` if the sandbox or
        the kind's function fails.
        """
        if kind.read is None:
            return attachment, {}
        try:
            report, data = await self._sandboxes[kind.read].call_parts(
                attachment.extension, attachment.data, str(most_bytes)
            )
        except SandboxRefusal as error:
            raise InvalidInput(str(error)[:_MAX_REASON_CHARS]) from None
        except SandboxEnded as error:
            raise InvalidInput(f"The {kind.name} cannot be read: {_REASONS[error.end]}.") from None
        except (SandboxLost, ValueError) as error:
            raise ExecutionError(f"The {kind.name} cannot be checked now.") from error
        if len(data) > MAX_FILE_BYTES:
            raise InvalidInput(f"The {kind.name} is too large once it is read.")
        measured = _read_measures(kind, report)
        _check_limits(kind, measured)
        return attrs.evolve(attachment, data=data) if data else attachment, measured

    def close(self) -> None:
        """End the processes; the next file starts another."""
        self._sandboxes.close()


def _parse(report: bytes) -> Any:
    """Parse a child's few facts on the event loop; raises `ValueError` for a long report."""
    if len(report) > _MAX_REPORT_BYTES:
        raise ValueError("the report is too long")
    return json.loads(report)


def _read_measures(kind: FileKind, report: bytes) -> dict[str, float]:
    """Return every declared measure; raises `ExecutionError` if the function returned others."""
    try:
        found = _parse(report)
        measured = {name: float(found[name]) for name in kind.measures}
        are_right = all(math.isfinite(one) and one >= 0 for one in measured.values())
    except _WRONG_REPORT:
        are_right = False
    if not are_right:
        raise ExecutionError(f"The {kind.name} cannot be measured now.")
    return measured


def _check_limits(kind: FileKind, measured: Mapping[str, float]) -> None:
    for limit in kind.limits:
        value = measured[limit.measure]
        if not limit.least <= value <= limit.most:
            raise InvalidInput(
                f"The {kind.name} has {value:,.10g} {limit.measure}; "
                f"{limit.least:,.10g} to {limit.most:,.10g} are allowed."
            )


@attrs.define(eq=False, repr=False)
class ResultChecks:
    """Checks providers' outputs, by the functions of their kinds."""

    pictures: Pictures = attrs.field(factory=Pictures)
    _sandboxes: _Sandboxes = attrs.field(factory=lambda: _Sandboxes(PAID_NICE), alias="sandboxes")

    async def check(self, result: Result, request: GenerationRequest, endpoint: Endpoint) -> Result:
        """Return a result whose outputs were decoded and measured as their kinds demand.

        Raises `ContentPolicy` or `ResultUnusable` for a result that cannot be sold, and
        `SandboxLost` if the sandbox failed, which has nothing to do with the result.
        """
        declared = endpoint.declaration
        if declared.results == (PICTURES,):
            return await self.pictures.check(result, request.output_format)
        checked = [kind for kind in declared.results if kind.is_checked]
        first = next(iter(declared.results), None)
        if first in checked and not any(
            declared.result_kind(output.media_type) == first for output in result.outputs
        ):
            # A text beside it, or another file, is not what was ordered.
            raise _nothing(checked[0], endpoint)
        if not checked:
            return result
        for output in result.outputs:
            _check_size(declared.result_kind(output.media_type), output)
        wanted = request.output_format or ""
        outputs = await check_each(
            result.outputs, lambda output: self._check(output, wanted, endpoint)
        )
        return attrs.evolve(result, outputs=outputs)

    async def _check(self, output: Output | Link, wanted: str, endpoint: Endpoint) -> Output | Link:
        kind = endpoint.declaration.result_kind(output.media_type)
        if kind is None or not kind.is_checked or isinstance(output, Link):
            return output
        if kind.check is None:
            return await self.pictures.check_one(output, wanted)
        try:
            report, data = await self._sandboxes[kind.check].call_parts(
                wanted, output.media_type, output.data
            )
        except SandboxRefusal as error:
            reason = str(error)[:_MAX_REASON_CHARS]
            raise ResultUnusable(f"The provider's {kind.name} is not right: {reason}.") from None
        except ValueError as error:
            problem = f"The check of the {kind.name} does not return its declared facts."
            raise ResultUnusable(problem) from error
        except SandboxEnded as error:
            problem = f"The provider's {kind.name} ended its decoder: {error.end}."
            raise ResultUnusable(problem) from error
        if len(data) > kind.max_bytes:
            raise ResultUnusable(f"The {kind.name} has {len(data)} bytes after its check.")
        return _output_of(kind, report, data or output.data)

    def close(self) -> None:
        """End the processes; the next result starts another."""
        self.pictures.close()
        self._sandboxes.close()


def _check_size(kind: ResultKind | None, output: Output | Link) -> None:
    """Raise `ResultUnusable` for an empty or large output of a kind with a check of its own."""
    if kind is None or kind.check is None or isinstance(output, Link):
        return
    if not output.data or len(output.data) > kind.max_bytes:
        raise ResultUnusable(f"The provider's {kind.name} has {len(output.data)} bytes.")


def _output_of(kind: ResultKind, report: bytes, data: bytes) -> Output:
    """Return an output with the facts of its check; raises `ResultUnusable` if some are missing."""
    try:
        facts: dict[str, Any] = _parse(report)
        numbers = {name: facts[name] for name in kind.facts}
        are_right = facts["media_type"] in kind.media_types and all(
            isinstance(one, int | float) and math.isfinite(one) and one > 0
            for one in numbers.values()
        )
    except _WRONG_REPORT:
        are_right = False
    if not are_right:
        raise ResultUnusable(f"The check of the {kind.name} does not return its declared facts.")
    sides = {name: int(one) for name, one in numbers.items() if name != "seconds"}
    return Output(
        data=data, media_type=facts["media_type"], seconds=numbers.get("seconds"), **sides
    )


def _nothing(kind: ResultKind, endpoint: Endpoint) -> Exception:
    problem = f"The provider returned no {kind.name}"
    if endpoint.reads_prompt:
        return ContentPolicy(f"{problem} for this prompt.")
    return ResultUnusable(f"{problem}.")
