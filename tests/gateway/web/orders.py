"""Orders of pictures and documents, and their tasks as a caller sees them."""

SECRET = "prompt-nobody-may-see"
FILE = {"fileBase64": "aGVsbG8gc2VjcmV0", "fileName": "secret-name.txt"}
FIELDS = {
    "taskId",
    "status",
    "done",
    "slug",
    "capability",
    "progress",
    "attempt",
    "maxAttempts",
    "pollAfterSeconds",
    "createdAt",
    "startedAt",
    "completedAt",
    "expiresAt",
    "payment",
    "result",
    "error",
    "code",
    "details",
    "refund",
}


async def order(gateway, payer, *, slug="picture", **fields) -> str:
    """Buy by x402 and return the task's id."""
    units = 20_000 if slug == "picture" else 10_000
    body = {"prompt": SECRET} | fields
    answer = await gateway.client.post(
        f"/api/x402/{slug}", json=body, headers={"X-PAYMENT": payer.header(units)}
    )
    assert answer.status_code == 200, await answer.get_json()
    return (await answer.get_json())["taskId"]


async def show(gateway, task_id, wait="0") -> dict:
    answer = await gateway.client.get(f"/api/task/{task_id}?wait={wait}")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    body = await answer.get_json()
    is_open = body["payment"]["state"] in ("reserved", "settling")
    # Present only while the task waits for memory.
    shown = set(body) - {"waitsFor"}
    assert shown == FIELDS | ({"decidedBy"} if is_open else set())
    return body
