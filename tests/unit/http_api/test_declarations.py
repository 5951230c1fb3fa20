"""Files of HTTP endpoints: their offers, and the sentence about each mistake."""

import pytest

from gateway import GenerationRequest, SettingsError
from tests.unit.http_api.conftest import PHOTO

SPEECH = """
title = "Speech"
capability = "reading-aloud"
price = "0.005"
unit_price = { unit = "1,000 characters", price = "0.01", most = 4 }
request.url = "https://speech.example/v1/speech?format=mp3"
request.json = { input = "{prompt}" }
result = { kind = "file", media_type = "audio/mpeg" }
declares = { result = "sound", title = "Reading" }
"""
JOB = """
title = "Clip"
capability = "moving-pictures"
price = "0.25"
request.url = "http://127.0.0.1:30010/v1/videos"
request.json = { prompt = "{prompt}" }
job = { id = "id", poll = "/v1/videos/{id}", state = "status", done = ["completed"] }
result = { kind = "file", get = "/v1/videos/{id}/content", media_type = "video/mp4" }
"""
DICTATION = """
title = "Dictation"
capability = "writing-down"
price = "0.01"
price_per_page = "0.002"
max_pages = 30
files = [".pdf"]
request = { url = "http://127.0.0.1:8080/inference", form = { kind = "json" }, file_field = "file" }
result = { kind = "text", path = "text" }
declares = { result = "text", file = "document", prompt = "absent" }
"""


def test_a_file_is_an_endpoint_under_its_name(catalog_of):
    (photo,) = catalog_of(small_photo=PHOTO).values()
    endpoint = photo.endpoint
    assert (endpoint.slug, endpoint.price_units) == ("small-photo", 20_000)
    assert endpoint.required_fields == ("prompt",)
    assert endpoint.aspect_ratio.default == "1:1"
    assert endpoint.output_format.values == ("png", "jpg", "webp")
    assert photo.sells_now


def test_a_resolution_that_is_gone_is_made_in_no_other_size(catalog_of):
    text = PHOTO + '[sizes]\n"S" = 512\n'
    about = catalog_of(photo=text)["photo"].upstream.provider.about
    assert about.size_of("S", "1:1") == (512, 512)
    for gone in ("HD", None):
        with pytest.raises(KeyError):
            about.size_of(gone, "1:1")


def test_an_editors_lock_is_no_file(catalog_of, folder):
    (folder / ".#photo.toml").symlink_to("somebody@host.1")
    assert list(catalog_of(photo=PHOTO)) == ["photo"]


@pytest.mark.parametrize("values", [("1", "true"), ("1", "1.0"), ("[1, 2]", "[2, 1]")])
def test_another_body_is_another_provider(catalog_of, values):
    one, other = (
        catalog_of(photo=PHOTO.replace("{ prompt", f"{{ x = {value}, prompt"))["photo"]
        for value in values
    )
    assert one.upstream.provider != other.upstream.provider
    title = PHOTO.replace('"Photo"', '"Other"')
    sold, renamed = catalog_of(photo=PHOTO)["photo"], catalog_of(photo=title)["photo"]
    assert sold.upstream.provider == renamed.upstream.provider


def test_without_a_folder_nothing_is_on_sale(catalog_of, folder):
    assert catalog_of() == {}
    folder.rmdir()
    with pytest.raises(SettingsError, match=r"GATEWAY_HTTP_ENDPOINTS names .*, which is no folder"):
        catalog_of()


def test_a_resolution_has_its_own_price_and_size(catalog_of):
    text = PHOTO + '[sizes]\n"1K" = 1024\n"2K" = 1536\n[prices]\n"2K" = "0.05"\n'
    (photo,) = catalog_of(photo=text).values()
    prices = {
        name: photo.endpoint.price_of(GenerationRequest(resolution=name)) for name in ("1K", "2K")
    }
    assert prices == {"1K": 20_000, "2K": 50_000}
    about = photo.upstream.provider.about
    assert about.size_of("1K", "16:9") == (1360, 768)
    assert about.size_of("2K", "1:1") == (1536, 1536)


def test_a_price_counts_characters_or_pages(catalog_of):
    found = catalog_of(speech=SPEECH, dictation=DICTATION)
    speech, dictation = found["speech"].endpoint, found["dictation"].endpoint
    assert speech.price_of(GenerationRequest(prompt="a" * 1001)) == 20_000
    assert speech.price_of(GenerationRequest(prompt="a")) == 10_000
    assert dictation.price_of(GenerationRequest(pages=7)) == 14_000
    assert dictation.required_fields == ("fileBase64", "fileName")


def test_a_file_may_declare_its_capability(catalog_of):
    found = catalog_of(speech=SPEECH, clip=JOB)
    assert found["speech"].endpoint.declared.title == "Reading"
    assert found["speech"].sells_now
    # No plugin declares this one, so nothing would check its results.
    assert not found["clip"].sells_now
    assert "moving-pictures" in found["clip"].obstacle


def test_a_declaration_that_stays_is_the_same_capability(catalog_of):
    found = [catalog_of(speech=SPEECH)["speech"].endpoint.declared for _ in range(2)]
    assert found[0] == found[1]


def test_two_files_cannot_declare_one_capability_differently(catalog_of):
    other = SPEECH.replace('title = "Reading"', 'title = "Talk"')
    with pytest.raises(SettingsError, match=r"a\.toml and b\.toml declare reading-aloud diff"):
        catalog_of(a=SPEECH, b=other)


def test_a_secret_comes_from_the_environment_into_headers_only(catalog_of, monkeypatch):
    monkeypatch.setenv("ACME_KEY", "never-to-be-seen")
    text = PHOTO + 'request.headers.Authorization = "Bearer ${ACME_KEY}"\n'
    (photo,) = catalog_of(photo=text).values()
    provider = photo.upstream.provider
    assert provider.outbound.headers == {"Authorization": "Bearer never-to-be-seen"}
    assert "never-to-be-seen" not in f"{photo!r} {provider!r}"


def test_a_secret_that_the_log_would_show_is_refused(catalog_of, monkeypatch):
    monkeypatch.setenv("ACME_KEY", "qwxyz")
    with pytest.raises(SettingsError, match="fewer than 8 characters") as caught:
        catalog_of(photo=PHOTO + 'request.headers.X = "${ACME_KEY}"\n')
    assert "qwxyz" not in str(caught.value)


def test_providers_that_ask_alike_are_equal(catalog_of):
    def provider_of(text):
        return catalog_of(photo=text)["photo"].upstream.provider

    first = provider_of(PHOTO)
    assert provider_of(PHOTO.replace("0.02", "0.03").replace("Photo", "A photo")) == first
    assert provider_of(PHOTO.replace("7860", "7861")) != first


def replaced(old, new, text=PHOTO):
    assert old in text
    return text.replace(old, new)


URL = "http://127.0.0.1:7860/make"
MISTAKES = {
    "place in url": (replaced(URL, f"{URL}/{{prompt}}"), r"request\.url has the place \{prompt\}"),
    "place in header": (PHOTO + 'request.headers.X = "{prompt}"\n', r"headers\.X has the place"),
    "place in poll": (
        replaced('s/{id}"', 's/{prompt}"', JOB),
        r"job\.poll has the place \{prompt\}",
    ),
    "place in get": (replaced("/{id}/c", "/{id}{task}/c", JOB), r"result\.get has the place"),
    "poll elsewhere": (
        replaced('"/v1/videos/{id}"', '"http://evil.example/{id}"', JOB),
        "on the server of url",
    ),
    "password in url": (replaced("http://", "http://me:pass@"), "belongs into request.headers"),
    "space in url": (replaced("/make", "/ma ke"), "request.url is no address"),
    "no address": (replaced("http://", "ftp://"), "request.url is no address"),
    "unknown place": (replaced("{prompt}", "{promt}"), r"\{promt\} is no place of a value"),
    "place as a key": (replaced("{ prompt =", '{ "{prompt}" ='), "is no place of a value"),
    "secret in the body": (replaced("{prompt}", "${ACME_KEY}"), "belongs into request.headers"),
    "secret in the url": (replaced("/make", "/${ACME_KEY}"), "belongs into request.headers"),
    "gateway's own secret": (
        PHOTO + 'request.headers.X = "${GATEWAY_SETTLEMENT_KEY}"\n',
        "GATEWAY_SETTLEMENT_KEY is a setting of the gateway",
    ),
    "secret not set": (PHOTO + 'request.headers.X = "${NO_SUCH_KEY}"\n', "NO_SUCH_KEY is not set"),
    "secret that the log shows": (PHOTO + 'request.headers.X = "${ACME}"\n', "must end in KEY"),
    "unknown key": (PHOTO + "prise = 1\n", "unknown field `prise`"),
    "price is a number": (replaced('"0.02"', "0.02"), "Expected `str`, got `float`"),
    "no price": (replaced('price = "0.02"\n', ""), "missing required field `price`"),
    "wrong price": (replaced("0.02", "-1"), "price: '-1' is not a positive USDC amount"),
    "no TOML": ("title", "is not right"),
    "no path": (replaced("images[0]", "images[*]"), "is no path such as images"),
    "no media type": (replaced(', media_type = "image/png"', ""), "media_type is missing"),
    "job without get": (
        replaced('get = "/v1/videos/{id}/content", ', "", JOB),
        "result.get names the address",
    ),
    "file without a field": (
        replaced(', file_field = "file"', "", DICTATION),
        "neither request.file_field nor",
    ),
    "field without files": (replaced('files = [".pdf"]\n', "", DICTATION), "files is empty"),
    "json and form": (PHOTO + 'request.form = { a = "b" }\n', "either json or form"),
    "nothing of the buyer": (
        replaced('{ prompt = "{prompt}", width = "{width}", height = "{height}" }', "{ a = 1 }"),
        "no place for a value",
    ),
    "price of no size": (PHOTO + '[prices]\n"4K" = "0.05"\n', r"prices\.4K"),
    "crooked ratio": (replaced("price =", "step = 256\nprice ="), "which is another ratio"),
    "a size without a price": (PHOTO + '[sizes]\n"1K" = 1024\n"2K" = 1536\n', "has no price of"),
    "date in the body": (replaced("{ prompt =", "{ day = 2026-01-01, prompt ="), "has a date"),
    "nan in the body": (replaced("{ prompt =", "{ x = nan, prompt ="), "inf or nan"),
    "table in a form": (replaced('kind = "json" }', "a = [1] }", DICTATION), r"form\.a is no text"),
    "empty refused text": (replaced("price =", 'refused = [""]\nprice ='), "every prompt contains"),
    "text that is sound": (
        replaced('kind = "text"', 'kind = "text", media_type = "audio/mpeg"', DICTATION),
        "kind text is no audio/mpeg",
    ),
    "picture that is text": (
        replaced('kind = "base64"', 'kind = "text"').replace(', media_type = "image/png"', ""),
        "makes picture, which result has not",
    ),
    "line break in a header": (PHOTO + 'request.headers.X = "a\\nb"\n', "cannot be sent"),
    "space in a header": (PHOTO + 'request.headers."X Y" = "a"\n', "cannot be sent"),
    "colon in a header": (PHOTO + 'request.headers."X:" = "a"\n', "cannot be sent"),
    "endless time": (replaced("price =", "timeout_s = inf\nprice ="), "timeout_s is no number"),
    "progress of nan": (
        replaced("done = [", "progress_of = nan, done = [", JOB),
        "progress_of is no number",
    ),
    "place in capitals": (replaced("{prompt}", "{Prompt}"), r"\{Prompt\} is no place"),
    "no prompt": (replaced("price =", "max_prompt_chars = 0\nprice ="), "max_prompt_chars is not"),
    "wrong status": (replaced("price =", "invalid = [500]\nprice ="), "from 400 to 499"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_that_names_the_file(catalog_of, name):
    text, words = MISTAKES[name]
    with pytest.raises(SettingsError, match=words) as caught:
        catalog_of(photo=text)
    sentence = str(caught.value)
    assert sentence.startswith("photo.toml")
    assert "\n" not in sentence


def test_a_mistake_that_the_gateway_finds_names_the_file(catalog_of):
    text = PHOTO + "[sizes]\n512 = 512\n"
    assert catalog_of(photo=text)["photo"].sells_now
    with pytest.raises(SettingsError, match=r"Bad Name\.toml is not right: endpoint 'Bad Name'"):
        catalog_of(**{"Bad Name": PHOTO})


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("http://127.0.0.1:7860/a/b?c=d", "http://127.0.0.1:7860", "/a/b?c=d"),
        ("https://api.example?c=d", "https://api.example", "/?c=d"),
        ("https://api.example", "https://api.example", "/"),
    ],
)
def test_an_address_is_a_server_and_a_path(catalog_of, url, origin, path):
    provider = catalog_of(photo=PHOTO.replace(URL, url))["photo"].upstream.provider
    assert (provider.outbound.base_url, provider.path) == (origin, path)
