"""Documents to Markdown by LlamaParse (version 2): an upload, then a job that parses the file.

On sale once `GATEWAY_LLAMAPARSE_API_KEY` is set.
"""

from collections.abc import Callable

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl
from gateway.vendors import base_url, document_endpoint, limit_or_none, page_cost_micros
from gateway_llamaparse.jobs import Jobs
from gateway_llamaparse.settings import (
    CHECKED,
    PARSER,
    TIERS,
    LlamaParseSettings,
    with_prices,
)


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register(PARSER.name, LlamaParseSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the parser on sale if there is a key."""
    section = settings.section(PARSER.name, LlamaParseSettings)
    if not (key := str(section.api_key)):
        return
    cost = page_cost_micros(PARSER, section.page_cost)
    jobs = Jobs(
        Outbound(
            base_url(section.base_url, name="llamaparse_base_url"),
            headers={"Authorization": f"Bearer {key}"},
        ),
        version=section.version,
        page_cost_micros=cost,
        traits=Traits(
            max_concurrency=limit_or_none(
                section.max_concurrency, name="llamaparse_max_concurrency"
            )
        ),
    )
    override = settings.endpoints.get(PARSER.slug)
    # The tier decides what a page costs, so the prices follow the tier of the endpoint's table too.
    tier = override.model if override is not None and override.model else section.tier
    endpoint = document_endpoint(
        PARSER,
        with_prices(section, tier),
        model=tier,
        page_cost_micros=TIERS[tier].page_cost_micros if cost is None else cost,
        checked=CHECKED if cost is None else None,
    )
    register(endpoint, jobs)
