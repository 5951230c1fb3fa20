"""The names of all settings, for the tests of deployment files."""

from gateway.plugins.manager import PluginManager
from gateway.settings import Settings

_FIELDS = (name for section in PluginManager().sections() for name in section.fields)
SETTINGS = {f"GATEWAY_{name.upper()}" for name in (*Settings.__annotations__, *_FIELDS)}
