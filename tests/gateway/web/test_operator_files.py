"""The operator's pages: their files and headers, and texts that stay texts."""

import re

import pytest

from gateway_operator.desk.badges import Badges
from gateway_operator.pages.page import Ask, Input, answer_dialog, answer_page
from tests.plugins.gateway_operator.app.operator import operator_app

HOSTILE = '"><script>alert(1)</script>'


async def in_request(gateway, answer, *args, **values) -> tuple:
    async with (await operator_app(gateway)).test_request_context("/admin"):
        response = await answer(*args, **values)
        return response, await response.get_data(as_text=True)


async def test_the_files_are_found_by_the_page_and_kept_for_ever(gateway):
    _, page = await in_request(gateway, answer_page, "base.html", page="overview")
    paths = re.findall(r'"(/admin/assets/[^"]+)"', page)
    assert [re.sub(r"-[0-9A-F]{8}", "", path) for path in paths] == [
        "/admin/assets/admin.css",
        "/admin/assets/live.js",
    ]
    for path, kind in zip(paths, ("text/css", "text/javascript"), strict=True):
        answer = await gateway.client.get(path)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith(kind)
        assert "immutable" in answer.headers["Cache-Control"]


@pytest.mark.parametrize("name", ["base.html", "admin.css", "../admin.html", "nothing-00000000.js"])
async def test_no_other_file_is_sent(gateway, name):
    assert (await gateway.client.get(f"/admin/assets/{name}")).status_code == 404


async def test_a_page_loads_nothing_from_elsewhere_and_is_kept_nowhere(gateway):
    answer, page = await in_request(gateway, answer_page, "base.html", page="overview")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert answer.headers["Cache-Control"] == "no-store"
    # With `no-referrer`, browsers send `Origin: null`, and every form would be refused.
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert "style=" not in page
    assert "<script>" not in page


async def test_the_bar_has_seven_pages_and_says_how_many_wait_on_each(gateway):
    badges = Badges(counts={"refunds": (14, "to decide")}, urgent=True)
    _, page = await in_request(gateway, answer_page, "base.html", page="refunds", badges=badges)
    assert page.count('<a href="/admin') == 7
    assert 'href="/admin/refunds" aria-current="page"' in page
    assert re.search(r"14<span[^>]*> to decide", page)
    assert "<title>● " in page


async def test_before_the_login_there_is_no_bar_and_no_log_out(gateway):
    _, page = await in_request(gateway, answer_page, "base.html", page="")
    assert "<nav" not in page
    assert "logout" not in page


async def test_a_question_shows_what_is_asked_and_hostile_words_stay_words(gateway):
    ask = Ask(
        title=f"Pause {HOSTILE}",
        action="/admin/endpoints/picture/pause",
        back="/admin/endpoints",
        button="Pause",
        facts=[("Old", HOSTILE)],
        warnings=[HOSTILE],
        fields={"was": HOSTILE},
        inputs=[Input(name="price", label="New price", value=HOSTILE, mode="decimal")],
        reason="required",
        needs_tick="I know",
        needs_password=True,
        needs_code=True,
        danger=True,
    )
    _, page = await in_request(
        gateway, answer_dialog, ask, page="endpoints", problem=HOSTILE, reason=HOSTILE
    )
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") >= 7
    for field in ("was", "price", "reason", "sure", "password", "code"):
        assert f'name="{field}"' in page
