"""What an operator may set, how it is read, and which values are right.

What a plugin lets the operator set belongs in the plugin: it declares a section of its own.
"""

from gateway.settings.checks import (
    check_alarms,
    check_database,
    check_limits,
    check_server,
    check_settings,
    is_key,
    parse_keys,
    parse_limit,
)
from gateway.settings.loader import load_settings
from gateway.settings.model import Settings
from gateway.settings.overrides import EndpointOverride
from gateway.settings.sections import missing_in, names_of, secret, setting, variable, wrong

__all__ = [
    "EndpointOverride",
    "Settings",
    "check_alarms",
    "check_database",
    "check_limits",
    "check_server",
    "check_settings",
    "is_key",
    "load_settings",
    "missing_in",
    "names_of",
    "parse_keys",
    "parse_limit",
    "secret",
    "setting",
    "variable",
    "wrong",
]
