"""The cost of a picture, computed from the token counts in Google's response.

US dollars per million tokens of Nano Banana 2.1 (LiteLLM's discussion 44983, 2026-10): 1.50 of
input text, 7.50 of output text including thoughts, 30 of output pictures. It does not mention input
pictures, so the cost of an edit is unknown here; likewise that of other models.
"""

from typing import Any

from gateway.vendors import as_object

_SENT = {"gemini-nano-banana-2.1": {"TEXT": 1.5}}
_MADE = {"gemini-nano-banana-2.1": {"TEXT": 7.5, "IMAGE": 30.0}}
# A larger number is an error that would distort the books.
_MAX_TOKENS = 1_000_000


def cost_micros(model: str, usage_metadata: Any) -> int | None:
    """Return the cost in 10⁻⁶ US dollars; None unless every token and its price is known."""
    usage = as_object(usage_metadata)
    if model not in _MADE:
        return None
    sent = _cost(usage, "prompt", _SENT[model])
    made = _cost(usage, "candidates", _MADE[model])
    thoughts = _count(usage.get("thoughtsTokenCount", 0))
    if sent is None or made is None or thoughts is None:
        return None
    named = usage["promptTokenCount"] + usage["candidatesTokenCount"] + thoughts
    if usage.get("totalTokenCount") != named:
        return None
    return round(sent + made + thoughts * _MADE[model]["TEXT"])


def _cost(usage: dict[str, Any], side: str, prices: dict[str, float]) -> float | None:
    """Sum up the tokens' costs; None if one has no price."""
    details = usage.get(f"{side}TokensDetails")
    cost, tokens = 0.0, 0
    for entry in details if isinstance(details, list) else []:
        modality, count = (
            as_object(entry).get("modality"),
            _count(as_object(entry).get("tokenCount")),
        )
        if count is None or not isinstance(modality, str) or modality not in prices:
            return None
        cost, tokens = cost + count * prices[modality], tokens + count
    return cost if tokens and tokens == _count(usage.get(f"{side}TokenCount")) else None


def _count(value: Any) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MAX_TOKENS else None
