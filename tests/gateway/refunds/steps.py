"""Steps of a refund, for the tests of refunds."""

from eth_account import Account

from gateway.domain import Decision
from gateway.domain.eip3009 import transfer_calldata
from gateway.payments.refunds import RefundTiming
from gateway_demo.chain import FAUCET_KEY
from gateway_demo.token import call_data
from tests.gateway.refunds.conftest import fail_once
from tests.patience import until

PRICE = 20_000
EVERYTHING = 100_000_000  # what a payer starts with


async def refund_of(gateway, task) -> dict:
    answer = await gateway.client.get(f"/api/task/{task['taskId']}")
    return (await answer.get_json())["refund"]


async def until_state(gateway, task, state) -> dict:
    async def found():
        refund = await refund_of(gateway, task)
        return refund if refund["state"] == state else None

    return await until(found)


async def until_sent(chain, key) -> None:
    """Wait until the chain has a refund's transaction: it is stored before it is sent."""

    def counted(block: str) -> str:
        return chain.rpc.result("eth_getTransactionCount", key.address, block)

    await until(lambda: counted("pending") != counted("latest"))


async def until_problem(gateway, task, words) -> None:
    async def noted():
        return words in ((await case_of(gateway, task)).problem or "")

    await until(noted)


async def case_of(gateway, task):
    return await gateway.services.store.refunds.case(task["taskId"])


async def approve(gateway, task, *, to=None) -> None:
    await gateway.services.store.refunds.decide(
        task["taskId"], Decision.APPROVED, recipient=to, note="", now=gateway.services.now()
    )


async def late(gateway, payer, provider, chain) -> dict:
    """Fail a task whose settlement is mined, while its refund is not."""
    chain.set_automine(True)
    gateway.services.refunds._ledger, ledger = None, gateway.services.refunds._ledger
    task = await fail_once(gateway, payer, provider)
    chain.set_automine(False)
    gateway.services.refunds._ledger = ledger
    return task


async def without_its_money(gateway, payer, provider, chain, refund_key) -> dict:
    """Start a refund whose nonce goes to a transaction that takes the key's money."""
    task = await late(gateway, payer, provider, chain)
    await approve(gateway, task)
    await until_state(gateway, task, "refunding")
    await until_sent(chain, refund_key)
    await gateway.services.refunds.close()
    sent = await gateway.services.store._rows("SELECT tx_hash FROM sent_transactions")
    for row in sent:
        chain.rpc.result("anvil_dropTransaction", row["tx_hash"])
    chain.set_automine(True)
    spend(chain, refund_key, chain.usdc_balance(refund_key.address))
    gateway.services.refunds.timing = RefundTiming(sweep_s=0.05, lag_s=0.0)
    gateway.services.refunds.start()
    return task


def call_token(chain, name, account) -> None:
    """Call a function of the token that only Circle may call on the real one."""
    chain.send_transaction(FAUCET_KEY, chain.usdc, call_data(name, ["address"], account))


def spend(chain, account, units) -> None:
    """Send the key's money elsewhere with its next nonce."""
    data = call_data("transfer", ["address", "uint256"], FAUCET_ADDRESS, units)
    chain.send_transaction(account.key, chain.usdc, data)


FAUCET_ADDRESS = Account.from_key(FAUCET_KEY).address


async def until_settling(gateway, task_id):
    """Return once the transaction of a payment is signed: the response may come earlier."""

    async def is_settling():
        task = await (await gateway.client.get(f"/api/task/{task_id}")).get_json()
        return task["payment"]["state"] == "settling"

    await until(is_settling)


async def state_of(gateway, task) -> str:
    return (await refund_of(gateway, task))["state"]


async def by_hand(gateway):
    """Return the refunds of a gateway that sweeps only on demand."""
    await gateway.services.lifecycle.warmed.wait()  # its start begins to sweep
    await gateway.services.refunds.close()
    return gateway.services.refunds


async def refused_by_the_token(gateway, payer, provider, chain, refund_key) -> tuple[dict, bytes]:
    """Fail a task whose signed refund could not be paid; return it, and the signed bytes."""
    refunds = gateway.services.refunds
    task = await late(gateway, payer, provider, chain)
    await approve(gateway, task)
    await until_state(gateway, task, "refunding")
    await until_sent(chain, refund_key)
    await refunds.close()
    signed = transfer_calldata(refunds._sign(await case_of(gateway, task)))
    for tx_hash in await sent_hashes(gateway):
        chain.drop(tx_hash)
    chain.set_automine(True)
    spend(chain, refund_key, 0)
    call_token(chain, "blacklist", payer.account.address)
    await refunds.sweep()
    assert await state_of(gateway, task) == "refund_failed"
    call_token(chain, "unBlacklist", payer.account.address)
    return task, signed


async def sent_hashes(gateway) -> list[str]:
    rows = await gateway.services.store._rows(
        "SELECT tx_hash FROM sent_transactions WHERE signer = ? ORDER BY nonce",
        gateway.services.refunds.address,
    )
    return [row["tx_hash"] for row in rows]
