"""Helpers for adapters of vendors' APIs; their public names are in `gateway.vendors`."""
