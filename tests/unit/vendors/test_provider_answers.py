"""An API's responses: the meaning of the status, the parsed content, and allowed URLs."""

import base64
import datetime as dt
import email.utils
import json
import threading

import pytest

from gateway import (
    AccountProblem,
    Answer,
    InvalidInput,
    NotAccepted,
    RateLimited,
    SettingsError,
    SubmitUncertain,
    Transient,
)
from gateway.vendors import base_url

# -- the meaning of a status


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, Transient) for status in (408, 409, 500, 502, 503, 504, 529)),
        *((status, AccountProblem) for status in (301, 308, 401, 402, 403, 404)),
        *((status, InvalidInput) for status in (400, 413, 422)),
    ],
)
def test_a_status_stands_for_an_error(status, error):
    with pytest.raises(error) as raised:
        Answer(status=status, headers={}, body=b'"SECRET"').check()
    assert type(raised.value) is error
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize("body", [b"<html>Attention Required!</html>", b"error code: 1020"])
def test_a_firewalls_403_says_nothing_about_the_key(body):
    with pytest.raises(Transient):
        Answer(status=403, headers={}, body=body).check()
    with pytest.raises(SubmitUncertain):
        Answer(status=403, headers={}, body=body, may_be_billed=True).check()


@pytest.mark.parametrize("body", [b"", b" \n", b"{}", b'{"detail": "User is locked."}', b"null"])
def test_the_apis_own_403_is_about_the_account(body):
    with pytest.raises(AccountProblem) as raised:
        Answer(status=403, headers={}, body=body, may_be_billed=True).check()
    assert raised.value.scope == "vendor"


@pytest.mark.parametrize(("status", "scope"), [(401, "vendor"), (402, "vendor"), (404, "model")])
def test_what_does_not_exist_is_the_models_problem_and_a_key_the_vendors(status, scope):
    with pytest.raises(AccountProblem) as raised:
        Answer(status=status, headers={}, body=b"{}").check()
    assert raised.value.scope == scope


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        *(("7", 7.0), ("1.5", 1.5), (" 7 ", 7.0), ("", 10.0), ("-5", 10.0), ("1e9", 10.0)),
        *(("nan", 10.0), ("9" * 9, 10.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0), ("soon", 10.0)),
        ("Wed, 99 Oct 2026 07:28:00 GMT", 10.0),
    ],
)
def test_too_many_requests_says_how_long_to_wait(header, wait_s):
    with pytest.raises(RateLimited) as raised:
        Answer(status=429, headers={"retry-after": header}, body=b"").check()
    assert raised.value.retry_after_s == wait_s


def test_a_wait_may_be_a_date_or_milliseconds():
    date = email.utils.format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), usegmt=True)
    answer = Answer(status=503, headers={"retry-after": date}, body=b"")
    assert 0 < answer.retry_after_s <= 3600
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        headers = {name: "1500", "retry-after": "9"}
        assert Answer(status=503, headers=headers, body=b"").retry_after_s == 1.5
    assert Answer(status=503, headers={}, body=b"").retry_after_s is None


@pytest.mark.parametrize(
    ("status", "headers", "body", "is_refusal"),
    [
        (503, {}, b'{"error": "busy"}', True),
        (503, {"retry-after": "3"}, b"<html>", True),
        (503, {"retry-after": "soon"}, b"<html>", False),
        (503, {}, b"upstream connect error", False),
        (503, {}, b'"busy"', False),
        (503, {}, b"", False),
        (500, {"retry-after": "3"}, b"{}", False),
    ],
)
def test_only_the_vendors_own_answer_says_that_nothing_has_begun(status, headers, body, is_refusal):
    answer = Answer(status=status, headers=headers, body=body, may_be_billed=True)
    with pytest.raises(NotAccepted if is_refusal else SubmitUncertain) as raised:
        answer.check(not_begun=(503,))
    if is_refusal:
        assert raised.value.retry_after_s == answer.retry_after_s
    with pytest.raises(SubmitUncertain):
        answer.check()


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 520, 524, 529])
def test_an_error_of_the_server_leaves_open_whether_an_order_was_taken(status):
    answer = Answer(status=status, headers={}, body=b"", may_be_billed=True)
    for check in (answer.check, answer.check_poll):
        with pytest.raises(SubmitUncertain):
            check()


def test_success_stands_for_none():
    Answer(status=201, headers={}, body=b"").check()


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 200_000, b"\xff"])
def test_what_is_not_json_is_a_failure_of_the_provider(body):
    with pytest.raises(Transient):
        Answer(status=200, headers={}, body=body).json()


# -- the content


async def test_json_that_answers_a_submit_is_read():
    body = b'{"data": [1]}'
    assert await Answer(status=201, headers={}, body=body).submit_json() == {"data": [1]}
    assert await Answer(status=502, headers={}, body=b"<html>").submit_json() is None


async def test_success_that_nobody_can_read_was_made_all_the_same():
    with pytest.raises(SubmitUncertain):
        await Answer(status=200, headers={}, body=b"<html>").submit_json()


async def test_what_is_large_is_read_beside_the_loop(monkeypatch):
    """Parsing 45 MB of JSON would block the loop for too long."""
    threads = []

    def noted(plain):
        def call(*args, **more):
            threads.append(threading.get_ident())
            return plain(*args, **more)

        return call

    monkeypatch.setattr(json, "loads", noted(json.loads))
    monkeypatch.setattr(base64, "b64decode", noted(base64.b64decode))
    await Answer(status=200, headers={}, body=b"{}").submit_json()
    await Answer.decoded("AAAA")
    assert len(threads) == 2
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("size", [0, 1, 786_431, 786_432, 786_433, 2_000_000])
async def test_base64_of_every_size_is_the_file_it_was(size):
    file = bytes(range(256)) * (size // 256 + 1)
    encoded = base64.b64encode(file[:size]).decode()
    assert await Answer.decoded(encoded) == file[:size]
    # Lines of 76 characters, as in e-mail, without padding.
    lines = base64.encodebytes(file[:size]).decode().rstrip("=\n")
    assert await Answer.decoded(lines) == file[:size]


async def test_base64_is_a_file_and_anything_else_a_failure():
    assert await Answer.decoded("AAH/") == b"\0\x01\xff"
    late = "A" * (2**20 - 2) + "==" + "AAAA"  # an end, and then more
    for wrong in ("§", "A", "=", "data:image/png;base64", late):
        with pytest.raises(SubmitUncertain):
            await Answer.decoded(wrong)


@pytest.mark.parametrize(
    "value",
    [
        *("", "api.acme.com", "ftp://x/v1", "https:///v1", "https://[", "https://x/v1?key=1"),
        *("https://x/#a", "https://x/\n", "https://x?"),
    ],
)
def test_an_address_that_no_path_fits_behind_is_named_and_not_shown(value):
    with pytest.raises(SettingsError, match="GATEWAY_ACME_BASE_URL") as raised:
        base_url(value, name="acme_base_url")
    assert not value or value not in str(raised.value)


@pytest.mark.parametrize("value", ["http://127.0.0.1:8000/v1/", "https://api.example.com"])
def test_an_address_loses_its_last_slash(value):
    assert base_url(value, name="acme_base_url") == value.rstrip("/")
