"""Events go only to the internet over https, at exactly the address that was checked."""

import asyncio

import pytest

from gateway.errors import SettingsError
from gateway.outputs import links
from gateway.outputs.downloads import renew_transports
from gateway.settings import Settings
from gateway_webhooks import Sender
from gateway_webhooks.sender import NotTaken
from gateway_webhooks.settings import mode_of
from tests.conftest import WALLET, running
from tests.gateway.vendors.conftest import authority  # noqa: F401 - a fixture
from tests.plugins.gateway_webhooks.app.receiver import receiving
from tests.plugins.gateway_webhooks.app.shop import Names, opened

HOST = "buyer.example"
_HEADERS = {"webhook-id": "msg_1"}


@pytest.fixture
async def site(authority):  # noqa: F811
    async with receiving(authority.server(HOST)) as one:
        yield one


@pytest.fixture
def near(monkeypatch):
    """Addresses of this machine count as public, since the receiver is here."""
    monkeypatch.setattr(links, "is_public", lambda address: address.startswith("127."))


@pytest.fixture
async def sender(authority):  # noqa: F811
    made = Sender(tls=authority.client(), resolve=Names({HOST: ["127.0.0.1"]}))
    made.timeout_s = 60.0
    yield made
    await made.close()


async def test_an_event_goes_out_under_the_hosts_own_name(site, sender, near):
    url = f"https://{HOST}:{site.port}/hook?a=b"
    assert await sender.post(url, b"{}", _HEADERS) == 204
    (delivered,) = site.delivered
    assert (delivered.path, delivered.headers["host"]) == ("/hook?a=b", f"{HOST}:{site.port}")
    assert delivered.headers["user-agent"].startswith("generation-gateway/")


async def test_a_name_that_leads_elsewhere_the_next_time_gains_nothing(site, sender, monkeypatch):
    checked = []

    def check(address):
        checked.append(address)
        sender.resolve.table[HOST] = ["10.0.0.1"]
        return True

    monkeypatch.setattr(links, "is_public", check)
    assert await sender.post(f"https://{HOST}:{site.port}/", b"{}", _HEADERS) == 204
    assert checked == ["127.0.0.1"]
    assert sender.resolve.asked == [HOST]


async def test_an_event_whose_name_is_resolved_after_a_standstill_is_sent(site, sender, near):
    """New connections are wanted in the middle of the lookup, which runs in a thread."""
    loop = asyncio.get_running_loop()

    def resolve():
        asyncio.run_coroutine_threadsafe(renew_transports(), loop).result()
        return ["127.0.0.1"]

    sender.resolve.table[HOST] = resolve
    assert await sender.post(f"https://{HOST}:{site.port}/", b"{}", _HEADERS) == 204


async def test_the_certificate_must_be_the_names(site, sender, near):
    sender.resolve.table["other.example"] = ["127.0.0.1"]
    with pytest.raises(NotTaken):
        await sender.post(f"https://other.example:{site.port}/", b"{}", _HEADERS)
    assert site.delivered == []


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["169.254.169.254"],
        ["::1"],
        ["fdaa::3"],
        ["::ffff:10.0.0.1"],
        ["93.184.216.34", "10.0.0.1"],
        [],
    ],
    ids=str,
)
async def test_a_name_that_leads_into_a_private_network_is_sent_nothing(site, sender, addresses):
    sender.resolve.table[HOST] = addresses
    with pytest.raises(NotTaken, match="not public"):
        await sender.post(f"https://{HOST}:{site.port}/", b"{}", _HEADERS)
    assert site.delivered == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "0x7f.1", "2130706433", "localhost", "169.254.169.254"]
)
async def test_no_spelling_of_this_machine_is_sent_anything(site, authority, host):  # noqa: F811
    real = Sender(tls=authority.client(), timeout_s=60.0)
    with pytest.raises(NotTaken):
        await real.post(f"https://{host}:{site.port}/", b"{}", _HEADERS)
    await real.close()
    assert site.delivered == []


@pytest.mark.parametrize(
    "url", ["http://buyer.example/", "https://u:p@buyer.example/", "https:///x", "ftp://a/", ""]
)
async def test_only_plain_https_is_sent_anything(sender, near, url):
    with pytest.raises(NotTaken):
        await sender.post(url, b"{}", _HEADERS)
    assert sender.resolve.asked == []


async def test_a_gateway_of_this_machine_sends_nothing_to_another_one(tmp_path):
    async with opened(tmp_path) as shop:
        shop.names.table[HOST] = ["93.184.216.34"]
        with pytest.raises(NotTaken, match="another machine"):
            await shop.deliveries.sender.post(f"http://{HOST}/", b"{}", _HEADERS)


# -- refused before the payment


async def asked(gateway, url) -> tuple[int, str]:
    answer = await gateway.client.post(
        "/api/x402/picture", json={"prompt": "a boat", "callbackUrl": url}
    )
    return answer.status_code, (await answer.get_json())["error"]


WRONG = (
    "https://[::::]/",
    "https://[1.2.3.4]/",
    "",
    "buyer.example",
    "ftp://buyer.example/",
    "javascript:alert(1)",
    "https://",
    "https:///hook",
    "https://user@buyer.example/",
    "https://user:word@buyer.example/",
    "https://buyer.example:99999/",
    "https://buyer.example:0/",
    "https://b\u00fccher.example/",
    "https://buyer.example/a b",
    "https://buyer.example\\@10.0.0.1/",
    "https://buyer.example/\n",
    "https://buyer..example/",
    "https://buyer.example/" + "x" * 2_048,
)


async def test_what_is_no_address_gets_a_400_with_the_way_out(gateway):
    for url in WRONG:
        code, error = await asked(gateway, url)
        assert (code, "callbackUrl must" in error) == (400, True), url
    answer = await gateway.client.post(
        "/api/x402/picture", json={"prompt": "a boat", "callbackUrl": 5}
    )
    assert (await answer.get_json())["error"] == "callbackUrl must be a string."


async def test_a_gateway_of_this_machine_takes_addresses_of_this_machine(gateway):
    for url in ("http://127.0.0.1:9/hook", "http://localhost/", "https://[::1]:9/"):
        assert (await asked(gateway, url))[0] == 402, url
    assert (await asked(gateway, "https://buyer.example/"))[0] == 400


def made(**changes) -> Settings:
    return Settings(wallet=WALLET, settlement_key="0x" + "11" * 32).changed(**changes)


@pytest.mark.parametrize(
    ("mode", "base_url", "used"),
    [
        ("on", "https://gateway.example", "on"),
        ("on", "http://gateway.example", "off"),
        ("off", "https://gateway.example", "off"),
        ("local", "http://127.0.0.1:8080", "local"),
    ],
)
def test_events_are_sent_where_the_secret_went_over_https(mode, base_url, used):
    assert mode_of(made(webhooks=mode, base_url=base_url)) == used


@pytest.mark.parametrize(
    "changes", [{"base_url": "https://gateway.example"}, {"bind": "0.0.0.0:8080"}]
)
def test_a_gateway_that_others_reach_cannot_be_a_local_one(changes):
    with pytest.raises(SettingsError, match="GATEWAY_WEBHOOKS=on"):
        mode_of(made(webhooks="local", **changes))


async def test_a_gateway_that_others_reach_takes_https_only(settings, provider):
    settings = settings.changed(base_url="https://gateway.example", webhooks="on")
    async with running(settings, provider) as gateway:
        code, error = await asked(gateway, "http://buyer.example/")
        assert (code, error) == (400, "callbackUrl must begin with https://.")
        assert (await asked(gateway, "https://buyer.example/"))[0] == 402


async def test_a_gateway_that_sends_none_says_so_before_the_payment(settings, provider):
    settings = settings.changed(webhooks="off")
    async with running(settings, provider) as gateway:
        code, error = await asked(gateway, "http://127.0.0.1/")
        assert (code, "poll the task" in error) == (400, True)
