"""The operator's pages are imported on request, and answer like the rest."""

import asyncio
import threading

import pytest
import structlog

from gateway.web import application
from tests.conftest import running
from tests.gateway.web.asgi_calls import Asked, ask
from tests.plugins.gateway_operator.app.operator import log_in, operator_app

PAGE = Asked(path=b"/admin")


class Imports:
    """Counts imports of the operator's routes; can block them, and can make the first ones fail."""

    def __init__(self) -> None:
        self.count = 0
        self.failures = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self._import = application.import_in_turn

    def __call__(self, name: str):
        if name == "gateway_operator.pages":
            self.may_go_on.wait(60)
            self.count += 1
            if self.count <= self.failures:
                raise ImportError("no such module as secret-of-the-import")
        return self._import(name)


@pytest.fixture
def imports(monkeypatch):
    counted = Imports()
    monkeypatch.setattr(application, "import_in_turn", counted)
    yield counted
    counted.may_go_on.set()


@pytest.fixture
async def gateway(imports, settings, provider):
    """A gateway whose operator has not opened a page yet."""
    async with running(settings, provider) as started:
        yield started


async def test_what_buyers_ask_for_imports_no_page(gateway, imports):
    for path in ("/", "/api/health", "/api/ready", "/api/task/none", "/adminx", "/x"):
        await gateway.client.get(path)
    assert imports.count == 0
    assert (await gateway.client.get("/admin")).status_code == 401
    assert imports.count == 1


async def _asked_of(gateway, count: int) -> list[asyncio.Task]:
    """Requests for a page, which wait for its import."""
    tasks = [asyncio.create_task(ask(gateway.app, PAGE)) for _ in range(count)]
    # Each starts its own task, which then requests the import.
    for _ in range(2):
        await asyncio.sleep(0)
    return tasks


async def _statuses(tasks) -> list[int]:
    return [answer.status for answer in await asyncio.gather(*tasks)]


async def test_requests_that_come_meanwhile_wait_for_the_same_import(gateway, imports):
    imports.may_go_on.clear()
    asked = await _asked_of(gateway, 5)
    # Sales continue.
    assert (await gateway.client.get("/api/health")).status_code == 200
    assert (await gateway.client.get("/api/task/none?wait=x")).status_code == 400
    assert not any(task.done() for task in asked)
    imports.may_go_on.set()
    assert await _statuses(asked) == [401] * 5
    assert imports.count == 1


async def test_a_client_that_leaves_does_not_end_the_import_for_the_others(gateway, imports):
    imports.may_go_on.clear()
    leaves, stays = await _asked_of(gateway, 2)
    leaves.cancel()
    await asyncio.gather(leaves, return_exceptions=True)
    imports.may_go_on.set()
    assert await _statuses([stays]) == [401]
    assert imports.count == 1


async def test_a_failed_import_is_a_500_in_the_log_and_the_next_request_tries_again(
    gateway, imports
):
    imports.failures = 1
    with structlog.testing.capture_logs() as lines:
        answer = await gateway.client.get("/admin", headers={"X-Request-Id": "r1"})
    assert answer.status_code == 500
    assert await answer.get_json() == {"error": "Internal error", "code": "INTERNAL_ERROR"}
    assert answer.headers["X-Request-Id"] == "r1"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    failed, line = [line for line in lines if line["event"].startswith("request")]
    assert (failed["event"], failed["rule"]) == ("request.failed", "/admin")
    assert "secret-of-the-import" in str(failed["exc_info"])
    assert (line["event"], line["method"], line["status"]) == ("request", "GET", 500)
    assert (await log_in(gateway)).status_code == 200
    assert (await gateway.client.get("/admin")).status_code == 200
    assert imports.count == 2


async def test_all_who_waited_for_an_import_that_failed_are_answered_by_it(gateway, imports):
    imports.failures = 1
    imports.may_go_on.clear()
    asked = await _asked_of(gateway, 5)
    imports.may_go_on.set()
    assert await _statuses(asked) == [500] * 5
    assert imports.count == 1


async def test_a_path_without_a_page_is_a_404_as_everywhere(gateway):
    answers = set()
    for path in ("/admin/", "/admin/none", "/admin//", "/admin/api/v1/none", "/adminx", "/x/admin"):
        for method in ("GET", "POST", "HEAD"):
            with structlog.testing.capture_logs() as lines:
                answer = await gateway.client.open(path, method=method)
            assert answer.status_code == 404, path
            assert answer.headers["Content-Type"] == "application/json"
            assert len(answer.headers["X-Request-Id"]) == 32
            (line,) = (line for line in lines if line["event"] == "request")
            assert (line["method"], line["rule"], line["status"]) == (method, None, 404)
            answers.add(await answer.get_data(as_text=True))
    (body,) = answers
    assert "GET /llms.txt describes this service" in body


async def test_a_method_without_a_route_is_a_405(gateway):
    answer = await gateway.client.put("/admin/login")
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]


async def test_a_body_above_the_limit_is_refused(gateway):
    answer = await gateway.client.post("/admin/login", data=b"x" * 70_000)
    assert answer.status_code == 413


async def test_other_spellings_of_the_path_lead_to_the_page(gateway):
    for asked in (
        Asked(path=b"/%61dmin"),
        Asked(path=b"//admin"),
        Asked(path=b"http://gateway.test/admin"),
        Asked(path=b"/under/admin", root_path="/under"),
    ):
        answer = await ask(gateway.app, asked)
        assert answer.status == 401
        assert b"<form" in answer.body


async def test_a_host_that_is_none_is_refused(gateway):
    answer = await ask(gateway.app, Asked(path=b"/admin", headers=((b"host", b"a" * 64),)))
    assert answer.status == 400


async def test_both_apps_carry_the_same(gateway):
    operators = await operator_app(gateway)
    assert operators is await operator_app(gateway)
    assert operators.extensions is gateway.app.extensions
    assert operators.secret_key == gateway.app.secret_key
