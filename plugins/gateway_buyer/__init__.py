"""Buys from any gateway: the commands `gateway buy` and `gateway mcp-wallet`.

The selling gateway is not trusted. Sizes, times, prices and names in its responses are bounded, and
it never gets a second signature for one purchase.
"""
