"""A flood of logins: it waits for its own single thread, and locks out no operator."""

import asyncio
import base64
import threading
from collections import Counter
from collections.abc import Iterator

import argon2
import pytest

from tests.conftest import buy, running

RIGHT = "correct horse"
ATTACKERS = 40  # more than threads that any machine gives to work without threads of its own
SHOWN_AS = "X-Client"


@pytest.fixture
def settings(settings):
    """Return settings with a fast password hash, and clients with addresses."""
    quick = argon2.PasswordHasher().hash(RIGHT)
    return settings.changed(admin_password="", admin_password_hash=quick, client_ip_header=SHOWN_AS)


@pytest.fixture
def stuck_argon2(monkeypatch) -> Iterator[threading.Event]:
    """Block every comparison; yields the event that is set when one is blocked."""
    begun, go_on = threading.Event(), threading.Event()
    verify = argon2.PasswordHasher.verify

    def stuck(self, *args):
        begun.set()
        go_on.wait()
        return verify(self, *args)

    monkeypatch.setattr(argon2.PasswordHasher, "verify", stuck)
    begun.go_on = go_on
    yield begun
    go_on.set()


async def _until_set(event: threading.Event) -> None:
    """Wait in a thread outside all pools."""
    loop, seen = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        event.wait()
        loop.call_soon_threadsafe(seen.set)

    threading.Thread(target=wait, daemon=True).start()
    await seen.wait()


async def _log_in(gateway, number: int, password: str = "wrong", **headers: str):
    headers |= {SHOWN_AS: f"10.0.{number >> 8}.{number & 255}"}
    return await gateway.client.post("/admin/login", json={"password": password}, headers=headers)


async def test_honest_work_in_threads_goes_on_while_logins_are_stuck(
    settings, provider, payer, stuck_argon2
):
    async with running(settings, provider) as gateway, asyncio.timeout(60):
        flood = [asyncio.create_task(_log_in(gateway, number)) for number in range(ATTACKERS)]
        await _until_set(stuck_argon2)
        large = base64.b64encode(b"a" * 100_000).decode()
        answer = await buy(
            gateway,
            payer.header(10_000),
            url="/api/x402/paper",
            fileBase64=large,
            fileName="a.txt",
        )
        assert answer.status_code == 200, await answer.get_json()
        task = await gateway.wait((await answer.get_json())["taskId"])
        assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
        stuck_argon2.go_on.set()
        statuses = Counter([(await attempt).status_code for attempt in flood])
    assert set(statuses) == {401, 429}
    assert statuses[401] <= 8


async def test_a_login_behind_a_full_queue_is_told_when_to_come_back(
    settings, provider, stuck_argon2
):
    async with running(settings, provider) as gateway, asyncio.timeout(60):
        flood = [asyncio.create_task(_log_in(gateway, number)) for number in range(ATTACKERS)]
        refused, _ = await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
        answer = refused.pop().result()
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) >= 1
        assert set(await answer.get_json()) == {"error"}
        stuck_argon2.go_on.set()
        await asyncio.gather(*flood)


async def test_all_addresses_together_have_a_limit_that_a_restart_does_not_reset(
    settings, provider, clock
):
    bound = settings.changed(limit_login_total="6/300s")
    async with running(bound, provider, now=clock) as gateway:
        statuses = [(await _log_in(gateway, number)).status_code for number in range(8)]
    assert statuses == [401] * 6 + [429] * 2
    async with running(bound, provider, now=clock) as gateway:
        answer = await _log_in(gateway, 100, RIGHT)
        assert answer.status_code == 429
        clock.offset_s += int(answer.headers["Retry-After"])
        assert (await _log_in(gateway, 100, RIGHT)).status_code == 200


async def test_refused_attempts_of_one_address_use_up_nobody_elses(settings, provider):
    bound = settings.changed(limit_login_total="8/300s")
    async with running(bound, provider) as gateway:
        statuses = Counter([(await _log_in(gateway, 1)).status_code for _ in range(30)])
        assert statuses == {401: 5, 429: 25}
        assert (await _log_in(gateway, 2, RIGHT)).status_code == 200


async def test_strangers_lock_no_browser_out_that_was_logged_in_before(settings, provider, clock):
    bound = settings.changed(limit_login_total="6/300s")
    async with running(bound, provider, now=clock) as gateway:
        device = await _device(gateway)
        gateway.client.cookie_jar.clear()
        clock.offset_s += 7 * 86_400
        for number in range(10, 20):
            await _log_in(gateway, number)
        assert (await _log_in(gateway, 100, RIGHT)).status_code == 429
        known = {"Cookie": f"gateway_device={device}"}
        assert (await _log_in(gateway, 100, RIGHT, **known)).status_code == 200
        wrong = [(await _log_in(gateway, 100, **known)).status_code for _ in range(5)]
        assert wrong == [401] * 4 + [429]
    changed = bound.changed(admin_password_hash="$argon2id$v=19$m=64,t=1,p=1$YWJjZGVmZ2g$AAAAAAAA")
    async with running(changed, provider, now=clock) as gateway:
        assert (await _log_in(gateway, 100, RIGHT, **known)).status_code == 429


async def _device(gateway) -> str:
    """Log in, and return the device cookie."""
    assert (await _log_in(gateway, 1, RIGHT)).status_code == 200
    page = await gateway.client.get("/admin")
    cookies = dict(
        text.partition(";")[0].split("=", 1) for text in page.headers.getlist("Set-Cookie")
    )
    (text,) = [each for each in page.headers.getlist("Set-Cookie") if "gateway_device" in each]
    assert "HttpOnly" in text
    assert "SameSite=Strict" in text
    assert "Path=/admin" in text
    return cookies["gateway_device"]


@pytest.mark.parametrize("value", ["", "x", "a.b.c", "0123456789abcdef.0123456789abcdef.x.y"])
async def test_a_forged_device_is_a_stranger(settings, provider, value):
    bound = settings.changed(limit_login_total="1/300s")
    async with running(bound, provider) as gateway:
        await _log_in(gateway, 1)
        known = {"Cookie": f"gateway_device={value}"}
        assert (await _log_in(gateway, 2, RIGHT, **known)).status_code == 429
