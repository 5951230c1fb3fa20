"""Sandbox images: procedural pictures and edits, by the words of the prompt, without AI."""

from collections.abc import Callable

from gateway import Choice, Endpoint, Provider, Settings, hookimpl, usdc

ENDPOINT = Endpoint(
    slug="sandbox-image",
    title="Sandbox image (procedural renderer, not an AI model)",
    description=(
        "Draws a landscape whose mood and motifs follow the words of the prompt, and sets the "
        "prompt below it. A procedural renderer for trying out the gateway; not an AI model. "
        "The same prompt always gives the same picture."
    ),
    model="procedural-v1",
    provider="sandbox",
    capability="text-to-image",
    price_units=usdc("0.02"),
    cost_micros=0,
    aspect_ratio=Choice(values=("1:1", "4:3", "3:4", "16:9", "9:16"), default="1:1"),
    output_format=Choice(values=("png", "jpg", "webp"), default="png"),
    resolution=Choice(values=("1K", "2K", "4K"), default="1K"),
    least_pixels={"1K": 921_600, "2K": 3_686_400, "4K": 14_745_600},
    timeout_s=90.0,
)
EDIT = Endpoint(
    slug="sandbox-image-edit",
    title="Sandbox image edit (procedural filter, not an AI model)",
    description=(
        "Repaints your picture in a mood that follows the words of the prompt: the hour, the "
        "season, rain or snow. A procedural filter for trying out the gateway; not an AI model. "
        "The same prompt and picture always give the same result."
    ),
    model="restyle-v1",
    provider="sandbox",
    capability="image-editing",
    price_units=usdc("0.03"),
    cost_micros=0,
    required_fields=("prompt", "fileBase64", "fileName"),
    file_extensions=(".png", ".jpg", ".jpeg", ".webp"),
    output_format=Choice(values=("png", "jpg", "webp"), default="png"),
    timeout_s=90.0,
)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put both on sale if `sandbox` is set, and a failure for play money."""
    if not settings.sandbox:
        return
    from gateway_sandbox_image import failing, renderer  # noqa: PLC0415 - only for a sandbox

    drawing = renderer.Renderer()
    register(ENDPOINT, drawing)
    register(EDIT, drawing)
    if settings.play_key:
        register(failing.ENDPOINT, failing.Failing())
