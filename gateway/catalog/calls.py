"""Calls into a plugin, and descriptions of their errors."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import structlog

from gateway.errors import SubmitUncertain
from gateway.telemetry.redaction import Redactor

Asked = ParamSpec("Asked")
Value = TypeVar("Value")

_MAX_TEXT_CHARS = 500
# Characters of an error's text that are redacted before the final cut.
_MAX_READ_CHARS = 20_000
_log = structlog.get_logger()


async def call_plugin(
    stop_s: float,
    call: Callable[Asked, Awaitable[Value]],
    *args: Asked.args,
    **kwargs: Asked.kwargs,
) -> Value:
    """Run a plugin call in its own task; re-raises any `Exception` from the plugin.

    Raises `SubmitUncertain` if the plugin cancels itself or raises another `BaseException`. If the
    caller is cancelled, so is the plugin. The caller waits up to `stop_s` seconds for it to end.
    """
    work = asyncio.create_task(_contain(call, *args, **kwargs), name="plugin")
    try:
        await asyncio.wait({work})
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.wait({work}, timeout=stop_s)
        if not work.done():
            _log.error("provider.does_not_stop", asked=getattr(call, "__qualname__", ""))
        work.add_done_callback(_drop_result)
        raise
    if work.cancelled():
        raise SubmitUncertain("the provider let a cancellation out")
    return work.result()


def call_plain(call: Callable[Asked, Value], *args: Asked.args, **kwargs: Asked.kwargs) -> Value:
    """Call a synchronous function of a plugin; re-raises any `Exception` from it.

    Raises `SubmitUncertain` for a cancellation or another `BaseException`.
    """
    try:
        return call(*args, **kwargs)
    except Exception:
        raise
    except BaseException as error:
        raise SubmitUncertain(f"the provider let out {type(error).__name__}") from error


async def _contain(
    call: Callable[Asked, Awaitable[Value]], *args: Asked.args, **kwargs: Asked.kwargs
) -> Value:
    """Call the plugin; turn an exception that would exit the process into `SubmitUncertain`."""
    try:
        return await call(*args, **kwargs)
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise SubmitUncertain(f"the provider let out {type(error).__name__}") from error


def _drop_result(work: "asyncio.Task[Value]") -> None:
    """Retrieve an abandoned call's exception, or asyncio logs that it was never retrieved."""
    if not work.cancelled():
        work.exception()


def error_text(error: Exception, redactor: Redactor) -> str:
    """Return the redacted text of a plugin's error, as storable UTF-8.

    Empty if the error's `__str__` raises.
    """
    try:
        text = str(error)[:_MAX_READ_CHARS]
    except Exception:  # noqa: BLE001 - a plugin's own error class may do anything
        return ""
    # Redact before the cut: half a key would not be recognised.
    text = redactor.clean(text)
    return text[:_MAX_TEXT_CHARS].encode(errors="replace").decode()


def place_in(error: BaseException, module: str) -> str:
    """Return `file:line` of the plugin's innermost frame in an error's traceback.

    `module` is any module of the plugin's package. Without a frame of the plugin, returns the
    innermost frame; without a traceback, an empty string.
    """
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    root = module.partition(".")[0]
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [each for each in frames if _root_of(each[0].f_globals) == root]
    if not frames:
        return ""
    frame, line = (own or frames)[-1]
    return f"{frame.f_code.co_filename}:{line}"


def _root_of(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
