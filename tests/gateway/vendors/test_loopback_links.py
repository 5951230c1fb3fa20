"""Links of results to the gateway's own machine: refused, unless its developer allows them."""

import socket

import attrs
import pytest
from werkzeug import Response

from gateway import Link, LinkDead, Outbound, Result, Settings
from gateway.errors import SettingsError
from gateway.settings.checks import check_settings
from tests.conftest import PNG, running

ON_THIS_MACHINE = Settings(wallet="0x" + "11" * 20, rpc_urls=("http://localhost:8545",))


@pytest.fixture
async def developers():
    made = Outbound("https://outputs.invalid", follows_loopback=True)
    yield made
    await made.close()


async def sell_link(settings, provider, payer, url):
    """Return the task's end for a result that links to this URL."""
    provider.script.append(Result(outputs=(Link(url=url, media_type="image/png"),)))
    async with running(settings, provider) as gateway:
        paid = await gateway.client.post(
            "/api/x402/picture", json={"prompt": "x"}, headers={"X-PAYMENT": payer.header()}
        )
        task = await gateway.client.get((await paid.get_json())["statusUrl"] + "?wait=30")
        return await task.get_json()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_vendor_on_the_developers_machine_is_sold_where_that_is_allowed(
    settings, provider, payer, httpserver, host
):
    httpserver.expect_request("/made.png").respond_with_data(PNG)
    allowed = attrs.evolve(settings, allow_loopback_links=True)
    url = f"http://{host}:{httpserver.port}/made.png"
    task = await sell_link(allowed, provider, payer, url)
    assert task["status"] == "completed", task


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
async def test_by_default_no_link_leads_to_this_machine(
    settings, provider, payer, httpserver, host
):
    assert not settings.allow_loopback_links
    provider.traits = attrs.evolve(provider.traits, idempotent_submit=False)
    for scheme in ("http", "https"):
        url = f"{scheme}://{host}:{httpserver.port}/made.png"
        task = await sell_link(settings, provider, payer, url)
        assert (task["status"], task["details"]) == ("failed", "provider_error")
        is_usual_name = "ffff" not in host
        assert ("needs allow_loopback_links" in task["error"]) == is_usual_name
    assert httpserver.log == []


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://192.168.0.1/",
        "http://[fd00::1]/",
        "http://0.0.0.0:{port}/",
        "http://127.0.0.2:{port}/",
        "http://2130706433:{port}/",
        "http://user:pass@127.0.0.1:{port}/",
        "http://leads-here.example:{port}/",
        "https://leads-here.example:{port}/",
        "https://10.0.0.1/",
        "file:///etc/passwd",
    ],
)
async def test_what_a_developer_allows_is_this_machine_by_its_own_names_only(
    developers, httpserver, monkeypatch, url
):
    here = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", httpserver.port))]
    usual = socket.getaddrinfo

    def getaddrinfo(host, *more, **named):
        return here if host == "leads-here.example" else usual(host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(LinkDead):
        await developers.download(url.format(port=httpserver.port))
    assert httpserver.log == []


@pytest.mark.parametrize(
    "target", ["http://10.0.0.1/", "http://169.254.169.254/", "http://localhost:{port}/b.png"]
)
async def test_this_machine_does_not_lead_to_another_host(developers, httpserver, target):
    location = target.format(port=httpserver.port)
    httpserver.expect_request("/a.png").respond_with_data("", 302, {"Location": location})
    with pytest.raises(LinkDead, match=r"redirected to another host|not plain https"):
        await developers.download(httpserver.url_for("/a.png").replace("localhost", "127.0.0.1"))
    assert [request.path for request, _ in httpserver.log] == ["/a.png"]


async def test_a_redirect_on_this_machine_is_followed(developers, httpserver):
    answers = [Response("", 302, {"Location": "/a.png?again"}), Response(PNG)]
    httpserver.expect_request("/a.png").respond_with_handler(lambda _: answers.pop(0))
    url = f"http://127.0.0.1:{httpserver.port}/a.png"
    assert await developers.download(url) == PNG


@pytest.mark.parametrize("network", ["base", "base-sepolia"])
def test_the_setting_is_taken_where_money_and_gateway_are_for_play(network):
    check_settings(attrs.evolve(ON_THIS_MACHINE, allow_loopback_links=True, network=network))
    rpc_urls = ("https://sepolia.example",)
    there = attrs.evolve(ON_THIS_MACHINE, allow_loopback_links=True, rpc_urls=rpc_urls)
    check_settings(attrs.evolve(there, network="base-sepolia"))


@pytest.mark.parametrize(
    "public",
    [
        {"base_url": "https://gateway.example.com"},
        {"bind": "0.0.0.0:8080"},
        {"rpc_urls": ("https://mainnet.example",)},
        {"base_url": "https://gateway.example.com", "network": "base-sepolia"},
    ],
)
def test_the_setting_is_refused_where_strangers_or_real_money_are(public):
    settings = attrs.evolve(ON_THIS_MACHINE, allow_loopback_links=True, **public)
    with pytest.raises(SettingsError, match="GATEWAY_ALLOW_LOOPBACK_LINKS is not right"):
        check_settings(settings)
