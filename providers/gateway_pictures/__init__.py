"""Cut-outs, enlargements and repaired pictures, by small models on this machine, without a key.

Needs the extra `models`. `provider` has the providers, `colours` the colours of backgrounds, and
`sandboxes` chooses the models. `child` runs inside the sandboxes.
"""

from collections.abc import Callable
from importlib.util import find_spec

from gateway import (
    MEGAPIXEL,
    Choice,
    Endpoint,
    Provider,
    Settings,
    UnitPrice,
    hookimpl,
    usdc,
)
from gateway_pictures.settings import PicturesSettings, threshold_of

_WAY_OUT = "pip install 'generation-gateway[models]'"
_LIBRARIES = ("generation_gateway_models", "onnxruntime", "numpy")
_FIELDS = ("fileBase64", "fileName")
_EXTENSIONS = (".png", ".jpg", ".jpeg", ".webp")
# Pixels of the smallest picture that buyers may send.
_LEAST_PIXELS = 64 * 64

CUT_OUT = Endpoint(
    slug="background-removal",
    title="Background removal",
    description=(
        "Cuts the subject out of a photograph of up to 25 megapixels: a PNG or WebP with "
        "transparency, or on a background of one colour. Made for one clear subject, such as a "
        "person, an animal or a product; crowded scenes and loose hair come out less well."
    ),
    model="u2net-p",
    provider="pictures",
    capability="background-removal",
    price_units=usdc("0.01"),
    unit_price=UnitPrice(unit=MEGAPIXEL, price_units=usdc("0.002"), most=25),
    cost_micros=0,
    output_format=Choice(values=("png", "webp"), default="png"),
    timeout_s=300.0,
    required_fields=_FIELDS,
    file_extensions=_EXTENSIONS,
)
ENLARGE = Endpoint(
    slug="image-upscaling",
    title="Image upscaling",
    description=(
        "Makes a picture exactly 2 or 4 times as wide and high, up to 25 megapixels, with sharp "
        "edges and fine texture. Made for photographs: text, logos and codes are enlarged without "
        "new detail. Keeps transparency, but in jpg. Keeps damage too: for a picture with JPEG "
        "blocks, buy image-repair."
    ),
    model="span-48",
    provider="pictures",
    capability="image-upscaling",
    price_units=usdc("0.02"),
    unit_price=UnitPrice(unit=MEGAPIXEL, price_units=usdc("0.02"), most=7),
    cost_micros=0,
    output_format=Choice(values=("png", "jpg", "webp"), default="png"),
    resolution=Choice(values=("2x", "4x"), default="2x"),
    least_pixels={"2x": _LEAST_PIXELS * 4, "4x": _LEAST_PIXELS * 16},
    timeout_s=600.0,
    required_fields=_FIELDS,
    file_extensions=_EXTENSIONS,
)
REPAIR = Endpoint(
    slug="image-repair",
    title="Image repair",
    description=(
        "Removes the blocks and noise of strong JPEG compression from a picture of up to 4 "
        "megapixels, in its own size or 2 or 4 times as wide and high. Made for drawings, "
        "screenshots and small photographs from the web; it smooths fine texture."
    ),
    model="realesr-animevideov3",
    provider="pictures",
    capability="image-upscaling",
    price_units=usdc("0.03"),
    unit_price=UnitPrice(unit=MEGAPIXEL, price_units=usdc("0.03"), most=4),
    cost_micros=0,
    output_format=Choice(values=("png", "jpg", "webp"), default="png"),
    resolution=Choice(values=("1x", "2x", "4x"), default="1x"),
    least_pixels={"1x": _LEAST_PIXELS, "2x": _LEAST_PIXELS * 4, "4x": _LEAST_PIXELS * 16},
    timeout_s=600.0,
    required_fields=_FIELDS,
    file_extensions=_EXTENSIONS,
)


def why_off() -> str:
    """Return the operator's way to the offers if their extra is missing, and else nothing."""
    return "" if all(map(find_spec, _LIBRARIES)) and _has_weights() else _WAY_OUT


def _has_weights() -> bool:
    from generation_gateway_models import licences  # noqa: PLC0415 - the extra may be missing

    return bool(licences())


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings `GATEWAY_PICTURES_…`."""
    register("pictures", PicturesSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the offers on sale if their models are installed."""
    if why_off():
        return
    from gateway_pictures import provider  # noqa: PLC0415 - most gateways have no models

    threshold = threshold_of(settings.section("pictures", PicturesSettings))
    guard = provider.Guard.of(threshold)
    cutter = provider.Cutter(guard=guard)
    register(cutter.describe(CUT_OUT), cutter)
    enlarger = provider.Enlarger(guard=guard)
    register(ENLARGE, enlarger)
    register(REPAIR, enlarger)
