"""Documents to Markdown by LlamaParse, and to data by LlamaExtract: an upload, then a job.

On sale once `GATEWAY_LLAMAPARSE_API_KEY` is set.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gateway import Endpoint, Outbound, Provider, Settings, Traits, hookimpl
from gateway.vendors import (
    DocumentParser,
    base_url,
    document_endpoint,
    limit_or_none,
    page_cost_micros,
)
from gateway_llamaparse.settings import (
    CHECKED,
    EXTRACT_TIERS,
    EXTRACTOR,
    PARSER,
    TIERS,
    LlamaParseSettings,
    TierPrices,
    of_extraction,
    with_prices,
)

if TYPE_CHECKING:
    from gateway_llamaparse.jobs import Jobs

_Register = Callable[[Endpoint, Provider], None]


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Register the settings."""
    register(PARSER.name, LlamaParseSettings)


@hookimpl
def register_endpoints(register: _Register, settings: Settings) -> None:
    """Put parsing and extraction on sale if there is a key."""
    section = settings.section(PARSER.name, LlamaParseSettings)
    if not str(section.api_key):
        return
    from gateway_llamaparse.extraction import ExtractJobs  # noqa: PLC0415 - only with a key
    from gateway_llamaparse.jobs import Jobs  # noqa: PLC0415

    register(*_offer(PARSER, TIERS, section, settings, Jobs))
    register(*_offer(EXTRACTOR, EXTRACT_TIERS, of_extraction(section), settings, ExtractJobs))


def _offer(
    parser: DocumentParser,
    tiers: Mapping[str, TierPrices],
    section: LlamaParseSettings,
    settings: Settings,
    kind: "type[Jobs]",
) -> "tuple[Endpoint, Jobs]":
    """Create an endpoint and its provider; raises `SettingsError`."""
    cost, key = page_cost_micros(parser, section.page_cost), str(section.api_key)
    jobs = kind(
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
    override = settings.endpoints.get(parser.slug)
    # The tier determines the cost of a page, so prices follow an overriding tier of the endpoint
    # too.
    tier = override.model if override is not None and override.model else section.tier
    endpoint = document_endpoint(
        parser,
        with_prices(section, tier, parser=parser, tiers=tiers),
        model=tier,
        page_cost_micros=tiers[tier].page_cost_micros if cost is None else cost,
        checked=CHECKED if cost is None else None,
    )
    return endpoint, jobs
