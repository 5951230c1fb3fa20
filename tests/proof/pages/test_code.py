"""The code on the pages runs unchanged."""

import os
import re
import shutil
import subprocess
import sys
from html import unescape

import pytest

from gateway_demo.tour.client import open_session


def code(shop, slug: str, language: str) -> str:
    """Return the code in one language from an endpoint's page."""
    with open_session() as session:
        page = session.get(f"{shop.base_url}/play/{slug}", timeout=60).text
    shown = re.search(rf'data-language="{language}".*?<code>(.*?)</code>', page, re.DOTALL)[1]
    return unescape(re.sub(r"<[^>]+>", "", shown))


def run(command: list[str], folder, **variables: str) -> str:
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"NO_PROXY": "127.0.0.1", **variables},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.parametrize(
    ("slug", "made", "units"),
    [("sandbox-image", "image/png", 20_000), ("document-parser", "Quarterly Report", 10_000)],
)
def test_the_python_code_buys(shop, tmp_path, slug, made, units):
    (tmp_path / "report.txt").write_text("Quarterly Report")
    before = shop.payments_of(shop.purse)
    text = code(shop, slug, "python")
    output = run([sys.executable, "-c", text], tmp_path, BUYER_KEY=shop.place.purse_key)
    assert made in output
    assert shop.payments_of(shop.purse) == [*before, units]


@pytest.mark.skipif(not shutil.which("curl"), reason="missing: curl")
@pytest.mark.parametrize(
    ("slug", "price"), [("sandbox-image", "20000"), ("document-parser", "10000")]
)
def test_the_first_curl_asks_for_the_price_and_the_second_is_understood(
    shop, tmp_path, slug, price
):
    (tmp_path / "report.txt").write_text("Quarterly Report")
    text = code(shop, slug, "curl")
    first, second = (
        line for line in text.splitlines() if line.startswith("curl") and "--json" in line
    )
    answer = run(["bash", "-c", first], tmp_path)
    assert answer.startswith("HTTP/1.1 402")
    assert f'"amount":"{price}"' in answer
    # Only the transaction is missing.
    assert "TX_NOT_FOUND" in run(["bash", "-c", second.replace("0x…", "0x" + "12" * 32)], tmp_path)


@pytest.mark.full
def test_the_python_code_pays_no_more_than_it_says(shop, tmp_path):
    before = shop.payments_of(shop.purse)
    text = code(shop, "sandbox-image", "python")
    assert "max_amount(20000)" in text
    text = text.replace("max_amount(20000)", "max_amount(19999)")
    with pytest.raises(subprocess.CalledProcessError):
        run([sys.executable, "-c", text], tmp_path, BUYER_KEY=shop.place.purse_key)
    assert shop.payments_of(shop.purse) == before
