"""Receipts that are read at once: which calls they share, and what counts."""

import asyncio
from collections import Counter

import attrs
import pytest

from gateway import ChainUnavailable
from gateway.chain.receipts import Receipts

ONE, TWO = "0x" + "01" * 32, "0x" + "02" * 32
RECEIPT, LIST = "eth_getTransactionReceipt", "eth_getBlockReceipts"


def tx(number: int) -> str:
    return f"0x{number:064x}"


@attrs.define
class Endpoint:
    """An endpoint whose transactions are mined in the blocks that the test names."""

    blocks: dict = attrs.field(factory=dict)
    canonical: dict = attrs.field(factory=dict)
    place: int = 1
    lists: object = None
    asked: Counter = attrs.field(factory=Counter)
    failing: set = attrs.field(factory=set)

    def mine(self, number, block_hash, *hashes):
        self.canonical[number] = block_hash
        self.blocks |= dict.fromkeys(hashes, (number, block_hash))

    def raw(self, tx_hash):
        number, block_hash = self.blocks[tx_hash]
        return {
            "transactionHash": tx_hash,
            "blockNumber": hex(number),
            "blockHash": block_hash,
            "status": "0x1",
            "logs": [],
        }

    async def request(self, method, *params):
        self.asked[method] += 1
        await asyncio.sleep(0)
        if method in self.failing:
            raise ChainUnavailable("the method does not exist")
        if method == RECEIPT:
            return self.raw(params[0]) if params[0] in self.blocks else None
        number = int(params[0], 16)
        if method == LIST:
            mined = [self.raw(one) for one, (at, _) in self.blocks.items() if at == number]
            return mined if self.lists is None else self.lists(mined)
        block_hash = self.canonical.get(number)
        return block_hash and {"number": hex(number), "hash": block_hash, "timestamp": "0x1"}


@pytest.fixture
def endpoint():
    return Endpoint()


@pytest.fixture
def receipts():
    return Receipts(lambda: 0.0)


async def read(receipts, endpoint, *hashes):
    """Read receipts at once; returns the hashes that were found."""
    found = await asyncio.gather(*(receipts.read(endpoint, each) for each in hashes))
    assert all(one is None or one.tx_hash == each for one, each in zip(found, hashes, strict=True))
    return [one is not None and one.tx_hash for one in found]


async def test_many_receipts_of_a_block_take_three_calls(receipts, endpoint):
    hashes = [tx(number) for number in range(1, 40)]
    endpoint.mine(7, ONE, *hashes)
    assert await read(receipts, endpoint, *hashes) == hashes
    assert endpoint.asked == {RECEIPT: 1, LIST: 1, "eth_getBlockByNumber": 1}


async def test_many_receipts_of_two_blocks_take_two_lists(receipts, endpoint):
    first, second = [tx(n) for n in range(1, 11)], [tx(n) for n in range(11, 21)]
    endpoint.mine(7, ONE, *first)
    endpoint.mine(8, TWO, *second)
    assert await read(receipts, endpoint, *first, *second) == first + second
    assert endpoint.asked == {RECEIPT: 2, LIST: 2, "eth_getBlockByNumber": 2}


async def test_few_receipts_are_read_one_by_one(receipts, endpoint):
    endpoint.mine(7, ONE, tx(1), tx(2), tx(3))
    assert await read(receipts, endpoint, tx(1), tx(2), tx(3)) == [tx(1), tx(2), tx(3)]
    assert endpoint.asked[LIST] == 0


async def test_an_endpoint_without_lists_is_asked_for_one_only(receipts, endpoint):
    hashes = [tx(number) for number in range(1, 10)]
    endpoint.mine(7, ONE, *hashes)
    endpoint.failing = {LIST}
    for _ in range(3):
        assert await read(receipts, endpoint, *hashes) == hashes
    assert endpoint.asked[LIST] == 1


@pytest.mark.parametrize("nonsense", [lambda _: 1, lambda _: [{}], lambda _: ["0x"]])
async def test_a_list_that_is_nonsense_costs_no_receipt(receipts, endpoint, nonsense):
    hashes = [tx(number) for number in range(1, 10)]
    endpoint.mine(7, ONE, *hashes)
    endpoint.lists = nonsense
    assert await read(receipts, endpoint, *hashes) == hashes


@pytest.mark.parametrize("lists", [lambda _: None, lambda _: []])
async def test_a_receipt_that_the_list_lacks_is_asked_for_alone(receipts, endpoint, lists):
    hashes = [tx(number) for number in range(1, 10)]
    endpoint.mine(7, ONE, *hashes)
    endpoint.lists = lists
    assert await read(receipts, endpoint, *hashes) == hashes


async def test_a_receipt_in_the_list_of_another_block_does_not_count(receipts, endpoint):
    hashes = [tx(number) for number in range(1, 10)]
    endpoint.mine(7, ONE, tx(1))
    replaced = [
        {"transactionHash": each, "blockNumber": "0x7", "blockHash": TWO, "status": "0x1"}
        for each in hashes[1:]
    ]
    endpoint.lists = lambda mined: [*mined, *(one | {"logs": []} for one in replaced)]
    assert await read(receipts, endpoint, *hashes) == [tx(1)] + [False] * 8


async def test_no_receipt_of_a_list_counts_before_its_block(receipts, endpoint):
    hashes = [tx(number) for number in range(1, 10)]
    endpoint.mine(7, ONE, *hashes)
    endpoint.canonical[7] = TWO
    assert await read(receipts, endpoint, *hashes) == [False] * 9


async def test_the_others_ask_alone_if_the_first_is_not_mined(receipts, endpoint):
    hashes = [tx(number) for number in range(2, 10)]
    endpoint.mine(7, ONE, *hashes)
    assert await read(receipts, endpoint, tx(1), *hashes) == [False, *hashes]


async def test_the_others_ask_alone_if_the_first_gives_up(receipts, endpoint):
    hashes = [tx(number) for number in range(1, 10)]
    endpoint.mine(7, ONE, *hashes)
    first = asyncio.create_task(receipts.read(endpoint, tx(99)))
    rest = asyncio.create_task(read(receipts, endpoint, *hashes))
    await asyncio.sleep(0)
    first.cancel()
    assert await rest == hashes
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_silent_endpoint_answers_for_no_receipt(receipts, endpoint):
    endpoint.failing = {RECEIPT}
    with pytest.raises(ChainUnavailable):
        await receipts.read(endpoint, tx(1))
