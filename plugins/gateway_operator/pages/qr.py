"""Addresses as QR codes, which a phone's wallet reads from the page."""

import importlib


def svg_address(text: str) -> str:
    """Return a QR code as a `data:` address of an SVG, dark on white in both schemes."""
    drawn = importlib.import_module("segno").make(text, error="m")
    address: str = drawn.svg_data_uri(scale=4, border=4, dark="#000", light="#fff", omitsize=False)
    return address
