"""Documents and pictures of text to Markdown or data by Mistral's OCR, in one request without jobs.

On sale once `GATEWAY_MISTRAL_API_KEY` is set.
"""

from collections.abc import Callable, Mapping

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl
from gateway.vendors import (
    DocumentParser,
    base_url,
    document_endpoint,
    limit_or_none,
    model_name,
    page_cost_micros,
)
from gateway_mistral.settings import (
    CHECKED,
    EXTRACT_PAGE_COSTS,
    EXTRACTOR,
    PAGE_COSTS,
    PARSER,
    RETIRES,
    MistralSettings,
)


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register(PARSER.name, MistralSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put reading and extraction on sale if there is a key."""
    section = settings.section(PARSER.name, MistralSettings)
    if not (key := str(section.api_key)):
        return
    from gateway_mistral.reader import Reader  # noqa: PLC0415 - only with a key

    offers: tuple[tuple[DocumentParser, MistralSettings, Mapping[str, int]], ...] = (
        (PARSER, section, PAGE_COSTS),
        (EXTRACTOR, section.of_extraction(), EXTRACT_PAGE_COSTS),
    )
    reader = Reader(
        Outbound(
            base_url(section.base_url, name="mistral_base_url"),
            headers={"Authorization": f"Bearer {key}"},
        ),
        page_costs={
            parser.capability: page_cost_micros(parser, own.page_cost) for parser, own, _ in offers
        },
        traits=Traits(
            max_concurrency=limit_or_none(section.max_concurrency, name="mistral_max_concurrency")
        ),
    )
    for parser, own, usual_costs in offers:
        model = model_name(settings, parser.slug, section.model, name="mistral_model")
        cost = reader.page_costs[parser.capability]
        endpoint = document_endpoint(
            parser,
            own,
            model=model,
            page_cost_micros=_usual_cost(usual_costs, model) if cost is None else cost,
            checked=CHECKED if cost is None else None,
            retires=RETIRES.get(model),
        )
        register(endpoint, reader)


def _usual_cost(costs: Mapping[str, int], model: str) -> int | None:
    return next((cost for name, cost in costs.items() if model.startswith(name)), None)
