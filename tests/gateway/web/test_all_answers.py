"""Errors and headers that every response has."""

import attrs
import pytest

from tests.cases import each
from tests.conftest import running
from tests.gateway.web.descriptions import MANIFEST, PUBLIC


@each(
    "path",
    [
        "/play",
        "/play/",
        "/web/",
        "/nothing",
        "/api",
        "/api/x402",
        "/api/x402/",
        "/api/task/",
        "/files/",
        "/%00",
        "/api/health/",
        "/api//health",
    ],
)
async def test_an_unknown_path_is_a_json_404(gateway, path):
    answer = await gateway.client.get(path)
    assert answer.status_code == 404
    body = await answer.get_json()
    assert body["code"] == "NOT_FOUND"
    assert body["error"]


@each(
    "method, path, allowed",
    [
        ("PUT", "/api/x402/picture", "POST"),
        ("GET", "/api/proxy-generate", "POST"),
        ("POST", "/api/task/x", "GET"),
        ("DELETE", "/api/task/x", "GET"),
        ("POST", MANIFEST, "GET"),
        ("PUT", "/api/health", "GET"),
        ("GET", "/admin/login", "POST"),
    ],
)
async def test_a_wrong_method_is_a_json_405(gateway, method, path, allowed):
    answer = await gateway.client.open(path, method=method)
    assert answer.status_code == 405
    assert (await answer.get_json())["code"] == "METHOD_NOT_ALLOWED"
    assert allowed in answer.headers["Allow"]


async def test_what_goes_wrong_inside_stays_inside(gateway, monkeypatch):
    async def fail(_) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(type(gateway.services.store.queue), "depth", fail)
    answer = await gateway.client.get("/api/health")
    assert answer.status_code == 500
    assert await answer.get_json() == {"error": "Internal error", "code": "INTERNAL_ERROR"}
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


ALLOWED = (
    "Content-Type, X-PAYMENT, PAYMENT-SIGNATURE, Idempotency-Key, Access-Control-Expose-Headers"
)
EXPOSED = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After"


def _words(header: str) -> set[str]:
    return {word.strip().lower() for word in header.split(",")}


@each(
    "path", ["/api/x402/picture", "/api/proxy-generate", "/api/task/x", MANIFEST, "/openapi.json"]
)
async def test_a_browser_may_ask_from_anywhere(gateway, path):
    origin = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    answer = await gateway.client.options(path, headers=origin)
    assert answer.status_code in (200, 204)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer.headers
    assert _words(answer.headers["Access-Control-Allow-Headers"]) >= _words(ALLOWED)
    assert {"get", "post"} <= _words(answer.headers["Access-Control-Allow-Methods"])
    answer = await gateway.client.post(path, headers=origin)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert _words(answer.headers["Access-Control-Expose-Headers"]) >= _words(EXPOSED)


@pytest.mark.parametrize("path", ["/admin", "/admin/login", "/admin/nothing"])
async def test_the_admin_pages_are_for_no_other_origin(gateway, path):
    origin = {"Origin": "https://evil.example"}
    for answer in (
        await gateway.client.options(path, headers=origin),
        await gateway.client.get(path, headers=origin),
        await gateway.client.post(path, headers=origin, json={"password": "x"}),
    ):
        assert not [
            name for name, _ in answer.headers.items() if name.lower().startswith("access-control")
        ]


@each("path", [*PUBLIC, "/admin", "/nothing", "/api/x402/picture"])
async def test_every_answer_has_an_id_and_is_not_sniffed(gateway, path):
    first, second = [await gateway.client.get(path) for _ in range(2)]
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]
    assert "Strict-Transport-Security" not in first.headers


async def test_a_plain_request_id_is_kept_and_an_odd_one_is_not(gateway):
    for given, kept in (("abc-123", True), ("a b", False), ("x" * 65, False), ("a\u00e9", False)):
        answer = await gateway.client.get("/api/health", headers={"X-Request-Id": given})
        assert (answer.headers["X-Request-Id"] == given) == kept


async def test_over_https_browsers_are_told_to_stay_there(settings, provider):
    secure = attrs.evolve(settings, base_url="https://gateway.example.com")
    async with running(secure, provider) as gateway:
        for path in (*PUBLIC, "/nothing"):
            headers = (await gateway.client.get(path)).headers
            assert "max-age=" in headers["Strict-Transport-Security"]
