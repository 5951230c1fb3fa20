"""Pictures and edits by the Gemini models of Google, through the Gemini API.

On sale once `GATEWAY_GEMINI_API_KEY` is set.
"""

import re
from collections.abc import Callable

import attrs
import typed_settings as ts

from gateway import (
    Endpoint,
    Outbound,
    Provider,
    Settings,
    SettingsError,
    Traits,
    hookimpl,
    secret,
    setting,
)
from gateway.vendors import (
    Model,
    base_url,
    edit_endpoint,
    limit_or_none,
    models_on_sale,
    picture_endpoint,
)
from gateway_gemini.models import CHECKED, MODELS, ON_SALE, editing

# A 4K PNG has 45 MB in Base64. Each picture comes with a signature of the model's thoughts that may
# be as large, and drafts may come twice.
_MAX_BYTES = 160_000_000
_VERSION = re.compile("v[0-9][a-z0-9]{0,19}")


@attrs.frozen(kw_only=True)
class GeminiSettings:
    """The operator's settings for the Gemini API."""

    api_key: ts.SecretStr = secret(
        "Key of the Gemini API. It puts Google's picture models on sale.",
        example="AIza...",
        on_page=True,
    )
    models: tuple[str, ...] = setting(
        ON_SALE,
        "Models on sale ([providers.md](providers.md#prices-and-models)).",
        example="gemini-3-pro-image,gemini-4-image=0.08 like gemini-3-1-flash-lite-image",
        on_page=True,
    )
    base_url: str = setting(
        "https://generativelanguage.googleapis.com",
        "Address of the API, without its version.",
        # Some operators put a key into the path.
        shown=False,
    )
    api_version: str = setting(
        "v1beta", "Version of the API in its URLs; Google's own client uses `v1`."
    )
    max_concurrency: int = setting(
        0, "Concurrent pictures per model; 0: as many as workers.", on_page=True
    )
    submits_per_minute: int = setting(
        0, "Pictures per minute and model; 0: no limit.", on_page=True
    )


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register("gemini", GeminiSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the chosen models on sale if there is a key, each for pictures and for edits.

    Each model is a separate provider, because Google limits requests per model and retires models
    one by one.
    """
    section = settings.section("gemini", GeminiSettings)
    if not str(section.api_key):
        return
    from gateway_gemini.painter import Painter  # noqa: PLC0415 - only with a key

    outbound = Outbound(
        base_url(section.base_url, name="gemini_base_url"),
        headers={"x-goog-api-key": str(section.api_key)},
        max_bytes=_MAX_BYTES,
    )
    traits = Traits(
        max_concurrency=limit_or_none(section.max_concurrency, name="gemini_max_concurrency"),
        submits_per_minute=limit_or_none(
            section.submits_per_minute, name="gemini_submits_per_minute"
        ),
    )
    version = _version(section)
    for model in models_on_sale(MODELS, section.models, prefix="gemini"):
        edits = editing(model)
        asked, asked_to_edit = (_model_asked(one, settings) for one in (model, edits))
        painter = Painter(outbound, model=asked, version=version, traits=traits)
        register(picture_endpoint(model, provider="gemini", checked=CHECKED), painter)
        if asked_to_edit != asked:
            painter = Painter(outbound, model=asked_to_edit, version=version, traits=traits)
        register(edit_endpoint(edits, provider="gemini", checked=CHECKED), painter)


def _model_asked(model: Model, settings: Settings) -> str:
    """Return the model, which the settings of the endpoint may override."""
    override = settings.endpoints.get(model.slug)
    return override.model if override is not None and override.model else model.id


def _version(section: GeminiSettings) -> str:
    if not _VERSION.fullmatch(section.api_version):
        raise SettingsError(
            "GATEWAY_GEMINI_API_VERSION is not right: a version of the API. "
            "Example: GATEWAY_GEMINI_API_VERSION=v1"
        )
    return section.api_version
