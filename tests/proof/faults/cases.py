"""Plays one case: pay while a call fails, name the end, heal, and check that nothing is lost."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator

import attrs

from gateway_demo.chain import FAUCET_KEY
from gateway_local_settler import recent_checks
from tests.authorizations import header_of, payload_of
from tests.conftest import Payer
from tests.proof.faults.proxy import FAULTS, SHARED, error, says, time_out
from tests.proof.faults.scene import CALM_S, Case, Scene

PRICE = 20_000
SETTLED = "settled"
HELD = "held"
NOTHING = "nothing taken"
NOT_FOUND = "not found"
REFUSED = "refused"
ENDS = (SETTLED, HELD, NOTHING, NOT_FOUND, REFUSED)
_HANGING_S = 0.5  # the time-out of an endpoint that hangs; a drive has room for six
_TRIES = 3
_TRY_AGAIN = "The chain does not answer now. Send the same again: it is never charged twice."
_PATIENCE_S = 240.0  # for what must happen
_LINGER_S = 0.3  # for what must not happen: some sweeps long
# Made for a plain account only if its shared simulation fails.
_UNSHARED = ("eth_call simulation, checked", "eth_getCode")


@attrs.frozen(kw_only=True)
class Proof:
    """The client's request, now and when repeated."""

    path: str
    body: dict
    headers: dict
    before_again: Callable[[], None] = lambda: None  # what happens meanwhile


def own(scene: Scene) -> Proof:
    """An authorization that the gateway itself submits."""
    return _x402(scene, scene.payer)[1]


def poor(scene: Scene) -> Proof:
    """An authorization of an account that is funded later."""
    payer = Payer(scene.chain)
    payer.transfer(scene.chain.usdc_balance(payer.account.address), to=scene.payer.account.address)
    _, proof = _x402(scene, payer)
    address = payer.account.address
    return attrs.evolve(
        proof, before_again=lambda: scene.chain.fund(address, eth_wei=0, usdc_units=PRICE)
    )


def foreign(scene: Scene) -> Proof:
    """An authorization that a third party has submitted before the gateway gets it."""
    call, proof = _x402(scene, scene.payer)
    scene.chain.send_transaction(FAUCET_KEY, scene.chain.usdc, call)
    return proof


def direct(scene: Scene) -> Proof:
    """The hash of a mined transfer."""
    body = {"slug": "picture", "prompt": "a boat", "txHash": scene.payer.transfer(PRICE)}
    return Proof(path="/api/proxy-generate", body=body, headers={"Idempotency-Key": body["txHash"]})


def waiting(scene: Scene) -> Proof:
    """The hash of a transfer that is mined later."""
    scene.chain.set_automine(False)
    return attrs.evolve(direct(scene), before_again=lambda: scene.chain.set_automine(True))


RUNS = {"own": own, "foreign": foreign, "poor": poor, "direct": direct, "waiting": waiting}


def _x402(scene: Scene, payer: Payer) -> tuple[bytes, Proof]:
    signed = payer.authorization(PRICE)
    signature = signed.sign(payer.account.key, scene.chain.chain_id, scene.chain.usdc)
    headers = {"X-PAYMENT": header_of(payload_of(signed, signature))}
    proof = Proof(path="/api/x402/picture", body={"prompt": "a boat"}, headers=headers)
    return signed.call(signature), proof


def _stale(scene: Scene, call: str) -> Callable:
    """Return the fault of an endpoint that stopped before the payment."""
    ask = scene.chain.rpc.result
    count = int(ask("eth_getTransactionCount", scene.key.address, "latest"), 16)
    answers = {
        "eth_getBlockByNumber": ask("eth_getBlockByNumber", "latest", False),
        "eth_getTransactionCount": hex(max(count - 1, 0)),
        "eth_getLogs": [],
        "eth_call authorizationState": "0x" + "0" * 64,
        SHARED: "0x",
        "eth_call simulation, checked": "0x",
        "eth_call simulation, signed": "0x",
    }
    return says(answers[call])


async def run_case(scene: Scene, case: Case, expected: str | None) -> str:
    """Play a case of the chain and return its end; without an expectation, watch for a while."""
    fault = FAULTS.get(case.fault) or _stale(scene, case.call)
    return await run_case_with(scene, case, fault, scene.proxies[0], expected)


class NotCalledError(AssertionError):
    """The call that is to fail was never made."""


@contextlib.contextmanager
def _checks_expired(call: str) -> Iterator[None]:
    """Let settlements simulate again if that call is to fail: a fresh check replaces it."""
    fresh_s = recent_checks.FRESH_S
    recent_checks.FRESH_S = 0.0 if call == "eth_call simulation, signed" else fresh_s
    try:
        yield
    finally:
        recent_checks.FRESH_S = fresh_s


async def run_case_with(scene: Scene, case: Case, fault, proxy, expected: str | None) -> str:
    """Play a case whose fault happens in this proxy, again if the faulty call was never made.

    On a busy machine a correct response may miss the short timeout too, or a late background read
    may already have fetched the purchase's data.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(NotCalledError), _checks_expired(case.call):
            return await _run_once(scene, case, fault, proxy, expected)
    raise NotCalledError(case.call)


async def _run_once(scene: Scene, case: Case, fault, proxy, expected: str | None) -> str:
    money = await scene.money()
    proof = RUNS[case.run](scene)
    unpaid = await scene.money()
    for other in scene.proxies:
        other.seen.clear()
    if case.call in _UNSHARED:
        proxy.break_call(SHARED, error)
    proxy.break_call(case.call, fault)
    scene.forget_checks(timeout_s=_HANGING_S if fault is time_out else CALM_S)
    status, body = await _send(scene, proof)
    end = await _end(scene, status, body, expected)
    was_called = case.call in proxy.seen
    if end in (NOTHING, NOT_FOUND, REFUSED):
        assert await scene.money() == unpaid
    proxy.heal()
    scene.forget_checks(timeout_s=CALM_S)
    proof.before_again()
    await _ends_as_one_task(scene, proof, body.get("taskId"), money)
    await asyncio.sleep(0)  # the last answer's connection ends
    if not was_called:
        raise NotCalledError(f"{case.call} is not called here: {sorted(set(proxy.seen))}")
    return end


async def _send(scene: Scene, proof: Proof) -> tuple[int, dict]:
    client = scene.gateway.client
    answer = await client.post(proof.path, json=proof.body, headers=proof.headers)
    return answer.status_code, await answer.get_json()


async def _send_until_answered(scene: Scene, proof: Proof) -> tuple[int, dict]:
    """Repeat the request, as a client does, while the response states that nothing was charged.

    A shared read that began while calls failed may end after the cure, and all its waiters get its
    error. There is at most one such read of each kind.
    """
    for _ in range(_TRIES):
        status, body = await _send(scene, proof)
        if (status, body.get("error")) != (500, _TRY_AGAIN):
            break
    return status, body


async def _end(scene: Scene, status: int, body: dict, expected: str | None) -> str:
    """Name the end while the fault lasts."""
    if status == 500:
        assert body["code"] in ("EXECUTION_ERROR", "INTERNAL_ERROR")
        assert body["error"] != "Internal error"
        return NOTHING
    if status == 400:
        assert body["code"] == "TX_NOT_FOUND"
        return NOT_FOUND
    if status == 402:
        return REFUSED
    assert status == 200, body
    is_done = await _is_done(
        scene, body["taskId"], _PATIENCE_S if expected == SETTLED else _LINGER_S
    )
    return SETTLED if is_done else HELD


async def _is_done(scene: Scene, task_id: str, patience_s: float) -> bool:
    try:
        async with asyncio.timeout(patience_s):
            while not (await _task(scene, task_id))["done"]:  # noqa: ASYNC110 - looked at from outside
                await asyncio.sleep(0.02)
    except TimeoutError:
        return False
    return True


async def _task(scene: Scene, task_id: str) -> dict:
    return await (await scene.gateway.client.get(f"/api/task/{task_id}")).get_json()


async def _ends_as_one_task(scene: Scene, proof: Proof, task_id: str | None, before: tuple) -> None:
    """After healing, the same proof gives the same task, paid once and made once."""
    made = len(scene.provider.requests)
    status, body = await _send_until_answered(scene, proof)
    assert status == 200, body
    assert task_id in (None, body["taskId"])
    assert await _is_done(scene, body["taskId"], _PATIENCE_S), await _task(scene, body["taskId"])
    task = await _task(scene, body["taskId"])
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled"), task
    rows, _, balance = await scene.money()
    assert rows == {kind: before[0].get(kind, 0) + 1 for kind in rows}
    assert balance == before[2] + PRICE
    assert len(scene.provider.requests) - made <= 1
    assert not await scene.gateway.services.store.open_payments()
