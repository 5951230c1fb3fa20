"""Clients that send files which take long to check, beside clients with ordinary ones.

All use one gateway at once, and none pays. Each ordinary file gets its price. A slow one may only
be refused with a documented status.
"""

import asyncio
import base64
import contextlib
import io
import itertools
import random
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs
from PIL import Image

from gateway import Settings
from gateway.running.intake import CHECKS
from gateway.running.timing import Timing
from gateway.sandbox.fair_share import FairShare
from gateway_demo.chain import PlayChain
from gateway_demo.sample import sample_pdf
from gateway_testing.provider.samples import PICTURE
from tests.conftest import WALLET, Running, new_account, running
from tests.patience import PATIENCE_S
from tests.proof.providers import documents_pdf as pdf

# Slug, file name and bytes.
File = tuple[str, str, bytes]
_HEADER = "X-Real-IP"
_GREEDY = 3
# Requests that each attacker keeps open.
_OPEN = 3
_FILES = 12
# 402 is for files that are not slow enough.
_REFUSALS = (400, 402, 429, 503)


def run(honest: int, *, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Return the outcomes of the requests, and the violations in sentences."""
    return asyncio.run(_run(random.Random(seed), honest))


async def _run(chance: random.Random, honest: int) -> tuple[Counter[str], list[str]]:
    outcomes, findings = Counter[str](), []
    # Made in advance: the gateway shares this event loop.
    slow = itertools.cycle([chance.choice(_SLOW)(chance) for _ in range(_FILES)])
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chain = stack.enter_context(PlayChain())
        chain.fund(_KEY.address, eth_wei=10**18, usdc_units=0)
        settings = attrs.evolve(_settings(folder), rpc_urls=(chain.rpc_url,))
        gateway = await stack.enter_async_context(running(settings))
        # The order of checks is tested here, and not how fast this machine is.
        gateway.services.timing = Timing(validation_s=PATIENCE_S)
        gateway.services.intake.checks = FairShare(attrs.evolve(CHECKS, wait_s=PATIENCE_S))
        greedy = [
            asyncio.create_task(_send_without_end(gateway, slow, f"198.51.100.{at}", outcomes))
            for at in range(_GREEDY)
            for _ in range(_OPEN)
        ]
        for at in range(honest):
            slug, name, data = chance.choice(_ORDINARY)
            status = await _ask(gateway, f"203.0.113.{at}", slug, name, data)
            outcomes[f"ordinary: {status}"] += 1
            if status != 402:
                findings.append(f"An ordinary {name} for {slug} got {status}.")
        # Requests cancelled below do not count.
        outcomes = outcomes.copy()
        for task in greedy:
            task.cancel()
        await asyncio.gather(*greedy, return_exceptions=True)
    for name in outcomes:
        kind, _, status = name.partition(": ")
        if kind == "slow" and int(status) not in _REFUSALS:
            findings.append(f"A slow file got {status}.")
    return outcomes, findings


def _settings(folder: Path) -> Settings:
    return Settings(
        base_url="http://gateway.test",
        wallet=WALLET,
        data_dir=folder,
        settlement_key=_KEY.key.hex(),
        plugin_values={"admin_password": "correct horse"},
        client_ip_header=_HEADER,
        limit_x402="1000000/1s",
        min_free_disk_mb=0,
        sandbox=True,
    )


_KEY = new_account()
_ORDINARY = (
    ("document-parser", "a.pdf", sample_pdf()),
    ("document-parser", "a.txt", b"Dear reader"),
    ("sandbox-image-edit", "a.png", PICTURE),
)


async def _send_without_end(
    gateway: Running, slow: Iterator[File], address: str, outcomes: Counter[str]
) -> None:
    while True:
        status = await _ask(gateway, address, *next(slow))
        outcomes[f"slow: {status}"] += 1


async def _ask(gateway: Running, address: str, slug: str, name: str, data: bytes) -> int:
    body = {"fileBase64": base64.b64encode(data).decode(), "fileName": name}
    if slug == "sandbox-image-edit":
        body["prompt"] = "snow"
    answer = await gateway.client.post(f"/api/x402/{slug}", json=body, headers={_HEADER: address})
    return answer.status_code


# -- slow files


def _scans(chance: random.Random) -> File:
    """Return a JPEG that repeats one of its scans."""
    file = io.BytesIO()
    side = chance.randint(500, 5000)
    Image.new("RGB", (side, side)).save(file, "JPEG", progressive=True, quality=5)
    data = file.getvalue()
    scan = data[data.rindex(b"\xff\xda") : -2]
    return "sandbox-image-edit", "a.jpg", data[:-2] + scan * chance.randint(50, 400) + data[-2:]


def _operators(chance: random.Random) -> File:
    """Return a PDF whose pages unpack to many megabytes of operators."""
    page = zlib.compress(b"BT /F1 9 Tf (x) Tj ET " * chance.randint(10_000, 300_000), 1)
    return "document-parser", "a.pdf", pdf.write_contents([page] * chance.randint(1, 40))


def _kids(chance: random.Random) -> File:
    """Return a PDF that names a page hundreds of thousands of times."""
    kids = b"[6 0 R" + b" 6 0 R" * chance.randint(10_000, 1_000_000)
    data = pdf.write_contents([b""])
    return "document-parser", "a.pdf", data.replace(b"[6 0 R", kids)


_SLOW = (_scans, _operators, _kids)
