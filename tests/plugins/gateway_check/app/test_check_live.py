"""`gateway check --live`: real adapters, fake vendors, and a file of shapes without content."""

import asyncio
import base64
import io
import json

import attrs
import pytest
from click.testing import CliRunner
from PIL import Image
from pytest_httpserver import HTTPServer
from werkzeug import Response

from gateway.cli import main
from gateway.errors import SettingsError
from gateway.outputs.downloads import Downloader
from gateway.vendors import Outbound
from gateway_check import generating
from gateway_check.live_files import smallest_file
from gateway_testing.fakes.api import picture_of
from gateway_vendors.shapes import record_shapes, shape_of
from tests.bundled_endpoints import bundled_endpoints
from tests.gateway.refunds.test_refund_commands import environment

PNG = picture_of(1024, 1024)
SECRET = "sk-or-v1-never-to-be-seen"
ENTRY = {"b64_json": base64.b64encode(PNG).decode(), "media_type": "image/png"}
PICTURE = {"created": 1, "data": [ENTRY], "usage": {"cost": 0.0171}}
SLUG = "openrouter-seedream-5-flash"


@pytest.fixture
def vendor():
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def check(settings, vendor, tmp_path):
    """Run the command in its own folder; return its output and the file, if there is one."""

    def run(*words, answers=None, **options):
        for path, (status, body) in (answers or {"/images": (200, PICTURE)}).items():
            vendor.expect_request(path).respond_with_response(
                Response(json.dumps(body), status, content_type="application/json")
            )
        here = {
            "GATEWAY_OPENROUTER_API_KEY": SECRET,
            "GATEWAY_OPENROUTER_BASE_URL": vendor.url_for("").rstrip("/"),
            "GATEWAY_OPENROUTER_MODELS": SLUG,
        }
        file = tmp_path / "answers.json"
        done = CliRunner().invoke(
            main,
            ["check", "--json", "--evidence", str(file), *words],
            env=environment(settings) | here,
            **options,
        )
        return done, json.loads(file.read_text()) if file.exists() else None

    return run


@pytest.mark.parametrize(("made", "result"), [(PNG, "ok"), (b"<html>", "wrong")])
def test_an_edit_is_made_of_a_sample_and_what_comes_must_be_a_picture(
    check, vendor, monkeypatch, made, result
):
    monkeypatch.setenv("GATEWAY_OPENAI_BASE_URL", vendor.url_for("").rstrip("/"))
    monkeypatch.setenv("GATEWAY_OPENAI_EDIT_MODEL", "edit-1")
    answer = {"data": [{"b64_json": base64.b64encode(made).decode()}]}
    done, _ = check(
        "--live", "openai-image-edit", "--yes", answers={"/images/edits": (200, answer)}
    )
    (row,) = json.loads(done.stdout)
    assert row["result"] == result
    ((request, _),) = vendor.log
    request.close()


def test_it_generates_once_and_says_what_came_and_what_was_billed(check, vendor):
    done, evidence = check("--live", SLUG, "--yes")
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    assert row["what came"].startswith("image/png of ")
    assert (row["result"], row["the vendor billed"]) == ("ok", "$0.0171")
    assert "Your vendors bill about $0.0190 for 1 generation." in done.stderr
    ((request, _),) = vendor.log
    assert (request.path, request.json["resolution"]) == ("/images", "1K")
    (made,) = evidence["generations"]
    assert (made["endpoint"], made["cost_micros"]) == (SLUG, 17_100)
    shape = {
        "created": "number",
        "data": [{"b64_json": "text", "media_type": "image/png"}],
        "usage": {"cost": "number"},
    }
    assert made["answers"] == [{"method": "POST", "status": 200, "body": shape}]


@pytest.mark.parametrize("answer", ["n\n", "", "\n"])
def test_without_a_yes_nothing_is_generated(check, vendor, answer):
    done, evidence = check("--live", SLUG, input=answer)
    assert done.exit_code == 1
    assert "Generate, at this cost?" in done.stderr
    assert vendor.log == []
    assert evidence is None


def test_a_yes_at_the_question_is_enough(check):
    done, evidence = check("--live", SLUG, input="y\n")
    assert done.exit_code == 0
    assert evidence is not None


def test_a_refusal_is_told_and_holds_neither_key_nor_content(check):
    error = {"error": {"code": 402, "message": f"{SECRET} has no credit", "type": "payment"}}
    done, evidence = check("--live", SLUG, "--yes", answers={"/images": (402, error)})
    assert done.exit_code == 1
    (row,) = json.loads(done.stdout)
    assert row["result"] == "wrong"
    assert row["what came"].startswith("AccountProblem")
    assert SECRET not in done.output + json.dumps(evidence)
    (made,) = evidence["generations"]
    shape = {"error": {"code": "number", "message": "text", "type": "payment"}}
    assert made["answers"] == [{"method": "POST", "status": 402, "body": shape}]


def test_a_slug_that_is_not_on_sale_is_named_with_those_that_are(check, vendor):
    done, _ = check("--live", "openrouter-nothing", "--yes")
    assert done.exit_code == 1
    assert "openrouter-nothing is not on sale" in done.stderr
    assert SLUG in done.stderr
    assert vendor.log == []


def test_a_file_that_cannot_be_written_keeps_the_rows(check):
    done, _ = check("--live", SLUG, "--yes", "--evidence", "/proc/none/x.json")
    assert "cannot be written" in done.stderr
    assert json.loads(done.stdout)[0]["result"] == "ok"


def test_a_job_is_polled_and_its_link_fetched(check, settings, vendor, monkeypatch, tmp_path):
    """BFL: a task, two different polls, a link to the picture, and a cost in credits."""
    monkeypatch.setattr(generating, "_POLL_S", 0.01)

    async def download(self, url, *, timeout_s=60.0):
        assert url == "https://delivery.bfl.ai/a.png"
        return PNG

    monkeypatch.setattr(Downloader, "download", download)
    base = vendor.url_for("").rstrip("/")
    begun = {"id": "a1", "polling_url": f"{base}/v1/get_result?id=a1"}
    ready = {"status": "Ready", "result": {"sample": "https://delivery.bfl.ai/a.png"}, "cost": 1.5}
    vendor.expect_request("/v1/flux-2-klein-9b", method="POST").respond_with_json(begun)
    vendor.expect_oneshot_request("/v1/get_result").respond_with_json({"status": "Pending"})
    vendor.expect_oneshot_request("/v1/get_result").respond_with_json(ready)
    here = {
        "GATEWAY_BFL_API_KEY": SECRET,
        "GATEWAY_BFL_BASE_URL": base,
        "GATEWAY_BFL_MODELS": "bfl-flux-2-klein-9b",
    }
    file = tmp_path / "bfl.json"
    words = ["check", "--json", "--live", "bfl-flux-2-klein-9b", "--yes", "--evidence", str(file)]
    done = CliRunner().invoke(main, words, env=environment(settings) | here)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["the vendor billed"] == "$0.0150"
    answers = json.loads(file.read_text())["generations"][0]["answers"]
    assert [answer["body"].get("status") for answer in answers] == [None, "Pending", "Ready"]
    assert "delivery.bfl.ai" not in file.read_text()


def test_a_parser_gets_a_page_with_a_line_to_read(check):
    """The embedded parser reads the PDF, which bills nothing."""
    done, evidence = check("--live", "document-parser", "--yes")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["what came"].endswith("characters of text")
    assert evidence["generations"][0]["answers"] == []


def test_an_extraction_gets_a_question_and_must_answer_with_json(check, monkeypatch):
    monkeypatch.setenv("GATEWAY_SANDBOX", "true")
    done, _ = check("--live", "sandbox-extract", "--yes")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["what came"].endswith("characters of text")


@pytest.fixture
def parser():
    return bundled_endpoints()["document-parser"]


def test_the_picture_to_edit_is_a_picture(parser):
    endpoint = attrs.evolve(parser, slug="edit", file_extensions=(".jpg", ".png"))
    file = smallest_file(endpoint)
    assert file.name == "live.png"
    with Image.open(io.BytesIO(file.data)) as picture:
        assert (picture.format, picture.size, picture.mode) == ("PNG", (512, 512), "RGB")
        assert picture.getpixel((511, 511)) == (0x40, 0x80, 0xC0)


def test_an_endpoint_without_a_file_of_ours_is_named(parser):
    endpoint = attrs.evolve(parser, slug="talk", file_extensions=(".wav",))
    with pytest.raises(SettingsError, match="talk takes no PDF"):
        smallest_file(endpoint)


# -- shapes


SHAPES = {
    "names with a number": ({"b64_json": "x", "url2": 1}, {"b64_json": "text", "url2": "number"}),
    "an id": ({"a1b2c3d4-e5f6": 1}, {"(a value)": "number"}),
    "a name that is a value": ({"0a1b-77": 1}, {"(a value)": "number"}),
    "a state with a secret's look": ({"status": "sk-1234567890"}, {"status": "text"}),
    "long lists": ([{"a": 1}, {"b": 2}], [{"a": "number"}]),
    "nothing": ({"a": None, "b": [], "c": True}, {"a": None, "b": [], "c": True}),
    "prompt beside a state": (
        {"type": "image", "prompt": "a boat"},
        {"type": "image", "prompt": "text"},
    ),
}


@pytest.mark.parametrize(("value", "shape"), SHAPES.values(), ids=SHAPES)
def test_a_shape_holds_names_and_kinds_alone(value, shape):
    assert shape_of(value) == shape


def test_a_deep_or_wide_answer_has_a_bounded_shape():
    deep: object = "x"
    for _ in range(200):
        deep = {"a": deep}
    assert len(json.dumps(shape_of(deep))) < 200
    assert len(shape_of({f"k{'a' * (n % 39)}{'b' * (n // 39)}": 1 for n in range(1000)})) <= 60


def test_answers_are_noted_only_while_somebody_collects(vendor):
    vendor.expect_request("/x").respond_with_data("<html>")

    async def ask():
        outbound = Outbound(vendor.url_for("").rstrip("/"))
        try:
            await outbound.request("GET", "/x")
            with record_shapes() as found:
                for _ in range(3):
                    await outbound.request("GET", "/x")
            await outbound.request("GET", "/x")
        finally:
            await outbound.close()
        return found

    assert asyncio.run(ask()) == [{"method": "GET", "status": 200, "body": "not JSON"}]
