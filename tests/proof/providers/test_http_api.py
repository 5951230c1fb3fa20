"""Declared HTTP APIs against a server on this machine: requests, answers and limits."""

import json

import pytest
from click.testing import CliRunner
from vendor_site import PlainJob
from werkzeug import Response

import gateway_http
from gateway import (
    AccountProblem,
    Attachment,
    GenerationRequest,
    HandleLost,
    InvalidInput,
    JobFailed,
    Link,
    LinkDead,
    Pending,
    RateLimited,
    ResultMissing,
    ResultUnusable,
    SettingsError,
    SubmitUncertain,
    Transient,
)
from gateway.catalog.health import problem_of
from gateway.cli import main
from gateway.plugins.manager import PluginManager
from gateway_http import api
from gateway_testing.fakes.chain import settings_of

KEY = "key-that-is-never-to-be-seen"
HOSTILE = '", "admin": true, "x": "${ACME_KEY} {task} \u2028'
PLAIN = """
title = "Words"
capability = "words"
price = "0.01"
request.url = "URL/make?kind=text"
request.json = { input = "{prompt}", task = "{task}", seed = "{seed}" }
result = { kind = "text", path = "choices[0].text" }
"""
JOB = """
title = "Clip"
capability = "clips"
price = "0.25"
request.url = "URL/jobs"
request.json = { prompt = "{prompt}" }
job = { id = "id", poll = "/jobs/{id}", state = "state", done = ["done"], failed = ["failed"], progress = "percent", progress_of = 100 }
result = { kind = "file", get = "/jobs/{id}/content", media_type = "video/mp4" }
"""  # noqa: E501 - as in a file
FORM = """
title = "Dictation"
capability = "dictation"
price = "0.01"
files = [".wav"]
request = { url = "URL/inference", form = { format = "json", words = "{prompt}", fast = true }, file_field = "file" }
result = { kind = "json", path = "found" }
"""  # noqa: E501 - as in a file


@pytest.fixture
async def declared(httpserver, tmp_path, monkeypatch):
    """Yield a function that returns the provider of a text, and a call of its `submit`."""
    monkeypatch.setenv("ACME_KEY", KEY)
    httpserver.no_handler_status_code = 404
    folder = tmp_path / "endpoints"
    folder.mkdir()
    opened = []

    def make(text):
        url = httpserver.url_for("").rstrip("/")
        (folder / "acme.toml").write_text(text.replace("URL", url))
        settings = settings_of(
            {"http_endpoints": str(folder)}, wallet="0x" + "11" * 20, data_dir=tmp_path
        )
        gateway_http.register_endpoints(lambda *pair: opened.append(pair), settings)
        endpoint, provider = opened[-1]

        async def submit(prompt="a boat", file=None):
            request = GenerationRequest(prompt=prompt, attachment=file)
            return await provider.submit(request, PlainJob(endpoint))

        return provider, submit

    make.folder = folder
    yield make
    for _, provider in opened:
        await provider.close()


def answers(httpserver, *replies, path="/make", method="POST"):
    """Answer a path with each reply in turn; the last one is repeated."""
    left, seen = list(replies), []

    def answer(request):
        seen.append(request)
        reply = left.pop(0) if len(left) > 1 else left[0]
        return reply if isinstance(reply, Response) else Response(json.dumps(reply), 200)

    httpserver.expect_request(path, method=method).respond_with_handler(answer)
    return seen


# -- requests


async def test_a_buyers_words_stay_one_text(httpserver, declared):
    seen = answers(httpserver, {"choices": [{"text": "words"}]})
    _, submit = declared(PLAIN + 'request.headers.Authorization = "Bearer ${ACME_KEY}"\n')
    result = await submit(HOSTILE)
    assert (result.text, result.text_media_type) == ("words", "text/plain")
    (request,) = seen
    sent = request.get_json()
    assert sent["input"] == HOSTILE
    assert sent["task"] == "t-1"
    assert set(sent) == {"input", "task", "seed"}
    assert isinstance(sent["seed"], int)
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.query_string == b"kind=text"


async def test_a_form_carries_the_buyers_file_without_its_name(httpserver, declared):
    seen = answers(httpserver, {"found": {"words": ["ö"]}}, path="/inference")
    _, submit = declared(FORM)
    result = await submit(HOSTILE, Attachment(name="my secret.wav", data=b"RIFF"))
    assert json.loads(result.text) == {"words": ["ö"]}
    (request,) = seen
    assert request.form.to_dict() == {"format": "json", "words": HOSTILE, "fast": "true"}
    file = request.files["file"]
    assert (file.filename, file.read()) == ("file.wav", b"RIFF")
    request.close()


async def test_a_refused_text_is_no_request(declared):
    provider, _ = declared(PLAIN.replace("price =", 'refused = ["<lora:"]\nprice ='))
    with pytest.raises(InvalidInput, match=r"A prompt may not contain <lora:\."):
        provider.validate(GenerationRequest(prompt="a <LoRA:x:1>"), None)


# -- answers


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, AccountProblem),
        (422, AccountProblem),
        (401, AccountProblem),
        (404, AccountProblem),
        (429, RateLimited),
        (302, AccountProblem),
        (500, SubmitUncertain),
    ],
)
async def test_a_status_is_the_operators_problem_or_open(httpserver, declared, status, error):
    elsewhere = answers(httpserver, {}, path="/elsewhere")
    reply = Response("no", status, headers={"Location": "/elsewhere"})
    answers(httpserver, reply)
    _, submit = declared(PLAIN)
    with pytest.raises(error) as caught:
        await submit()
    assert not elsewhere
    if status in (400, 422, 404):
        assert caught.value.scope == "model"


async def test_a_declared_status_is_the_buyers_mistake(httpserver, declared):
    answers(httpserver, Response("no", 400))
    _, submit = declared(PLAIN.replace("price =", "invalid = [400]\nprice ="))
    with pytest.raises(InvalidInput):
        await submit()


@pytest.mark.parametrize("answer", [{}, {"choices": []}, {"choices": [{"text": 7}]}, [], None])
async def test_an_answer_without_a_result_is_none(httpserver, declared, answer):
    answers(httpserver, answer)
    _, submit = declared(PLAIN)
    with pytest.raises(ResultMissing):
        await submit()


async def test_an_answer_has_a_limit(httpserver, declared, monkeypatch):
    monkeypatch.setattr(api, "MAX_ANSWER_BYTES", 1000)
    monkeypatch.setattr(api, "MAX_TEXT_CHARS", 100)
    answers(httpserver, {"choices": [{"text": "a" * 101}]}, {"choices": [{"text": "a" * 1000}]})
    _, submit = declared(PLAIN)
    with pytest.raises(ResultUnusable, match="longer than what is sold"):
        await submit()
    with pytest.raises(SubmitUncertain):
        await submit()


async def test_a_file_is_no_page_and_no_error(httpserver, declared):
    file = 'result = { kind = "file", media_type = "audio/mpeg" }'
    text = PLAIN.replace('result = { kind = "text", path = "choices[0].text" }', file)
    answers(
        httpserver,
        Response(b"ID3", 200, content_type="application/octet-stream"),
        Response("<html>", 200, content_type="text/html; charset=utf-8"),
        Response(b"", 200, content_type="audio/mpeg"),
    )
    _, submit = declared(text)
    (output,) = (await submit()).outputs
    assert (output.data, output.media_type) == (b"ID3", "audio/mpeg")
    with pytest.raises(SubmitUncertain):
        await submit()
    with pytest.raises(ResultMissing):
        await submit()


async def test_base64_and_links_are_outputs(httpserver, declared):
    encoded = PLAIN.replace('"text", path', '"base64", media_type = "image/png", path')
    answers(
        httpserver,
        {"choices": [{"text": "data:image/png;base64,aGk="}]},
        {"choices": [{"text": "%%%"}]},
        {"choices": [{"text": "https://files.example/a.png"}]},
    )
    _, submit = declared(encoded)
    (output,) = (await submit()).outputs
    assert output.data == b"hi"
    with pytest.raises(ResultUnusable):
        await submit()
    _, submit = declared(encoded.replace("base64", "link"))
    assert (await submit()).outputs == (
        Link(url="https://files.example/a.png", media_type="image/png"),
    )


# -- jobs


async def test_a_job_is_polled_to_its_file(httpserver, declared):
    answers(httpserver, {"id": 17}, path="/jobs")
    answers(
        httpserver,
        {"state": "running", "percent": 34},
        {"state": "odd", "percent": "many"},
        {"state": "failed"},
        {"state": "done"},
        path="/jobs/17",
        method="GET",
    )
    file = Response(b"film", 200, content_type="video/mp4")
    answers(
        httpserver, Response("", 404), Response("{}", 200, content_type="application/json"), file,
        path="/jobs/17/content", method="GET",
    )  # fmt: skip
    provider, submit = declared(JOB)
    handle = await submit()
    assert handle.id == "17"
    assert await provider.poll(handle, None) == Pending(progress=0.34)
    assert await provider.poll(handle, None) == Pending()
    with pytest.raises(JobFailed):
        await provider.poll(handle, None)
    with pytest.raises(LinkDead):
        await provider.poll(handle, None)
    with pytest.raises(SubmitUncertain):
        await provider.poll(handle, None)
    (output,) = (await provider.poll(handle, None)).outputs
    assert output.data == b"film"


@pytest.mark.parametrize("answer", [{}, {"id": ".."}, {"id": "a/b"}, {"id": "a..b"}, {"id": True},
                                    {"id": "a?b"}, {"id": "a" * 201}, {"id": "."}])  # fmt: skip
async def test_a_jobs_id_is_never_part_of_another_address(httpserver, declared, answer):
    answers(httpserver, answer, path="/jobs")
    _, submit = declared(JOB)
    with pytest.raises(SubmitUncertain, match="named no job"):
        await submit()


async def test_a_poll_that_fails_proves_nothing(httpserver, declared):
    answers(
        httpserver, Response("", 404), Response("", 400), Response("no JSON", 200),
        path="/jobs/7", method="GET",
    )  # fmt: skip
    answers(httpserver, {"id": "7"}, path="/jobs")
    provider, submit = declared(JOB)
    handle = await submit()
    with pytest.raises(HandleLost):
        await provider.poll(handle, None)
    for _ in range(2):
        with pytest.raises(Transient):
            await provider.poll(handle, None)


async def test_a_job_is_not_looked_for_at_another_address(httpserver, declared):
    answers(httpserver, {"id": "7"}, path="/jobs")
    _, submit = declared(JOB)
    handle = await submit()
    seen = answers(httpserver, {"state": "done"}, path="/other/7", method="GET")
    moved, _ = declared(JOB.replace('poll = "/jobs', 'poll = "/other'))
    with pytest.raises(HandleLost, match="no longer names"):
        await moved.poll(handle, None)
    assert seen == []


# -- health


async def test_health_asks_for_the_declared_path(httpserver, declared):
    answers(httpserver, {}, Response("", 500), Response("", 404), path="/up", method="GET")
    provider, _ = declared(PLAIN.replace("price =", 'health = "/up"\nprice ='))
    await provider.health()
    with pytest.raises(Transient):
        await provider.health()
    with pytest.raises(AccountProblem):
        await provider.health()


async def test_without_a_path_any_answer_is_health(httpserver, declared):
    provider, _ = declared(PLAIN)
    await provider.health()
    answers(httpserver, Response("", 401), path="/", method="GET")
    with pytest.raises(AccountProblem):
        await provider.health()
    httpserver.stop()
    with pytest.raises(Transient):
        await provider.health()
    httpserver.start()


async def test_a_key_that_the_server_quotes_is_not_shown(httpserver, tmp_path, declared):
    answers(httpserver, Response(f'{{"error": "{KEY} is wrong"}}', 401), path="/", method="GET")
    declared(PLAIN + 'request.headers.Authorization = "Bearer ${ACME_KEY}"\n')
    values = {"http_endpoints": str(declared.folder)}
    settings = settings_of(values, wallet="0x" + "11" * 20, data_dir=tmp_path)
    catalog = PluginManager().catalog(settings)
    problem = await problem_of(catalog.find("acme").upstream)
    await catalog.close()
    assert "401" in problem
    assert KEY not in problem


# -- gateway http check


@pytest.fixture
def check(declared, monkeypatch):
    """Return a function that runs the command on a declaration."""

    def run(text, *options):
        declared(text)
        monkeypatch.setenv("GATEWAY_HTTP_ENDPOINTS", str(declared.folder))
        return CliRunner().invoke(main, ["http", "check", "acme", *options])

    return run


def test_a_check_shows_the_value_of_each_path(httpserver, check, tmp_path):
    answers(httpserver, {"choices": [{"text": "some\x1b[2Jwords"}]})
    out = tmp_path / "made.txt"
    found = check(PLAIN, "--out", str(out))
    assert found.exit_code == 0
    assert 'choices[0].text: "some [2Jwords"' in found.stdout
    assert "Result: text/plain, 13 characters" in found.stdout
    assert out.read_text() == "some\x1b[2Jwords"


def test_a_check_shows_what_is_not_there(httpserver, check):
    answers(httpserver, {"choices": []}, Response("voice is unknown", 400))
    found = check(PLAIN)
    assert found.exit_code == 1
    assert "choices[0].text: nothing there" in found.stdout
    assert "ResultMissing" in found.stderr
    found = check(PLAIN)
    assert "voice is unknown" in found.stdout
    assert KEY not in found.output


def test_a_check_polls_a_job(httpserver, check):
    answers(httpserver, {"id": "7"}, path="/jobs")
    answers(
        httpserver, {"state": "running", "percent": 5}, {"state": "done"},
        path="/jobs/7", method="GET",
    )  # fmt: skip
    answers(
        httpserver, Response(b"film", 200, content_type="video/mp4"),
        path="/jobs/7/content", method="GET",
    )  # fmt: skip
    found = check(JOB)
    assert found.exit_code == 0, found.output
    assert "percent: 5" in found.stdout
    assert "Result: video/mp4, 4 bytes" in found.stdout


def test_a_check_names_the_way_out_of_a_mistake(check, declared):
    assert "--file example.wav" in check(FORM).stderr
    # Another file may be wrong.
    (declared.folder / "wrong.toml").write_text("price = 2026-01-01")
    again = CliRunner().invoke(main, ["http", "check", "acme"])
    assert "--file example.wav" in again.stderr
    (declared.folder / "wrong.toml").unlink()
    other = CliRunner().invoke(main, ["http", "check", "other"])
    assert "has no file other.toml. It has: acme." in other.stderr


def test_a_wrong_file_stops_the_start(declared):
    with pytest.raises(SettingsError, match="a buyer's value may be in the body only"):
        declared(PLAIN.replace("/make", "/{prompt}"))
