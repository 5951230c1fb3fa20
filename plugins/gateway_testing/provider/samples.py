"""Sample files for endpoints that take a file."""

import base64

import pytest

from gateway.domain import DOCUMENT_FILE, Endpoint
from gateway.domain.description import sample_file
from gateway_testing.fakes.api import PNG

PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj
trailer<</Root 1 0 R>>
%%EOF
"""
# 64 by 64 pixels, half of them black: the smallest picture that can be edited.
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQAAAACCEkxzAAAAFklEQVR42mP8zwABTAyjDCyMUYAfAACp/wE/ErL4KwAAAABJ"
    "RU5ErkJggg=="
)
_SAMPLES = {
    ".txt": b"Dear reader, this is a letter.\n",
    ".md": b"# Dear reader\n\nThis is a letter.\n",
    ".pdf": PDF,
    ".png": PNG,
}


def sample_for(endpoint: Endpoint) -> tuple[str, bytes]:
    """Return the name and bytes of a sample that the endpoint takes."""
    if DOCUMENT_FILE not in endpoint.file_kinds and (sample := sample_file(endpoint)):
        return sample
    for ending, data in _SAMPLES.items():
        if ending in endpoint.file_extensions:
            return f"letter{ending}", data
    pytest.fail(
        f"The kit has no file for {endpoint.slug!r}: give it one, of any of "
        f"{', '.join(endpoint.file_extensions)}: file = ('name.ext', b'…')."
    )
