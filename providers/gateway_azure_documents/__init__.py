"""Documents to Markdown by Azure Document Intelligence: jobs on the operator's own resource.

On sale once `GATEWAY_AZURE_DOCUMENTS_ENDPOINT` and `GATEWAY_AZURE_DOCUMENTS_KEY` are set.
"""

from collections.abc import Callable

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl
from gateway.vendors import (
    base_url,
    document_endpoint,
    limit_or_none,
    model_name,
    page_cost_micros,
)
from gateway_azure_documents.settings import (
    CHECKED,
    PAGE_COSTS,
    PARSER,
    AzureDocumentsSettings,
    is_on_sale,
)

# A response has a polygon for every word: half a megabyte a page.
_MAX_BYTES = 200_000_000


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register(PARSER.name, AzureDocumentsSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the model on sale if endpoint and key are set."""
    section = settings.section(PARSER.name, AzureDocumentsSettings)
    if not is_on_sale(section):
        return
    from gateway_azure_documents.analyzer import Analyzer  # noqa: PLC0415 - only with a key

    address = base_url(section.endpoint, name="azure_documents_endpoint")
    cost = page_cost_micros(PARSER, section.page_cost)
    analyzer = Analyzer(
        Outbound(
            address,
            headers={"Ocp-Apim-Subscription-Key": str(section.key)},
            max_bytes=_MAX_BYTES,
        ),
        page_cost_micros=cost,
        traits=Traits(
            max_concurrency=limit_or_none(
                section.max_concurrency, name="azure_documents_max_concurrency"
            )
        ),
    )
    model = model_name(settings, PARSER.slug, section.model, name="azure_documents_model")
    endpoint = document_endpoint(
        PARSER,
        section,
        model=model,
        page_cost_micros=PAGE_COSTS.get(model) if cost is None else cost,
        checked=CHECKED if cost is None else None,
    )
    register(endpoint, analyzer)
