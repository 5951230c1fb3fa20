"""The receiver of docs/webhooks.md accepts only what the gateway signs."""

import json
import re
import time
from pathlib import Path

from gateway.domain.description import callback_fields, request_schema
from gateway_testing.facts import ENDPOINT
from gateway_webhooks import CallbackSecrets
from gateway_webhooks.signing import sign

PAGE = Path(__file__).parents[4] / "docs" / "webhooks.md"
TASK = "6f1c2f5e-9d0b-4c57-8f0e-3d1a5b7c9e21"
BODY = json.dumps({"type": "task.completed", "data": {"taskId": TASK, "é": 1}}).encode()


def test_the_receiver_of_the_page_takes_what_is_signed_and_nothing_else(capsys):
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    page: dict = {}
    exec(source, page)
    receive = page["receive"]
    secret = CallbackSecrets("installation").of(TASK)
    headers = sign(secret, f"msg_task_completed_{TASK}", time.time(), BODY)
    assert receive(BODY, headers, {TASK: secret}) == 204
    assert capsys.readouterr().out == f"task.completed {TASK}\n"
    assert receive(BODY + b" ", headers, {TASK: secret}) == 401
    assert receive(BODY, headers, {TASK: CallbackSecrets("other").of(TASK)}) == 401
    assert receive(BODY, headers, {}) == 401
    late = sign(secret, f"msg_task_completed_{TASK}", time.time() - 3_600, BODY)
    assert receive(BODY, late, {TASK: secret}) == 401


def test_the_page_names_every_event_and_every_pause_of_the_code():
    from gateway import EventType
    from gateway_webhooks import DeliveryTiming

    page = PAGE.read_text("utf-8")
    assert all(f"| `{kind}` |" in page for kind in EventType)
    assert DeliveryTiming().pauses_s == (5, 300, 1_800, 7_200, 18_000)
    assert "after 5 seconds, 5 minutes, 30 minutes, 2 hours and 5 hours" in page


def test_the_schema_offers_the_field_where_events_are_sent():
    offered = request_schema(ENDPOINT, callbacks=True)["properties"]
    assert offered.items() >= callback_fields().items()
    assert "callbackUrl" not in request_schema(ENDPOINT)["properties"]
