"""The core's settings: names, loading and checks. Plugins define sections of their own."""

from gateway.settings.checks import (
    check_database,
    check_openers,
    check_settings,
    is_chain_local,
    is_host_and_port,
    is_key,
    is_limit,
    is_local_only,
    parse_keys,
    parse_limit,
)
from gateway.settings.loader import check_plain, load_settings
from gateway.settings.model import COINBASE_FACTORIES, EndpointOverride, Settings
from gateway.settings.sections import (
    SectionOffer,
    missing_in,
    names_of,
    secret,
    setting,
    variable,
    wrong,
)
