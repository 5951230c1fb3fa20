"""The largest pictures fit into the memory of a machine of 1 GB."""

import pytest
from PIL import Image

from tests.plugins.gateway_pictures.drawn import file_of, opened, subject, texture

sandboxes = pytest.importorskip("gateway_pictures.sandboxes", reason="run `make models` first")
pytestmark = pytest.mark.full  # a minute of CPU


async def test_25_megapixels_are_cut_out_within_600_mb(monkeypatch):
    monkeypatch.setattr(sandboxes, "_has", lambda _: False)
    photo = subject(1000)[0].resize((5000, 5000))
    sandbox = sandboxes.cutter().sandbox
    assert sandbox.limits.memory_bytes == 600_000_000
    try:
        made = await sandbox.call(file_of(photo, "JPEG", quality=90), "", "png")
    finally:
        sandbox.close()
    assert opened(made).size == (5000, 5000)


@pytest.mark.parametrize(("resolution", "side"), [("4x", 1250), ("2x", 1600)])
async def test_the_largest_enlargements_are_made_within_600_mb(resolution, side):
    photo = texture(side, side).convert("RGBA")
    photo.putalpha(Image.radial_gradient("L").resize((side, side)))
    sandbox = sandboxes.enlarger()
    assert sandbox.limits.memory_bytes == 600_000_000
    try:
        made = await sandbox.call(file_of(photo), "enlarge", resolution, "png")
    finally:
        sandbox.close()
    assert opened(made).size == (side * int(resolution[0]), side * int(resolution[0]))
