"""Keeps the documented command `python -m gateway.demo.chain` working."""

import importlib.util

_demo = importlib.util.find_spec("gateway_demo")
__path__ = list((_demo and _demo.submodule_search_locations) or ())
