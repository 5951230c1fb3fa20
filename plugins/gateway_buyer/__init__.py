"""Buys from a gateway, this one or somebody else's: what the command `gateway buy` does.

The gateway that sells is a stranger here: sizes, times, prices and names in its answers are
bounded, and it gets no second signature for one purchase.
"""
