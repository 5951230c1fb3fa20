"""After a form that was refused, the page leads back to the form."""

import pytest

from tests.plugins.gateway_operator.app.operator import log_in, post

HERE = "http://localhost"


async def refused(gateway, path: str, sent_from: str, **form) -> str:
    answer = await post(gateway, path, headers={"Referer": sent_from}, **form)
    assert answer.status_code in range(400, 500), await answer.get_data(as_text=True)
    return await answer.get_data(as_text=True)


@pytest.mark.parametrize(
    ("path", "form", "page"),
    [
        ("/admin/access/tokens", {"name": "a", "scope": "read", "days": "0"}, "/admin/access"),
        ("/admin/access/tokens", {"name": "a"}, "/admin/access?shows=all#tokens"),
    ],
)
async def test_a_refused_form_leads_back_to_its_page(gateway, path, form, page):
    await log_in(gateway)
    text = await refused(gateway, path, HERE + page, **form)
    assert f'<a class="button" href="{page.partition("#")[0]}">Back to the form</a>' in text


@pytest.mark.parametrize(
    "sent_from",
    [
        "https://evil.example/admin/access",
        f"{HERE}/play/picture",
        # Only a form opens it.
        f"{HERE}/admin/access/tokens",
        "",
        "no address",
    ],
)
async def test_there_is_no_way_back_to_another_place(gateway, sent_from):
    await log_in(gateway)
    form = {"name": "a", "scope": "read", "days": "0"}
    text = await refused(gateway, "/admin/access/tokens", sent_from, **form)
    assert "Back to the form" not in text
    assert "To the overview" in text
