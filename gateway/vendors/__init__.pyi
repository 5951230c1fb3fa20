from gateway_vendors import *  # noqa: F403 - its `__all__`
