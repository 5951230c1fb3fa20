"""Pictures that providers return: decoded, measured and converted before anybody is told."""

from gateway.images.checking import MEDIA_TYPES, Pictures

__all__ = ["MEDIA_TYPES", "Pictures"]
