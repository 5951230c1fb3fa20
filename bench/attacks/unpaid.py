"""Files that are expensive to check, or hide pages from the price, from clients that do not pay."""

import base64
import contextlib
import http.client
import importlib
import io
import json
import statistics
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from PIL import Image
from place import folder
from processes import gateway_process, stub_chain
from tree import HERE, Tree

from gateway_demo.sample import sample_pdf
from gateway_testing.provider.samples import PICTURE

# The tests' hostile files.
sys.path[:0] = [str(HERE.root / part) for part in ("tests/proof/providers", "tests/proof/sandbox")]
pdf, hidden, slides = map(
    importlib.import_module, ("documents_pdf", "test_hidden_pages", "test_hidden_slides")
)

Row = tuple[str, str, str]
_ADDRESS = "X-Real-IP"
_ATTACKERS = ("198.51.100.1", "198.51.100.2", "198.51.100.3")
# Requests that each attacker keeps open.
_OPEN = 4
_ATTACK_S = 25.0
_WITHOUT_ATTACK_S = 5.0
_PAUSE_S = 0.25
_SETTINGS = {
    "limit_x402": "60/60s",
    "client_ip_header": _ADDRESS,
    "sandbox": "true",
    "azure_documents_endpoint": "https://nobody.cognitiveservices.azure.com",
    "azure_documents_key": "none",
}


def rows(tree: Tree) -> Iterator[Row]:
    """Attack a checkout's gateway."""
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(folder()))
        rpc_url = stack.enter_context(stub_chain())
        # On any core: its child processes run on the same cores.
        running = gateway_process(data, rpc_url, tree=tree, core=None, **_SETTINGS)
        port, _ = stack.enter_context(running)
        yield from _page_rows(port)
        yield from _waiting_rows(port)


# -- point 6


def _page_rows(port: int) -> Iterator[Row]:
    """Ask for the price of documents with Azure, which bills a cent per page."""
    # Up to the endpoint's limit of 100 pages.
    repeated = hidden.root("[" + "3 0 R " * 90 + "]", 90)
    first, *others = (slides.relationship(at) for at in range(90))
    entity = slides.relationships(first + "".join(others).replace("/slide", "/&#115;lide"))
    utf_16 = slides.relationships(first + "".join(others))
    utf_16 = utf_16.replace("?>", ' encoding="UTF-16"?>').encode("utf-16")
    seven = hidden.REPEATED["seven pages twelve times"][0]
    files = {
        "a PDF that names one page 90 times": (
            "a.pdf",
            hidden.pdf_of(hidden.CATALOG, repeated, hidden.PAGE),
        ),
        "a PDF of seven pages named 12 times": ("a.pdf", seven),
        "a .pptx with 90 slides, 89 behind a character entity": ("a.pptx", _deck(entity)),
        "a .pptx with 90 slides, linked in UTF-16": ("a.pptx", _deck(utf_16)),
    }
    for tried, (name, data) in files.items():
        status, answer = _ask(port, "azure-documents", name, data, "203.0.113.1")
        if status == http.client.PAYMENT_REQUIRED:
            price = int(answer["accepts"][0]["maxAmountRequired"]) / 10**6
            yield "6", tried, f"sold for {price:.2f} USDC; the vendor bills about 0.90 USD"
        else:
            yield "6", tried, f"{status}: {answer.get('error', '')[:60]}"


def _deck(links: str | bytes) -> bytes:
    """Return a presentation whose first slide has the usual name."""
    listed = slides.presentation(slides.slide_list(90))
    more = {"ppt/slides/slide1.xml": "<p:sld/>"}
    return slides.zipped(slides.deck(listed=listed, links=links, more=more))


# -- point 5


def _waiting_rows(port: int) -> Iterator[Row]:
    picture, document = _slow_picture(), _slow_pdf()
    attacks = {
        "a JPEG of 5 s": ("sandbox-image-edit", "a.jpg", picture),
        "a PDF of 10 s": ("document-parser", "a.pdf", document),
    }
    honest = {
        "price of an edit": (_price_of_edit, "a JPEG of 5 s"),
        "price of a document": (_price, "a PDF of 10 s"),
        "direct purchase to its text": (_purchase, "a PDF of 10 s"),
    }
    for who, (ask, what) in honest.items():
        slug, name, data = attacks[what]
        yield "5", f"{who}, no attack", _measured(port, ask, _WITHOUT_ATTACK_S)
        with _attack(port, slug, name, data) as statuses:
            measured = _measured(port, ask, _ATTACK_S)
        tried = f"{who}, while three addresses send {what} ({len(data) // 1000} KB)"
        yield "5", tried, f"{measured}; attackers got {_shown(statuses)}"
        # Until the attack's child processes have ended and the rate limits are reset.
        time.sleep(60)


def _slow_picture() -> bytes:
    """Return a small JPEG of many empty scans."""
    file = io.BytesIO()
    Image.new("L", (5000, 5000)).convert("RGB").save(file, "JPEG", progressive=True, quality=5)
    data = file.getvalue()
    start = data.rindex(b"\xff\xda")
    return data[:-2] + data[start:-2] * 300 + data[-2:]


def _slow_pdf() -> bytes:
    """Return a small PDF whose text operators take the parser long."""
    content = zlib.compress(b"BT /F1 9 Tf (x) Tj ET " * 250_000, 9)
    return pdf.write_contents([content] * 40)


@contextlib.contextmanager
def _attack(port: int, slug: str, name: str, data: bytes) -> Iterator[Counter[int]]:
    """Let each attacker send the file repeatedly during the block; yields the statuses."""
    statuses, over = Counter[int](), threading.Event()

    def send(address: str) -> None:
        while not over.is_set():
            status, _ = _ask(port, slug, name, data, address)
            statuses[status] += 1
            # Not even after a refusal.
            over.wait(0.05)

    threads = [
        threading.Thread(target=send, args=(address,), daemon=True)
        for address in _ATTACKERS
        for _ in range(_OPEN)
    ]
    for thread in threads:
        thread.start()
    time.sleep(1)
    yield statuses
    over.set()


def _measured(port: int, ask: Callable[[int, int], bool], seconds: float) -> str:
    took, failed, until, number = [], 0, time.monotonic() + seconds, 0
    while time.monotonic() < until:
        began, number = time.monotonic(), number + 1
        if ask(port, number):
            took.append(time.monotonic() - began)
        else:
            failed += 1
        time.sleep(_PAUSE_S)
    if not took:
        return f"all of {failed} failed"
    worst = f"p50 {statistics.median(took):.2f} s, longest {max(took):.1f} s"
    return f"{worst}, {failed} of {failed + len(took)} failed"


def _shown(statuses: Counter[int]) -> str:
    return ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items())) or "none"


def _price(port: int, number: int) -> bool:
    status, _ = _ask(port, "document-parser", "a.pdf", sample_pdf(), f"203.0.113.{number % 250}")
    return status == http.client.PAYMENT_REQUIRED


def _price_of_edit(port: int, number: int) -> bool:
    address = f"203.0.113.{number % 250}"
    status, _ = _ask(port, "sandbox-image-edit", "a.png", PICTURE, address)
    return status == http.client.PAYMENT_REQUIRED


_bought = iter(range(1, 10**6))


def _purchase(port: int, number: int) -> bool:
    """Buy with a transfer, and wait for the text."""
    body = _file("a.pdf", sample_pdf())
    body |= {"slug": "document-parser", "txHash": f"0x{next(_bought):064x}"}
    address = f"203.0.113.{number % 250}"
    status, sold = _post(port, "/api/proxy-generate", body, address)
    if status != http.client.OK:
        return False
    while not (task := _get(port, f"{sold['statusUrl']}?wait=30", address))["done"]:
        pass
    return task["status"] == "completed"


def _ask(port: int, slug: str, name: str, data: bytes, address: str) -> tuple[int, dict]:
    prompt = {"prompt": "snow"} if slug == "sandbox-image-edit" else {}
    return _post(port, f"/api/x402/{slug}?x402Version=1", _file(name, data) | prompt, address)


def _file(name: str, data: bytes) -> dict[str, str]:
    return {"fileBase64": base64.b64encode(data).decode(), "fileName": name}


def _post(port: int, path: str, body: dict, address: str) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    with contextlib.closing(connection):
        headers = {"Content-Type": "application/json", _ADDRESS: address}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, ValueError, http.client.HTTPException):
            return 0, {}


def _get(port: int, path: str, address: str) -> dict:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={_ADDRESS: address})
        return json.loads(connection.getresponse().read())
