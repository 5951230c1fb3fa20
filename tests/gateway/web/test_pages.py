"""The pages for people, without a browser: their texts, headers, and files."""

import gzip
import json
import re
from html import unescape
from html.parser import HTMLParser

import attrs
import pytest

from gateway.catalog.upstream import Upstream
from gateway.settings import EndpointOverride
from gateway.web.routes.files import static_folder
from tests.conftest import WALLET, ScriptedPlugin, new_account, running

WEB = static_folder() / "web"
# Gzipped bytes of everything that a browser needs before a page works, without pictures.
FIRST_LOAD, LATER = 25_000, 80_000


class Page(HTMLParser):
    """The links, scripts and words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data

    def values(self, name: str) -> list[str]:
        return [found[name] for _, found in self.tags if found.get(name)]


async def get_page(gateway, path: str) -> Page:
    answer = await gateway.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    return Page(await answer.get_data(as_text=True))


# -- the front page


async def test_the_front_page_names_every_offer_its_price_and_where_it_is_sold(gateway):
    page = await get_page(gateway, "/")
    for words in ("A picture", "0.02", "0.01", "3 on sale", "x402_requests", "refund", WALLET):
        assert words in page.words
    links = page.values("href")
    for link in ("/play/picture", "/play/paper", "/llms.txt", "/openapi.json"):
        assert link in links
    assert "/.well-known/agent-manifest.json" in links


async def test_the_front_page_names_the_lowest_price_of_all(settings, provider):
    prices = {"picture": "10", "paper": "2", "document-parser": "30"}
    overrides = {slug: EndpointOverride(price=price) for slug, price in prices.items()}
    async with running(attrs.evolve(settings, endpoints=overrides), provider) as started:
        page = await get_page(started, "/")
    assert "Pictures and documents as text from 2 USDC each." in page.words


async def test_the_front_page_links_to_what_programs_read(gateway):
    answer = await gateway.client.get("/")
    assert answer.headers["Link"] == (
        '</openapi.json>; rel="service-desc", </llms.txt>; rel="describedby"'
    )


async def test_where_nothing_is_sold_the_page_says_so(settings):
    async with running(attrs.evolve(settings, endpoints={}), None) as started:
        for registered in list(started.services.catalog.everything()):
            started.services.catalog.withdraw(registered.upstream.plugin)
        page = await get_page(started, "/")
    assert "This gateway sells nothing yet." in page.words
    assert "Nothing on sale" in page.words
    assert not [link for link in page.values("href") if link.startswith("/play/")]


async def test_an_endpoint_off_sale_is_shown_as_such_at_once(gateway):
    await get_page(gateway, "/")
    upstream: Upstream = gateway.services.catalog["picture"].upstream
    upstream.circuit.trip("MARKER of the vendor", pause_s=60)
    page = await get_page(gateway, "/")
    assert page.words.count("Off sale now") == 2
    assert "1 of 3 on sale" in page.words
    assert "MARKER" not in page.words
    form = await get_page(gateway, "/play/picture")
    assert "Off sale now" in form.words
    assert ("fieldset", {"disabled": None}) in form.tags


async def test_a_wallet_that_must_not_be_paid_is_not_shown(gateway):
    await get_page(gateway, "/")
    gateway.services.wallet.problem = "It is a contract."
    page = await get_page(gateway, "/")
    assert "its wallet is not ready to be paid" in page.words
    assert "Off sale now" in page.words


async def test_mcp_is_named_only_where_it_is_served(settings, provider):
    async with running(settings.changed(mcp=False), provider) as started:
        assert "/mcp" not in (await get_page(started, "/")).words
    async with running(settings, provider) as started:
        assert "http://gateway.test/mcp" in (await get_page(started, "/")).words


async def code_of(gateway, language: str) -> str:
    """Return the code in one language on the page of pictures."""
    page = await (await gateway.client.get("/play/picture")).get_data(as_text=True)
    shown = re.search(rf'data-language="{language}".*?<code>(.*?)</code>', page, re.DOTALL)[1]
    return unescape(re.sub(r"<[^>]+>", "", shown))


async def test_where_a_transfer_needs_a_signature_curl_is_told_to_send_none(settings, provider):
    """A buyer who has transferred and cannot sign has lost the money."""
    required = attrs.evolve(settings, require_payer_signature=True)
    async with running(required, provider) as started:
        code = await code_of(started, "curl")
    assert "/api/x402/picture --json" in code
    assert "send no transfer" in code
    assert "http://gateway.test/llms.txt" in code
    for words in (WALLET, "proxy-generate", "from any wallet"):
        assert words not in code


@pytest.mark.parametrize(
    ("changes", "where"),
    [({}, "on base from"), ({"play_key": "0x" + "12" * 32}, "on the embedded chain from")],
)
async def test_curl_says_on_which_chain_the_transfer_counts(settings, provider, changes, where):
    local = settings.changed(base_url="http://127.0.0.1:8080", **changes)
    async with running(local, provider) as started:
        code = await code_of(started, "curl")
    assert f"USDC {where} any wallet to\n#    {WALLET}\n" in code


async def test_the_code_pays_no_more_than_the_highest_price(settings, provider):
    dearest = {"picture": EndpointOverride(price="0.02", prices={"2K": "0.05"})}
    async with running(attrs.evolve(settings, endpoints=dearest), provider) as started:
        assert "max_amount(50000)" in await code_of(started, "python")
        assert 'maxAmountPerPayment: "$0.05"' in await code_of(started, "typescript")


# -- the page of one endpoint


async def test_the_form_is_made_from_what_the_endpoint_takes(gateway):
    page = await get_page(gateway, "/play/picture")
    radios = [found for tag, found in page.tags if found.get("type") == "radio"]
    assert {found["value"] for found in radios if found["name"] == "aspect_ratio"} == {
        "1:1",
        "16:9",
    }
    checked = {found["name"]: found["value"] for found in radios if "checked" in found}
    assert checked["resolution"] == "1K"
    prompt = next(found for tag, found in page.tags if tag == "textarea")
    assert prompt["maxlength"] == "10000"
    assert "required" in prompt
    paper = await get_page(gateway, "/play/paper")
    file = next(found for _, found in paper.tags if found.get("type") == "file")
    assert file["accept"] == ".pdf,.txt"


async def test_an_unknown_endpoint_has_no_page(gateway):
    answer = await gateway.client.get("/play/nothing")
    assert answer.status_code == 404
    assert (await answer.get_json())["code"] == "NOT_FOUND"


async def test_words_of_an_endpoint_stay_words(settings, provider):
    evil = '</script><script>alert(1)</script><b title="'
    change = {"picture": {"title": evil, "description": evil}}
    overrides = {slug: EndpointOverride(**fields) for slug, fields in change.items()}
    async with running(attrs.evolve(settings, endpoints=overrides, name=evil), provider) as started:
        for path in ("/", "/play/picture"):
            text = await (await started.client.get(path)).get_data(as_text=True)
            assert "<script>alert" not in text
            assert "<b title" not in text


# -- play money


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"network": "base-sepolia"}, "Test network."),
        (
            {
                "play_key": "0x" + "12" * 32,
                "base_url": "http://127.0.0.1:8080",
                "bind": "127.0.0.1:8080",
            },
            "Play money.",
        ),
    ],
)
async def test_money_without_value_is_called_so(settings, provider, changes, message):
    async with running(settings.changed(**changes), provider) as started:
        for path in ("/", "/play/picture"):
            page = await get_page(started, path)
            assert [words for words in ("Test network.", "Play money.") if words in page.words] == (
                [message] if message else []
            )
        assert ("12" * 32 in page.words) is ("play_key" in changes)


# -- headers and files


async def test_a_page_loads_nothing_from_elsewhere_and_runs_no_script_of_its_own(gateway):
    for path, styles in (
        ("/", "'self'"),
        ("/purchases", "'self'"),
        ("/play/picture", r"'self' 'sha256-[\w+/]{43}='"),
    ):
        answer = await gateway.client.get(path)
        policy = answer.headers["Content-Security-Policy"]
        known = rf"default-src 'none'; script-src 'self'; style-src {styles}; img-src .*"
        assert re.fullmatch(known, policy)
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        page = Page(await answer.get_data(as_text=True))
        assert all(source.startswith("/") for source in page.values("src"))
        assert not page.values("style")
        assert not [name for _, found in page.tags for name in found if name.startswith("on")]
        scripts = [found for tag, found in page.tags if tag == "script"]
        assert all("src" in found or found["type"] == "application/json" for found in scripts)


async def test_the_operators_name_colour_logo_and_links_are_shown(settings, provider):
    brand = {
        "name": "Harbour Pictures",
        "brand_color": "#0f766e",
        "logo_url": "https://cdn.example.com/logo.svg",
        "imprint_url": "https://example.com/imprint",
        "terms_url": "https://example.com/terms",
    }
    async with running(settings.changed(**brand), provider) as started:
        answer = await started.client.get("/")
        page = Page(await answer.get_data(as_text=True))
        assert "Harbour Pictures" in page.words
        assert brand["logo_url"] in page.values("src")
        assert (
            "img-src 'self' data: blob: https://cdn.example.com;"
            in (answer.headers["Content-Security-Policy"])
        )
        assert {brand["imprint_url"], brand["terms_url"], "/brand.css"} <= set(page.values("href"))
        sheet = await started.client.get("/brand.css")
        assert "--accent:#0f766e" in await sheet.get_data(as_text=True)
        assert sheet.headers["Content-Type"] == "text/css; charset=utf-8"


async def test_a_plugins_wallet_is_loaded_by_the_page_of_an_offer_alone(settings, provider):
    wallet = {"wallet_script": "/wc/wallet.js", "wallet_origins": ("wss://relay.example.com",)}
    async with running(settings.changed(**wallet), provider) as started:
        for path, is_loaded in (("/play/picture", True), ("/", False)):
            answer = await started.client.get(path)
            page = Page(await answer.get_data(as_text=True))
            assert ("/wc/wallet.js" in page.values("src")) is is_loaded
            policy = answer.headers["Content-Security-Policy"]
            assert ("connect-src 'self' wss://relay.example.com;" in policy) is is_loaded


@pytest.fixture
def without_gas(settings, chain):
    """Settings whose settlement key has no ether, so x402 is off and a transfer works."""
    return settings.changed(settlement_key=new_account().key.hex())


async def test_while_only_transfers_work_the_form_is_open_and_says_so(without_gas, provider):
    async with running(without_gas, provider) as started:
        await started.services.settlements.obstacles.refresh()
        page = await get_page(started, "/play/picture")
        answer = await started.client.post("/api/x402/picture", json={"prompt": "a boat"})
        body = await answer.get_json()
    assert "By transfer only." in page.words
    assert "Off sale now" not in page.words
    assert ("fieldset", {"disabled": None}) not in page.tags
    assert (answer.status_code, body["accepts"]) == (402, [])
    assert body["transfer"] == {
        "amount": "20000",
        "payTo": WALLET,
        "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "network": "eip155:8453",
    }


async def test_a_stopped_x402_closes_the_form_where_a_transfer_needs_a_signature(
    without_gas, provider
):
    async with running(without_gas.changed(require_payer_signature=True), provider) as started:
        await started.services.settlements.obstacles.refresh()
        page = await get_page(started, "/play/picture")
    assert "By transfer only." in page.words
    assert "The code for curl shows how." in page.words
    assert ("fieldset", {"disabled": None}) in page.tags


async def test_pictures_may_come_from_the_bucket(settings, provider):
    bucket = {
        "outputs_url": "s3://my-bucket",
        "outputs_endpoint": "https://s3.example.com",
        "outputs_access_key_id": "key",
        "outputs_secret_access_key": "secret",
    }
    async with running(settings.changed(**bucket), provider) as started:
        answer = await started.client.get("/play/picture")
    assert " https://s3.example.com;" in answer.headers["Content-Security-Policy"]


async def test_a_page_that_has_not_changed_is_not_sent_again(gateway):
    first = await gateway.client.get("/")
    assert first.headers["Cache-Control"] == "no-cache"
    again = await gateway.client.get("/", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304
    assert await again.get_data() == b""


async def test_files_are_kept_for_ever_and_sent_small(gateway):
    page = await get_page(gateway, "/play/picture")
    files = {path for path in page.values("src") + page.values("href") if path.startswith("/web/")}
    assert len(files) >= 3
    for path in files:
        answer = await gateway.client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        data = await answer.get_data()
        if answer.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        assert data == (WEB / path.removeprefix("/web/")).read_bytes()
        plain = await gateway.client.get(path)
        assert await plain.get_data() == data


@pytest.mark.parametrize(
    "name", ["manifest.json", "..%2Fllms.txt", "nothing.js", "%2Fetc%2Fpasswd"]
)
async def test_no_other_file_is_sent(gateway, name):
    assert (await gateway.client.get(f"/web/{name}")).status_code == 404


async def test_the_first_load_and_the_later_chunks_are_small(gateway):
    built = json.loads((WEB / "manifest.json").read_text())
    for path in ("/", "/play/picture", "/play/document-parser", "/purchases"):
        answer = await gateway.client.get(path)
        text = await answer.get_data()
        first = set(re.findall(r'/web/([\w.-]+\.(?:js|css))"', text.decode()))
        assert built["styles.css"] in first
        # A module that is imported at once has its name after `from`.
        unread = list(first)
        while unread:
            script = (WEB / unread.pop()).read_text()
            found = set(re.findall(r'(?:from|import)"\./([\w.-]+)"', script))
            unread += found - first
            first |= found
        sizes = [len(gzip.compress((WEB / name).read_bytes())) for name in first]
        assert sum(sizes) + len(gzip.compress(text)) <= FIRST_LOAD
    for chunk in ("purse.js", "markdown.js", "qr.js"):
        assert len(gzip.compress((WEB / built[chunk]).read_bytes())) <= LATER


async def test_what_is_bundled_comes_with_its_licences(gateway):
    page = await get_page(gateway, "/")
    path = next(link for link in page.values("href") if "licenses" in link)
    text = await (await gateway.client.get(path)).get_data(as_text=True)
    for package in ("micro-eth-signer", "@noble/curves", "markdown-it", "uqr"):
        assert f"{package} " in text
    assert "MIT" in text


async def test_an_endpoint_without_a_result_shows_none(settings, provider):
    async with running(settings, more=[ScriptedPlugin(provider)]) as started:
        form = await get_page(started, "/play/picture")
    assert "What you get" in form.words
    assert "Made here" not in form.words
    assert not form.values("alt")
