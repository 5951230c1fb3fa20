"""A person in a browser gets a page for each error; a program gets JSON as before."""

import attrs

from gateway.web.front.error_pages import ErrorPages
from tests.cases import each
from tests.conftest import running

CHROME = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;"
    "q=0.8,application/signed-exchange;v=b3;q=0.7"
)
FIREFOX = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
TASK = "/task/2f1d6a52-7b7c-4c0e-9d43-0a6f5f1f7c11"
PATHS = [
    "/nothing",
    "/no/such/thing.html",
    "/play",
    "/play/",
    "/play/old",
    "/play/%3Cimg%20src=x%3E",
    "/task",
    "/task/",
    "/task/x",
    TASK,
    "/task/" + "9" * 500,
    "/purchases/more",
    "/web/none.js",
    "/files/a?expires=1&signature=b",
    "/admin/nothing",
    "/admin/login",
    "/admin/logout",
    "/%00",
    "/a%0d%0aX-Evil:%201",
    "/nothing?<script>alert(1)</script>",
]


async def get(gateway, path: str, accept: str | None = None, method: str = "GET"):
    headers = {} if accept is None else {"Accept": accept}
    return await gateway.client.open(path, method=method, headers=headers)


@each("path", PATHS)
async def test_a_browser_gets_a_page_with_the_status_of_the_json(gateway, path):
    plain = await get(gateway, path)
    assert plain.mimetype == "application/json"
    for accept in (CHROME, FIREFOX, "text/html"):
        answer = await get(gateway, path, accept)
        assert answer.status_code == plain.status_code
        assert answer.mimetype == "text/html"
        assert answer.headers["Cache-Control"] == plain.headers["Cache-Control"] == "no-store"
        assert answer.headers.get("Allow") == plain.headers.get("Allow")
        assert "default-src 'none'; script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert "X-Evil" not in answer.headers
        text = await answer.get_data(as_text=True)
        assert 'href="/purchases"' in text
        for quoted in ("<img src=x", "<script>alert", "no/such/thing", "9" * 20):
            assert quoted not in text


@each(
    "accept",
    [
        None,
        "*/*",
        "application/json",
        "application/json, text/plain, */*",
        "application/json, text/html;q=0.5",
        "text/*",
        "image/avif,image/webp,*/*;q=0.8",
        "text/event-stream",
        "",
        ",;q=;;text/ html",
    ],
)
async def test_a_program_gets_json(gateway, accept):
    for path in PATHS:
        answer = await get(gateway, path, accept)
        assert answer.mimetype == "application/json", path
        assert {"error", "code"} <= set(await answer.get_json())


@each(
    "path", ["/api/nothing", "/api/task/x", "/api/x402/old", "/.well-known/nothing", "/mcp", "/api"]
)
async def test_paths_for_programs_stay_json_in_a_browser(gateway, path):
    plain, answer = await get(gateway, path), await get(gateway, path, CHROME)
    assert answer.status_code == plain.status_code >= 400
    if path != "/api":
        assert answer.mimetype == "application/json"
        assert await answer.get_json() == await plain.get_json()


async def test_only_an_opened_address_has_a_page(gateway):
    for method in ("POST", "PUT", "DELETE"):
        answer = await get(gateway, "/nothing", CHROME, method)
        assert (answer.status_code, answer.mimetype) == (404, "application/json")
    head = await get(gateway, "/nothing", CHROME, "HEAD")
    assert (head.status_code, head.mimetype) == (404, "text/html")


async def words(gateway, path: str) -> str:
    return await (await get(gateway, path, CHROME)).get_data(as_text=True)


async def test_each_page_names_the_way_out(settings, provider):
    named = attrs.evolve(settings, contact_email="help@harbour.example")
    async with running(named, provider) as started:
        assert "It is not sold here" in await words(started, "/play/old")
        assert "Check that the link is complete" in await words(started, TASK)
        assert "has a fresh link" in await words(started, "/files/a?expires=1&signature=b")
        for path in ("/admin/login", "/admin/nothing"):
            assert 'href="/admin"' in await words(started, path)
        for path in ("/nothing", TASK):
            text = await words(started, path)
            assert 'href="mailto:help@harbour.example"' in text
            assert 'href="/"' in text


async def test_too_many_requests_are_a_page_that_says_when_to_come_back(settings, provider):
    async with running(attrs.evolve(settings, limit_task="2/60s"), provider) as started:
        answers = [await get(started, "/task/x", CHROME) for _ in range(3)]
        assert [one.status_code for one in answers] == [404, 404, 429]
        assert int(answers[-1].headers["Retry-After"]) >= 1
        assert "Too many requests" in await answers[-1].get_data(as_text=True)


async def test_without_the_pages_everybody_gets_json(settings, provider):
    bare = attrs.evolve(settings, plugins_disabled=("gateway_shop",))
    async with running(bare, provider) as started:
        for path in ("/", "/nothing", "/admin/nothing"):
            answer = await get(started, path, CHROME)
            assert (answer.status_code, answer.mimetype) == (404, "application/json")


async def test_a_page_that_cannot_be_made_leaves_the_json(gateway):
    async def fail(status: int):
        raise RuntimeError("a template is broken")

    gateway.services.keep(ErrorPages(fail))
    answer = await get(gateway, "/nothing", CHROME)
    assert (answer.status_code, answer.mimetype) == (404, "application/json")
    assert (await answer.get_json())["code"] == "NOT_FOUND"
