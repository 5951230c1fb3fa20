"""The demo: an embedded chain with play money, a throw-away wallet and a guided purchase.

Fakes for tests of plugins are in `gateway.testing`.
"""
