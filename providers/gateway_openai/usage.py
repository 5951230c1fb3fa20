"""The cost of a picture, computed from the token counts in OpenAI's response.

US dollars per million tokens (OpenAI's price page of 2026-09-09, as quoted by apidog.com): 5 of
text, 8 of input pictures, 30 of output pictures, for every model.
"""

from typing import Any

from gateway.vendors import as_object

_TEXT, _SENT, _MADE = 5, 8, 30
_MODELS = frozenset({"gpt-image-2", "gpt-image-2.5-flare", "gpt-image-2.5-sunburst"})
# A larger number is an error that would distort the books.
_MAX_TOKENS = 1_000_000


def cost_micros(model: str, body: Any) -> int | None:
    """Return the cost in 10⁻⁶ US dollars; None unless every token and its price is known."""
    usage = as_object(as_object(body).get("usage"))
    sent, made = (as_object(usage.get(f"{side}_tokens_details")) for side in ("input", "output"))
    text, picture = _count(sent, "text_tokens"), _count(sent, "image_tokens")
    output = _count(made, "image_tokens")
    if model not in _MODELS or text is None or picture is None or not output:
        return None
    # Any further token, such as output text, has an unknown price.
    if (_count(usage, "input_tokens"), _count(usage, "output_tokens")) != (text + picture, output):
        return None
    return _TEXT * text + _SENT * picture + _MADE * output


def _count(of: dict[str, Any], name: str) -> int | None:
    value = of.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MAX_TOKENS else None
