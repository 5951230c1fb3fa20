"""`python -m gateway.demo.chain`: the documented name of `gateway_demo.chain`."""

import importlib.util

_demo = importlib.util.find_spec("gateway_demo")
__path__ = list((_demo and _demo.submodule_search_locations) or ())
