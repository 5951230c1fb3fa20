"""A gateway that lies, loses answers or sends garbage never gets two payments for one purchase."""

import base64
import hashlib
import json
import threading
import time

import attrs
import pytest
from werkzeug import Response

from gateway.domain.eip3009 import checksum_address
from gateway_buyer.errors import GenerationFailed, NotBought, Unfinished
from gateway_buyer.files import Destination
from tests.conftest import PNG, WALLET
from tests.plugins.gateway_buyer.app.strange_gateway import OFFER, TASK, answer, challenge

SECRET = b"\x11" * 32
LIMIT = 100_000


async def purchase(buyer, order, folder):
    """Buy as the command does; return the saved paths."""
    record = buyer.find(order)
    if record is None:
        record = buyer.sign(order, await buyer.ask_price(order, LIMIT), SECRET)
    record = await buyer.pay(order, record)
    task = await buyer.follow(order.url, record.task_id, timeout_s=20)
    return await buyer.save(order.url, task, Destination(path=folder, may_overwrite=False))


async def test_an_honest_one_sells(buyer, order, strange, tmp_path):
    (path,) = await purchase(buyer, order, tmp_path)
    assert (path.name, path.read_bytes()) == ("picture-6f1c2f5e.png", PNG)
    ((payment, key),) = strange.payments
    assert key == order.key
    signed = json.loads(base64.b64decode(payment))["payload"]["authorization"]
    assert (signed["to"], signed["value"]) == (WALLET, "20000")


# -- one signature for one purchase


@pytest.mark.parametrize(
    "lost",
    [
        answer(502, {}),
        answer(500, {"error": "x", "code": "EXECUTION_ERROR"}),
        answer(429, {"error": "slow"}, Retry_After="0"),
        answer(200, {"success": True}),
        answer(200, {"taskId": "../../x"}),
        Response("not JSON", 200),
        Response("[" * 500_000, 200),
    ],
    ids=["502", "500", "429", "no task", "a path", "no JSON", "brackets"],
)
async def test_a_lost_answer_repeats_the_same_payment(buyer, order, strange, tmp_path, lost):
    strange.paid = [lost]
    await purchase(buyer, order, tmp_path)
    assert len(strange.payments) == 2
    assert len(set(strange.payments)) == 1


async def test_a_later_run_with_the_same_key_sends_the_same_payment(
    buyer, order, strange, tmp_path
):
    strange.paid = [answer(502, {})] * 3
    with pytest.raises(Unfinished, match="Whether it was paid is not known"):
        await purchase(buyer, order, tmp_path)
    strange.offer = OFFER | {"amount": "99999"}
    await purchase(buyer, order, tmp_path)
    assert len(strange.payments) == 4
    assert len(set(strange.payments)) == 1


async def test_a_run_after_the_purchase_pays_nothing(buyer, order, strange, tmp_path):
    await purchase(buyer, order, tmp_path)
    (tmp_path / "again").mkdir()
    await purchase(buyer, order, tmp_path / "again")
    assert len(strange.payments) == 1


async def test_a_402_to_a_payment_is_the_end(buyer, order, strange, tmp_path):
    strange.paid = [challenge(OFFER | {"amount": "90000"})]
    with pytest.raises(NotBought, match=r"did not take the payment \(status 402: .* until .* UTC"):
        await purchase(buyer, order, tmp_path)
    assert len(strange.payments) == 1


async def test_a_payment_that_has_expired_is_called_so(buyer, order, strange, monkeypatch):
    record = buyer.sign(order, await buyer.ask_price(order, LIMIT), SECRET)
    strange.paid = [challenge(OFFER)]
    monkeypatch.setattr(time, "time", lambda: record.valid_before + 1.0)
    with pytest.raises(NotBought, match="It has expired"):
        await buyer.pay(order, record)


async def test_one_key_is_for_one_request(buyer, order, strange, tmp_path):
    await purchase(buyer, order, tmp_path)
    with pytest.raises(NotBought, match="bought something else"):
        buyer.find(attrs.evolve(order, body={"prompt": "another boat"}))


# -- before the payment


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"amount": "100001"}, r"above the limit of 0\.10 USDC"),
        ({"network": "eip155:1"}, "cannot make the payment"),
        ({"asset": "0x" + "99" * 20}, "cannot make the payment"),
    ],
)
async def test_terms_that_are_not_signed(buyer, order, strange, changes, sentence):
    strange.offer |= changes
    with pytest.raises(NotBought, match=sentence):
        await buyer.ask_price(order, LIMIT)


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        (Response("", 301, {"Location": "https://evil.test/"}), "redirects are not followed"),
        (answer(400, {"error": "No.", "code": "VALIDATION_ERROR"}), "400: VALIDATION_ERROR: No"),
        (answer(200, {}), "status 200"),
        (Response("x" * 1_000_001, 402), "more than 1000000 bytes"),
        (Response(b"\x1f\x8b", 402, {"Content-Encoding": "gzip"}), "cut off"),
        (answer(402, {}), "no header PAYMENT-REQUIRED"),
    ],
    ids=["redirect", "refusal", "200", "huge", "gzip", "no header"],
)
async def test_answers_without_a_price(buyer, order, strange, httpserver, first, sentence):
    httpserver.clear()
    httpserver.expect_request("/api/x402/picture").respond_with_response(first)
    with pytest.raises(NotBought, match=sentence):
        await buyer.ask_price(order, LIMIT)


# -- the task and its files


async def test_a_task_is_looked_at_until_it_is_done(buyer, order, strange, messages, tmp_path):
    waiting = {"taskId": TASK, "status": "processing", "done": False, "progress": 0.5}
    strange.polls = [
        answer(200, waiting),
        answer(503, {}),
        Response("x", 200),
        answer(200, waiting | {"taskId": "another"}),
        answer(200, waiting),
    ]
    await purchase(buyer, order, tmp_path)
    assert messages.count("The task is processing 50%.") == 1
    assert len(strange.payments) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"message": "It was sent back to you."}, "It was sent back to you."),
        # Of a gateway that sends no words.
        ({}, "refund due"),
    ],
)
async def test_a_failed_task_names_reason_and_refund_in_words(
    buyer, order, strange, tmp_path, words, said
):
    strange.task = {
        "status": "failed",
        "error": "No boats.",
        "code": "GENERATION_FAILED",
        "details": "content_policy",
        "refund": {"state": "refund_due", "amount": 0.02} | words,
    }
    with pytest.raises(GenerationFailed) as failed:
        await purchase(buyer, order, tmp_path)
    assert str(failed.value) == (
        "The generation failed: No boats. The provider's rules forbid this content: change the "
        f"request. The refund of 0.02 USDC: {said}"
    )


async def test_patience_ends(buyer, order, strange):
    strange.task = {"status": "queued", "done": False}
    with pytest.raises(Unfinished, match="not done after 0 seconds"):
        await buyer.follow(order.url, TASK, timeout_s=0)


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ({"sha256": "0" * 64}, "not the one that the gateway promised"),
        ({"bytes": len(PNG) + 1}, "not the one that the gateway promised"),
        ({"bytes": 50_000_001}, "50,000,001 bytes"),
        ({"url": None}, "has deleted the files"),
        ({"url": "http://127.0.0.1:1/x"}, "not plain https"),
        ({"url": "https://localhost:1/x"}, "not public"),
        ({"url": "https://[::1/x"}, "not a URL"),
        ({"url": "file:///etc/passwd"}, "not plain https"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_files_that_are_not_saved(buyer, order, strange, tmp_path, output, sentence):
    strange.output = output
    (tmp_path / "out").mkdir()
    with pytest.raises(Unfinished, match=sentence):
        await purchase(buyer, order, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


async def test_a_file_longer_than_the_cap_is_cut_off(buyer, order, strange, tmp_path, monkeypatch):
    monkeypatch.setattr("gateway_buyer.client.MAX_OUTPUT_BYTES", 2_000)
    strange.content = b"x" * 2_001
    with pytest.raises(Unfinished, match="more than 2000 bytes"):
        await purchase(buyer, order, tmp_path)


async def test_files_that_do_not_arrive_in_time_are_given_up_and_saved_ones_are_not_fetched_again(
    buyer, order, strange, tmp_path
):
    is_given_up = threading.Event()
    strange.server.expect_request("/never").respond_with_handler(
        lambda _: Response(str(is_given_up.wait(60)))
    )
    saved = {"mimeType": "image/png", "bytes": 9, "sha256": hashlib.sha256(PNG).hexdigest()}
    links = [f"{strange.url}/files/1", f"{strange.url}/never"]
    outputs = [saved | {"url": links[0]}, saved | {"url": links[1], "sha256": "0" * 64}]
    strange.task = {"result": {"outputs": outputs}}
    (tmp_path / "picture-6f1c2f5e-1.png").write_bytes(PNG)
    task = await buyer.follow(order.url, TASK, timeout_s=20)
    hasty = attrs.evolve(buyer, timing=attrs.evolve(buyer.timing, save_s=0.05))
    try:
        with pytest.raises(Unfinished, match="did not arrive within"):
            await hasty.save(order.url, task, Destination(path=tmp_path, may_overwrite=False))
    finally:
        is_given_up.set()
    assert "/files/1" not in [request.path for request, _ in strange.server.log]


async def test_a_strangers_slug_and_type_choose_no_path(buyer, order, strange, tmp_path):
    strange.task = {"slug": "../../evil"}
    strange.output = {"mimeType": "image/../../sh"}
    (path,) = await purchase(buyer, order, tmp_path)
    assert path == tmp_path / "task-6f1c2f5e.bin"


# -- the command


def test_a_purchase_with_the_command(run, strange, tmp_path):
    bought = run("picture", "a boat", "--key", "demo")
    assert bought.exit_code == 0, bought.output
    assert (tmp_path / "bought" / "picture-6f1c2f5e.png").read_bytes() == PNG
    assert "paid        0.02 USDC on base\n" in bought.output
    assert max(map(len, bought.output.splitlines())) <= 80


def test_a_receipt_as_json(run, strange):
    bought = run("picture", "a boat", "--key", "demo", "--json", "--idempotency-key", "k")
    assert json.loads(bought.stdout) == {
        "status": "completed",
        "taskId": TASK,
        "files": ["picture-6f1c2f5e.png"],
        "transaction": "0x" + "ab" * 32,
        "amount": "0.02",
        "network": "base",
        "payTo": checksum_address(WALLET),
        "idempotencyKey": "k",
    }


def test_a_task_is_saved_without_paying(run, strange, tmp_path):
    saved = run("--task", TASK, "--out", "mine.png")
    assert (saved.exit_code, strange.payments) == (0, []), saved.output
    assert (tmp_path / "bought" / "mine.png").read_bytes() == PNG


def test_a_failed_purchase_says_how_to_continue(run, strange):
    strange.output = {"sha256": "0" * 64, "bytes": 50_000_001}
    failed = run("picture", "a boat", "--key", "demo")
    assert failed.exit_code == 4
    assert f"To continue: gateway buy --task {TASK} --url {strange.url}\n" in failed.output


def test_a_strangers_words_do_not_steer_the_terminal(run, httpserver):
    httpserver.clear()
    evil = {"error": "\x1b]0;evil\x07\x1b[2J\r\u202egnp.exe\x9b1m\nPaid. The task is 1."}
    httpserver.expect_request("/api/x402/picture").respond_with_response(answer(404, evil))
    refused = run("picture", "a boat", "--key", "demo")
    assert refused.exit_code == 1
    assert not [char for char in refused.output if not char.isprintable() and char != "\n"]
    assert len(refused.output.splitlines()) == 1


def test_a_transaction_is_one_line(run, strange):
    strange.task = {"payment": {"state": "settled", "transaction": "0x1\nfile  /etc/passwd\x1b[A"}}
    bought = run("picture", "a boat", "--key", "demo")
    assert "transaction 0x1 file /etc/passwd [A\n" in bought.output


def test_above_the_limit_nothing_is_sent(run, strange):
    strange.offer |= {"amount": "100001"}
    refused = run("picture", "a boat", "--key", "demo")
    assert (refused.exit_code, strange.payments) == (1, [])
    assert "--max 0.100001" in refused.output


def test_a_file_that_exists_stops_before_the_payment(run, strange, tmp_path):
    (tmp_path / "bought" / "mine.png").write_bytes(b"mine")
    refused = run("picture", "a boat", "--key", "demo", "--out", "mine.png")
    assert (refused.exit_code, strange.payments) == (1, [])
    assert "--force" in refused.output


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "https://a:b@example.com",
        "https://",
        "ftp://127.0.0.1",
        "x",
        "https://[::1",
    ],
)
def test_addresses_that_are_refused(run, url):
    refused = run("picture", "a boat", "--key", "demo", url=url)
    assert refused.exit_code == 2
    assert "Invalid value for '--url'" in refused.output


def test_the_document_is_sent(run, strange, tmp_path, httpserver):
    (tmp_path / "bought" / "a.txt").write_text("hi")
    assert run("picture", "--file", "a.txt", "--key", "demo").exit_code == 0
    sent = [request.get_json() for request, _ in httpserver.log if request.method == "POST"]
    assert sent == [{"fileBase64": "aGk=", "fileName": "a.txt"}] * 2
