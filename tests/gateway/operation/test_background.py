"""Background work: its late imports, and errors that end it."""

import asyncio

import structlog

import gateway_operator
from tests.conftest import running


async def test_a_fault_that_ends_background_work_is_logged_and_sales_go_on(
    settings, provider, monkeypatch
):
    def fail(name: str) -> None:
        raise ImportError(f"no {name}")

    monkeypatch.setattr(gateway_operator, "import_in_turn", fail)
    with structlog.testing.capture_logs() as lines:
        async with running(settings, provider) as gateway:
            await _until_logged(lines, "part.failed")
            price = await gateway.client.post("/api/x402/picture", json={"prompt": "a boat"})
    assert price.status_code == 402
    (line,) = (line for line in lines if line["event"] == "part.failed")
    assert (line["part"], line["step"]) == ("operator", "warm")


async def _until_logged(lines, event):
    for _ in range(3000):
        if any(line["event"] == event for line in lines):
            return
        await asyncio.sleep(0.01)
