"""Unknown outcomes: a payment ends as one task or with nothing taken, whatever fails."""

import asyncio
import contextlib
import json
import threading

import attrs
import pytest
from eth_account import Account

from gateway import ChainUnavailable, hookimpl
from gateway.app import create_app
from gateway.domain.eip3009 import AUTHORIZATION_STATE
from gateway.payments import Payments, Reconciler
from gateway.payments.settlement import SettlementTiming
from gateway.running.timing import Timing
from gateway.store.nonces import open_by_signer
from gateway.tasks import TaskTiming
from gateway.web.front.current import EXTENSION
from gateway_demo.chain import FAUCET_KEY
from gateway_demo.chain.server import RpcServer
from tests.conftest import WALLET, Payer, Running, ScriptedPlugin, multicall, running
from tests.conftest import decoded as header_json
from tests.patience import PATIENCE_S, until
from tests.waits import Waits, set_waits, started_with

PRICE = 20_000
SPENT = "invalid_exact_evm_nonce_already_used"


# -- an RPC endpoint with faults


class FaultyRpc:
    """A JSON-RPC endpoint in front of the chain; `faults` has the fault of each method."""

    def __init__(self, chain) -> None:
        self.chain = chain
        self.faults = {}
        self.seen = []
        self.healed = threading.Event()
        self._server = RpcServer(self._answer, host="127.0.0.1", port=0)
        self.url = self._server.url

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *_):
        self.heal()
        self._server.stop()

    def heal(self) -> None:
        self.faults.clear()
        self.healed.set()

    def _answer(self, body: bytes) -> bytes:
        request = json.loads(body)
        self.seen.append(request["method"])
        fault = self.faults.get(request["method"]) or self.faults.get("*")
        if fault is None:
            return self.chain.rpc.answer(body)
        return fault(self, request, body)


def silent(rpc, request, body):
    raise ConnectionError("hangs up")


def hangs(rpc, request, body):
    rpc.healed.wait(20)
    raise ConnectionError("hangs up")


def answer_lost(rpc, request, body):
    rpc.chain.rpc.answer(body)
    raise ConnectionError("hangs up")


def nonsense(rpc, request, body):
    return b"<html>502 Bad Gateway</html>"


def forgetful(rpc, request, body):
    """Accepts a transaction and loses it."""
    from eth_utils.crypto import keccak

    raw = bytes.fromhex(request["params"][0][2:])
    return _json(request, result="0x" + keccak(raw).hex())


def refuses(message):
    def fault(rpc, request, body):
        return _json(request, error={"code": -32000, "message": message})

    return fault


def says(result):
    return lambda rpc, request, body: _json(request, result=result)


def knows_nothing_of_the_nonce(rpc, request, body):
    """A load balancer that answers `eth_call` of authorizationState without data."""
    data = request["params"][0]["data"]
    if data.startswith("0x" + AUTHORIZATION_STATE.hex()):
        return _json(request, result="0x")
    return rpc.chain.rpc.answer(body)


def _json(request, **answer):
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode()


# -- fixtures


@pytest.fixture(autouse=True)
def _fast():
    waits = Waits(
        outcome_s=0.5,
        settlement=SettlementTiming(poll_s=0.02, full_check_s=0.1, late_poll_s=0.05, sweep_s=0.1),
    )
    with started_with(waits):
        yield


@pytest.fixture
def rpc(chain):
    with FaultyRpc(chain) as endpoint:
        yield endpoint


@pytest.fixture
def settings(settings, rpc):
    return attrs.evolve(settings, rpc_urls=(rpc.url,))


def time_out_sending(gateway, rpc, monkeypatch):
    """Let a transaction that the endpoint does not accept time out; wait for correct responses."""
    chain = gateway.services.chain
    send = chain.send

    async def sends(raw):
        (endpoint,) = await chain._rpc.connect()
        endpoint.timeout_s = 0.4 if rpc.faults else gateway.services.settings.rpc_timeout
        try:
            await send(raw)
        finally:
            endpoint.timeout_s = gateway.services.settings.rpc_timeout

    monkeypatch.setattr(chain, "send", sends)


async def buy(gateway, header, prompt="a boat"):
    return await gateway.client.post(
        "/api/x402/picture", json={"prompt": prompt}, headers={"X-PAYMENT": header}
    )


async def pay_directly(gateway, tx_hash, prompt="a boat"):
    return await gateway.client.post(
        "/api/proxy-generate", json={"slug": "picture", "prompt": prompt, "txHash": tx_hash}
    )


async def bought(gateway, header) -> str:
    answer = await buy(gateway, header)
    assert answer.status_code == 200, await answer.get_json()
    return (await answer.get_json())["taskId"]


async def shown(gateway, task_id) -> dict:
    return await (await gateway.client.get(f"/api/task/{task_id}")).get_json()


async def held(gateway, task_id):
    task = await shown(gateway, task_id)
    assert (task["status"], task["done"]) == ("queued", False)
    assert task["payment"]["state"] in ("reserved", "settling")
    assert task["decidedBy"] > task["createdAt"]


async def done(gateway, task_id) -> dict:
    """Return the task once it is done, even on a slow machine."""
    return await gateway.wait(task_id)


async def ended_as_one_task(gateway, chain, task_id, units=PRICE):
    task = await done(gateway, task_id)
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert chain.usdc_balance(WALLET) == units
    assert sum((await gateway.services.store.counts())["tasks"].values()) == 1


def later(chain, clock, seconds):
    """Advance all clocks."""
    clock.offset_s += seconds
    chain.advance(seconds)


async def until_paid(chain, units=PRICE):
    """Return once the wallet has the money: a task may be answered before its own was mined."""
    await until(lambda: chain.usdc_balance(WALLET) == units)


async def until_waiting(chain, count):
    """Return `count` pending transactions: a task may be answered before its own was sent."""

    async def as_many():
        found = waiting(chain)
        return found if len(found) >= count else None

    return await until(as_many)


def waiting(chain):
    with chain.node.lock:
        return list(chain.node.pool.waiting.values())


def before_ours_is_sent_again(chain):
    """Keep the gateway from resending a dropped transaction."""
    return chain.node.lock


# -- no response to a sent transaction


@pytest.mark.parametrize(
    "fault",
    [silent, hangs, answer_lost, nonsense, forgetful, refuses("internal error")],
    ids=["silent", "hangs", "answer lost", "nonsense", "forgetful", "refuses"],
)
async def test_an_unknown_outcome_of_sending_is_a_held_task_that_completes(
    gateway, payer, chain, rpc, fault, monkeypatch
):
    if fault is hangs:
        time_out_sending(gateway, rpc, monkeypatch)
    rpc.faults["eth_sendRawTransaction"] = fault
    header = payer.header()
    task_id = await bought(gateway, header)
    await until(lambda: "eth_sendRawTransaction" in rpc.seen)
    rpc.heal()
    await ended_as_one_task(gateway, chain, task_id)
    assert await bought(gateway, header) == task_id


async def test_after_sending_a_dead_rpc_is_an_unknown_outcome(gateway, payer, chain, rpc):
    def dies(rpc, request, body):
        rpc.faults["*"] = silent
        return rpc.chain.rpc.answer(body)

    rpc.faults["eth_sendRawTransaction"] = dies
    task_id = await bought(gateway, payer.header())
    await until(lambda: "eth_sendRawTransaction" in rpc.seen)
    await held(gateway, task_id)
    store = gateway.services.store
    # `gateway check` warns that its key may not be removed yet.
    assert list((await store.sum(open_by_signer)).values()) == [1]
    rpc.heal()
    await ended_as_one_task(gateway, chain, task_id)
    assert await store.sum(open_by_signer) == {}
    assert "decidedBy" not in await shown(gateway, task_id)


async def test_a_stale_head_delays_and_decides_nothing(gateway, payer, chain, rpc, clock):
    old = chain.rpc.result("eth_getBlockByNumber", "latest", False)
    header = payer.header()
    rpc.faults |= {
        "eth_getBlockByNumber": says(old),
        "eth_getTransactionReceipt": says(None),
        "eth_getLogs": says([]),
    }
    task_id = await bought(gateway, header)
    await until_paid(chain)
    later(chain, clock, 700)
    await asyncio.sleep(0.5)
    await held(gateway, task_id)
    rpc.heal()
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_dropped_transaction_is_sent_again(gateway, payer, chain):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())
    (sent,) = await until_waiting(chain, 1)
    assert chain.drop("0x" + sent.hash.hex())

    async def sent_again():
        return waiting(chain)

    (again,) = await until(sent_again)
    assert again.hash == sent.hash
    chain.mine()
    await ended_as_one_task(gateway, chain, task_id)


def mine_without_waiting(chain):
    """Mine a block without the pending transactions."""
    chain.fund(Account.create().address)


async def swept(rpc, times=4):
    """Let the sweep run some more times."""
    began = rpc.seen.count("eth_getTransactionCount")

    async def passed():
        return rpc.seen.count("eth_getTransactionCount") >= began + times

    await until(passed)


async def test_fees_are_not_raised_while_the_chain_makes_no_blocks(
    gateway, payer, chain, clock, rpc
):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())

    async def is_sent():
        return waiting(chain)

    (first,) = await until(is_sent)
    clock.offset_s += 50
    await swept(rpc)
    clock.offset_s += 50
    await swept(rpc)
    assert [tx.hash for tx in waiting(chain)] == [first.hash]
    rows = await gateway.services.store._rows("SELECT 1 FROM sent_transactions")
    assert len(rows) == 1
    chain.mine()
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_stuck_transaction_is_replaced_by_a_dearer_one_of_its_nonce(
    gateway, payer, chain, clock
):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())

    async def is_sent():
        return waiting(chain)

    (first,) = await until(is_sent)
    clock.offset_s += 16

    async def replaced():
        mine_without_waiting(chain)
        (now,) = waiting(chain)
        return now if now.hash != first.hash else None

    second = await until(replaced)
    assert (second.nonce, second.data) == (first.nonce, first.data)
    for fee in ("max_fee_per_gas", "max_priority_fee_per_gas"):
        assert getattr(second, fee) * 1000 >= getattr(first, fee) * 1125
    stored = await gateway.services.store._rows("SELECT tx_hash FROM sent_transactions")
    assert {row[0] for row in stored} == {"0x" + tx.hash.hex() for tx in (first, second)}
    chain.mine()
    await ended_as_one_task(gateway, chain, task_id)
    task = await shown(gateway, task_id)
    assert task["payment"]["transaction"] == "0x" + second.hash.hex()


async def test_the_replaced_transaction_may_be_the_one_that_is_mined(
    gateway, payer, chain, clock, rpc
):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())
    # From now on only the first one can be mined.
    await until_waiting(chain, 1)
    rpc.faults["eth_sendRawTransaction"] = silent
    clock.offset_s += 16

    async def replaced():
        mine_without_waiting(chain)
        return await gateway.services.store._rows(
            "SELECT 1 FROM sent_transactions LIMIT 1 OFFSET 1"
        )

    await until(replaced)
    chain.mine()
    rpc.heal()
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_nonce_that_the_key_used_elsewhere_is_replaced(gateway, payer, chain, gas_key):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())
    (ours,) = await until_waiting(chain, 1)
    dearer = {"max_fee_wei": 50 * 10**9, "tip_wei": 10**9, "gas": 21_000}
    chain.send_transaction(gas_key.key, payer.account.address, nonce=ours.nonce, **dearer)
    chain.set_automine(True)
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_key_that_was_used_before_starts_after_it(gateway, payer, chain, gas_key):
    for _ in range(3):
        chain.send_transaction(gas_key.key, payer.account.address, gas=21_000)
    await ended_as_one_task(gateway, chain, await bought(gateway, payer.header()))


async def test_after_a_reorganisation_the_key_still_settles(gateway, payer, chain, gas_key):
    """The block with nonce 0 vanishes after it was read; later payments must not wait for ever."""
    before = chain.snapshot()
    await done(gateway, await bought(gateway, payer.header()))

    async def seen():
        return not await gateway.services.store.unmined(
            Account.from_key(gas_key.key).address.lower()
        )

    await until(seen)
    chain.revert(before)
    task_id = await bought(gateway, payer.header())
    assert (await done(gateway, task_id))["status"] == "completed"


# -- interference by others


async def test_who_submits_the_authorization_while_we_settle_pays_for_the_task(
    gateway, payer, chain
):
    chain.set_automine(False)
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    task_id = await bought(gateway, header)
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    (ours,) = await until_waiting(chain, 1)
    dearer = {"max_fee_wei": 50 * 10**9, "tip_wei": 10**9}
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature), **dearer)
    with before_ours_is_sent_again(chain):
        chain.drop("0x" + ours.hash.hex())
        chain.mine()
        chain.set_automine(True)
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_batch_with_two_authorizations_settles_both(gateway, chain):
    from gateway_demo.chain import MULTICALL

    payers = [Payer(chain), Payer(chain)]
    chain.set_automine(False)
    calls, ids = [], []
    for payer, prompt in zip(payers, ("a boat", "a house"), strict=True):
        signed = payer.authorization()
        header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
        answer = await buy(gateway, header, prompt)
        ids.append((await answer.get_json())["taskId"])
        signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
        calls.append((chain.usdc, signed.call(signature)))
    # A buyer may have the response before our transaction is sent.
    await until_waiting(chain, 2)
    with before_ours_is_sent_again(chain):
        for ours in waiting(chain):
            chain.drop("0x" + ours.hash.hex())
        tx_hash = chain.send_transaction(FAUCET_KEY, MULTICALL, multicall(*calls))
        chain.set_automine(True)
    tasks = [await done(gateway, task_id) for task_id in ids]
    assert {task["payment"]["transaction"] for task in tasks} == {tx_hash}
    assert chain.usdc_balance(WALLET) == 2 * PRICE
    refusal = await (await pay_directly(gateway, tx_hash)).get_json()
    assert refusal["code"] == "TX_ALREADY_USED"


async def diverted_or_cancelled(gateway, payer, chain, call):
    """Let the payer spend the nonce otherwise before our transaction is mined."""
    chain.set_automine(False)
    nonce = bytes(range(32))
    header = payer.header(nonce=nonce)
    task_id = await bought(gateway, header)
    await until_waiting(chain, 1)
    with before_ours_is_sent_again(chain):
        for ours in waiting(chain):
            chain.drop("0x" + ours.hash.hex())
        chain.send_transaction(payer.account.key, chain.usdc, call(nonce))
        chain.mine()
        chain.set_automine(True)
    task = await done(gateway, task_id)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")
    assert (task["payment"]["state"], task["refund"]) == ("released", None)
    again = await buy(gateway, header)
    assert (again.status_code, (await again.get_json())["error"]) == (402, SPENT)


async def test_an_authorization_that_paid_somebody_else_drops_the_task(
    gateway, payer, chain, provider
):
    def elsewhere(nonce):
        signed = payer.authorization(nonce=nonce, to=Account.create().address)
        return signed.call(signed.sign(payer.account.key, chain.chain_id, chain.usdc))

    await diverted_or_cancelled(gateway, payer, chain, elsewhere)
    assert (chain.usdc_balance(WALLET), provider.requests) == (0, [])


async def test_an_authorization_that_was_cancelled_drops_the_task(gateway, payer, chain, provider):
    from eth_keys.datatypes import PrivateKey
    from eth_utils.crypto import keccak

    from gateway_demo.token import call_data, domain_separator

    def cancel(nonce):
        typehash = keccak(text="CancelAuthorization(address authorizer,bytes32 nonce)")
        sender = payer.account.address
        struct = keccak(typehash + bytes.fromhex(sender[2:]).rjust(32, b"\0") + nonce)
        domain = domain_separator(chain.chain_id, chain.usdc)
        digest = keccak(b"\x19\x01" + domain + struct)
        signed = PrivateKey(payer.account.key).sign_msg_hash(digest).to_bytes()
        types = ["address", "bytes32", "uint8", "bytes32", "bytes32"]
        vrs = (27 + signed[64], signed[:32], signed[32:64])
        return call_data("cancelAuthorization", types, sender, nonce, *vrs)

    await diverted_or_cancelled(gateway, payer, chain, cancel)
    assert (chain.usdc_balance(WALLET), provider.requests) == (0, [])


async def test_an_authorization_that_expired_unused_drops_the_task(
    gateway, payer, chain, clock, rpc, provider
):
    rpc.faults["eth_sendRawTransaction"] = forgetful
    header = payer.header()
    task_id = await bought(gateway, header)
    later(chain, clock, 280)
    await asyncio.sleep(0.4)
    await held(gateway, task_id)
    later(chain, clock, 21)
    task = await done(gateway, task_id)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")
    assert (await buy(gateway, header)).status_code == 402
    assert (chain.usdc_balance(WALLET), provider.requests) == (0, [])


async def test_the_payers_money_may_be_gone_by_the_time_we_send(
    gateway, payer, chain, clock, provider
):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())
    poorer = chain.sign_transaction(
        payer.account.key, chain.usdc, _spend_all(payer, chain), tip_wei=10**9, max_fee_wei=10**11
    )
    (ours,) = await until_waiting(chain, 1)
    with before_ours_is_sent_again(chain):
        chain.drop("0x" + ours.hash.hex())
        chain.send_raw(poorer)
        chain.set_automine(True)
    later(chain, clock, 301)
    task = await done(gateway, task_id)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")
    assert (chain.usdc_balance(WALLET), provider.requests) == (0, [])


def _spend_all(payer, chain):
    from gateway_demo.token import transfer_call

    return transfer_call(Account.create().address, chain.usdc_balance(payer.account.address))


# -- only facts of the chain close an unknown outcome


async def test_where_sending_is_refused_who_submits_first_still_pays_for_the_task(
    gateway, payer, chain, rpc
):
    """Sending always fails (for lack of gas); reading works, and closes a payment."""
    rpc.faults["eth_sendRawTransaction"] = refuses("insufficient funds for gas * price + value")
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    task_id = await bought(gateway, header)
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    await ended_as_one_task(gateway, chain, task_id)


async def test_where_sending_is_refused_an_expired_authorization_is_released(
    gateway, payer, chain, rpc, clock
):
    rpc.faults["eth_sendRawTransaction"] = refuses("insufficient funds for gas * price + value")
    task_id = await bought(gateway, payer.header())
    later(chain, clock, 301)
    assert (await done(gateway, task_id))["code"] == "PAYMENT_NOT_SETTLED"


class OddSettler:
    """A third party's settler with undocumented errors."""

    @hookimpl
    def register_settlers(self, register, context):
        register("odd", lambda: self)

    async def check_ready(self):
        return

    async def check(self, authorization, quote):
        return

    async def submit(self, payment):
        raise LookupError("a bug")

    async def tend(self):
        raise LookupError("a bug")

    async def close(self):
        return


async def test_a_settler_that_raises_anything_leaves_the_facts_to_the_chain(
    settings, payer, chain, clock, provider
):
    odd = attrs.evolve(settings, settlement="odd")
    async with running(odd, provider, [OddSettler()], now=clock) as gateway:
        gateway.chain = chain
        signed = payer.authorization()
        header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
        task_id = await bought(gateway, header)
        signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
        chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
        await ended_as_one_task(gateway, chain, task_id)


@contextlib.asynccontextmanager
async def paid_but_unseen(settings, provider, clock, chain, payer, rpc):
    """Yield a gateway whose payment is mined; its endpoint hides receipts and logs."""
    hidden = {"eth_getTransactionReceipt": silent, "eth_getLogs": silent}
    async with running(settings, provider, now=clock) as gateway:
        rpc.faults |= hidden
        task_id = await bought(gateway, payer.header())
        await until_paid(chain)
        await held(gateway, task_id)
        yield gateway, task_id


async def test_an_endpoint_that_lags_proves_no_absence_of_logs(
    settings, provider, clock, chain, payer, rpc
):
    """The second endpoint stopped before the payment: it lacks the logs and the block."""
    old = chain.rpc.result("eth_getBlockByNumber", "latest", False)
    with FaultyRpc(chain) as stopped:
        two = attrs.evolve(settings, rpc_urls=(rpc.url, stopped.url))
        stopped.faults |= {
            "eth_getBlockByNumber": says(old),
            "eth_getBlockByHash": says(None),
            "eth_getTransactionReceipt": says(None),
            "eth_getLogs": says([]),
            "eth_blockNumber": says(old["number"]),
        }
        async with paid_but_unseen(two, provider, clock, chain, payer, rpc) as (gateway, task_id):
            later(chain, clock, 600)
            await asyncio.sleep(0.8)
            await held(gateway, task_id)
            rpc.heal()
            await ended_as_one_task(gateway, chain, task_id)


async def test_an_empty_answer_proves_no_unused_nonce(settings, provider, clock, chain, payer, rpc):
    async with paid_but_unseen(settings, provider, clock, chain, payer, rpc) as (gateway, task_id):
        rpc.faults["eth_call"] = knows_nothing_of_the_nonce
        later(chain, clock, 600)
        await asyncio.sleep(0.8)
        await held(gateway, task_id)
        rpc.heal()
        await ended_as_one_task(gateway, chain, task_id)


# -- a crash in each state, then a new process on the same files


async def crash(gateway) -> None:
    """Abandon a gateway like kill -9: from now on it writes nothing and sends nothing."""
    store = gateway.services.store
    store._writer._task.cancel()
    store._writer._task = None
    names = ("settle", "worker-", "task-", "lease-", "retention", "warm-up")
    doomed = [task for task in asyncio.all_tasks() if task.get_name().startswith(names)]
    for task in doomed:
        task.cancel()
    await asyncio.gather(*doomed, return_exceptions=True)
    await store._writer._connection.close()
    await store._reader.close()
    await gateway.services.chain.close()


@contextlib.asynccontextmanager
async def abandoned(settings, provider, clock):
    """Yield a gateway that ends in a crash."""
    app = create_app(settings, plugins=[ScriptedPlugin(provider)], now=clock)
    await app.startup()
    gateway = Running(app, app.test_client(), app.extensions[EXTENSION])
    gateway.services.workers.resources.timing = TaskTiming(backoff_s=0.02)
    set_waits(gateway.services)
    gateway.services.lifecycle.answered.set()
    try:
        yield gateway
    finally:
        await crash(gateway)
        with contextlib.suppress(Exception):
            await app.shutdown()


async def never(*_):
    await asyncio.Event().wait()


# Each returns the condition that a payment has come this far.


def _before_t2(gateway, rpc, chain):
    gateway.services.settlements.settler.submit = never
    return lambda: True


def _before_sending(gateway, rpc, chain):
    rpc.faults["eth_sendRawTransaction"] = silent
    return lambda: "eth_sendRawTransaction" in rpc.seen


def _before_it_is_mined(gateway, rpc, chain):
    chain.set_automine(False)
    return lambda: waiting(chain)


def _before_t3(gateway, rpc, chain):
    rpc.faults |= {"eth_getTransactionReceipt": silent, "eth_getLogs": silent}
    return lambda: chain.usdc_balance(WALLET) == PRICE


@pytest.mark.parametrize(
    ("stop", "state"),
    [
        (_before_t2, "reserved"),
        (_before_sending, "settling"),
        (_before_it_is_mined, "settling"),
        (_before_t3, "settling"),
    ],
    ids=["after T1", "after T2", "after sending", "after mining"],
)
async def test_a_crash_in_any_state_costs_nobody_anything(
    settings, provider, clock, chain, payer, rpc, stop, state
):
    header = payer.header()
    async with abandoned(settings, provider, clock) as gateway:
        has_come_so_far = stop(gateway, rpc, chain)
        task_id = await bought(gateway, header)
        await until(has_come_so_far)
        assert (await gateway.services.store.counts())["payments"] == {state: 1}
    rpc.heal()
    chain.set_automine(True)
    async with running(settings, provider, now=clock) as gateway:
        await ended_as_one_task(gateway, chain, task_id)
        assert await bought(gateway, header) == task_id
    assert chain.usdc_balance(WALLET) == PRICE
    assert len(provider.requests) == 1


async def test_a_crash_of_the_request_itself_is_healed_by_the_same_header(
    settings, provider, clock, chain, payer, rpc
):
    """The client got no response at all; it sends the same header to the new process."""
    header = payer.header()
    async with abandoned(settings, provider, clock) as gateway:
        rpc.faults["eth_sendRawTransaction"] = hangs
        request = asyncio.create_task(buy(gateway, header))
        await until(gateway.services.store.open_payments)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    rpc.heal()
    async with running(settings, provider, now=clock) as gateway:
        await ended_as_one_task(gateway, chain, await bought(gateway, header))


async def test_an_authorization_expires_while_the_gateway_is_down(
    settings, provider, clock, chain, payer, rpc
):
    async with abandoned(settings, provider, clock) as gateway:
        rpc.faults["eth_sendRawTransaction"] = silent
        task_id = await bought(gateway, payer.header())
    later(chain, clock, 3600)
    rpc.heal()
    async with running(settings, provider, now=clock) as gateway:
        assert (await done(gateway, task_id))["code"] == "PAYMENT_NOT_SETTLED"
    assert chain.usdc_balance(WALLET) == 0


async def test_a_payment_mined_while_the_gateway_is_down_is_found_days_later(
    settings, provider, clock, chain, payer, rpc
):
    async with abandoned(settings, provider, clock) as gateway:
        chain.set_automine(False)
        task_id = await bought(gateway, payer.header())
        await until_waiting(chain, 1)
    chain.mine()
    later(chain, clock, 3 * 86_400)
    chain.set_automine(True)
    async with running(settings, provider, now=clock) as gateway:
        await ended_as_one_task(gateway, chain, task_id)


async def test_whatever_fails_while_warming_up_open_payments_are_closed(
    settings, provider, clock, chain, payer, rpc, monkeypatch
):
    async with abandoned(settings, provider, clock) as gateway:
        rpc.faults["eth_sendRawTransaction"] = silent
        task_id = await bought(gateway, payer.header())
    rpc.heal()

    async def fails(self):
        raise OSError("no space left on device")

    monkeypatch.setattr(Payments, "cutoff_block", fails)
    async with running(settings, provider, now=clock) as gateway:

        async def is_done():
            return (await shown(gateway, task_id))["done"]

        await until(is_done)


async def test_an_endpoint_that_once_counted_too_many_nonces_leaves_no_gap_for_ever(
    gateway, rpc, chain, payer, clock
):
    rpc.faults["eth_getTransactionCount"] = says("0x63")
    stuck = await bought(gateway, payer.header())
    rpc.heal()
    next_one = await done(gateway, await bought(gateway, Payer(chain).header()))
    assert (next_one["status"], next_one["payment"]["state"]) == ("completed", "settled")
    later(chain, clock, 301)
    assert (await done(gateway, stuck))["code"] == "PAYMENT_NOT_SETTLED"


# -- clients


async def test_a_client_that_leaves_while_we_settle_has_bought_all_the_same(gateway, payer, chain):
    chain.set_automine(False)
    # It leaves before it has a response.
    gateway.services.payments.outcome_s = PATIENCE_S
    header = payer.header()
    request = asyncio.create_task(buy(gateway, header))

    async def is_sent():
        return waiting(chain)

    await until(is_sent)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    chain.set_automine(True)
    await ended_as_one_task(gateway, chain, await bought(gateway, header))


async def test_a_client_may_leave_at_any_moment(gateway, payer, chain):
    header = payer.header()
    for pause_s in (0, 0.001, 0.005, 0.01, 0.02, 0.03, 0.05):
        request = asyncio.create_task(buy(gateway, header))
        await asyncio.sleep(pause_s)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
    await ended_as_one_task(gateway, chain, await bought(gateway, header))


async def test_fifty_times_the_same_header_at_once_is_one_task(
    settings, payer, chain, provider, clock
):
    header = payer.header()
    async with running(settings, provider, now=clock) as gateway:
        answers = await asyncio.gather(*(buy(gateway, header) for _ in range(50)))
        assert {answer.status_code for answer in answers} == {200}
        ids = {(await answer.get_json())["taskId"] for answer in answers}
        assert len(ids) == 1
        await ended_as_one_task(gateway, chain, ids.pop())
    assert len(provider.requests) == 1


async def test_of_fifty_requests_with_one_hash_at_once_one_is_served(
    settings, payer, chain, provider, clock
):
    async with running(settings, provider, now=clock) as gateway:
        await gateway.services.payments.cutoff_block()
        tx_hash = payer.transfer(PRICE)
        answers = await asyncio.gather(
            *(pay_directly(gateway, tx_hash, f"boat {number}") for number in range(50))
        )
    assert sorted(answer.status_code for answer in answers) == [200] + 49 * [400]
    codes = [(await answer.get_json()).get("code") for answer in answers]
    assert codes.count("TX_ALREADY_USED") == 49


@pytest.mark.parametrize("moment", ["while it settles", "after it settled"])
async def test_the_hash_of_a_settlement_buys_nothing(
    gateway, payer, chain, provider, monkeypatch, moment
):
    if moment == "while it settles":

        async def unknown(*_):
            raise ChainUnavailable("silent")

        monkeypatch.setattr(Reconciler, "close", unknown)
        monkeypatch.setattr(Reconciler, "close_by_receipt", unknown)
    else:
        gateway.services.payments.outcome_s = PATIENCE_S
    task_id = await bought(gateway, payer.header())
    await until_paid(chain)
    rows = await gateway.services.store._rows("SELECT tx_hash FROM sent_transactions")
    refusal = await pay_directly(gateway, rows[0][0])
    assert (refusal.status_code, (await refusal.get_json())["code"]) == (400, "TX_ALREADY_USED")
    monkeypatch.undo()
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_hash_and_its_authorization_race_and_pay_once(gateway, payer, chain, provider):
    """A third party submitted the authorization; its hash and its header arrive together."""
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    tx_hash = chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    answers = await asyncio.gather(buy(gateway, header), pay_directly(gateway, tx_hash))
    served, refused = sorted(answer.status_code for answer in answers)
    assert served == 200
    assert refused in (400, 402)
    assert sum((await gateway.services.store.counts())["tasks"].values()) == 1


async def test_a_closing_gateway_leaves_an_open_payment_to_the_next(
    settings, provider, clock, chain, payer
):
    chain.set_automine(False)
    timing = Timing(drain_payments_s=0.1)
    async with running(settings, provider, now=clock, timing=timing) as gateway:
        task_id = await bought(gateway, payer.header())
    chain.set_automine(True)
    async with running(settings, provider, now=clock) as gateway:
        await ended_as_one_task(gateway, chain, task_id)


async def test_the_receipt_of_a_200_names_the_transaction_that_paid(gateway, payer, chain):
    gateway.services.payments.outcome_s = PATIENCE_S
    answer = await buy(gateway, payer.header())
    decoded = header_json(answer.headers["X-PAYMENT-RESPONSE"])
    receipt = chain.receipt(decoded["transaction"])
    assert receipt["status"] == "0x1"
