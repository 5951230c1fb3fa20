"""Optional fields of a request, and how servers reject them.

OpenAI and relays such as new-api name the field in `param` (`unknown_parameter`). LiteLLM names it
in its message: "Setting `response_format` is not supported by openai, sd3.5-large". FastAPI names
it in `detail`. All respond before anything is generated or billed. (Issues of LiteLLM, of uni-api
and of Vercel's AI SDK, read 2026-11-26.)
"""

import re
from collections.abc import Mapping
from typing import Any

from gateway.vendors import as_object, as_text, blamed_fields

_BY_PARAM = ("response_format", "output_format", "n")
# It determines the bill at OpenAI, so it is omitted only if the model has no such field at all.
_QUALITY = "quality"
_UNKNOWN_CODES = ("unknown_parameter", "unsupported_parameter")
_REFUSALS = (400, 422)
_UNKNOWN = re.compile(
    r"unknown|unsupported|not supported|unrecogni[sz]ed|unexpected|not permitted|not allowed",
    re.IGNORECASE,
)


def find_refused(status: int, body: Any, order: Mapping[str, Any]) -> str | None:
    """Return the optional field that a response rejects by name, or None."""
    if status not in _REFUSALS or not isinstance(body, dict):
        return None
    error = as_object(body.get("error"))
    param = error.get("param")
    if param == _QUALITY and error.get("code") in _UNKNOWN_CODES and _QUALITY in order:
        return _QUALITY
    blamed = {param} if isinstance(param, str) else set()
    blamed |= blamed_fields(body)
    message = _sentence_of(body)
    # The message may repeat the prompt.
    message = message.replace(as_text(order.get("prompt")) or "\0", "")
    if _UNKNOWN.search(message):
        blamed |= set(re.findall(r"[`'\"](\w+)[`'\"]", message))
    return next((name for name in _BY_PARAM if name in blamed and name in order), None)


def _sentence_of(body: Mapping[str, Any]) -> str:
    error = body.get("error")
    candidates = (
        error,
        as_object(error).get("message"),
        body.get("message"),
        body.get("detail"),
    )
    return next((text for text in candidates if isinstance(text, str)), "")
