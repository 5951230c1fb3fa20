"""Mutants of receipts that were read from the list of their block."""

from collections.abc import Mapping
from typing import Any

from gateway.chain import decode
from gateway.chain.receipts import Receipts
from tests.proof.simulation import broken_settling
from tests.proof.simulation.mutant import ONE_USE, Mutant


class _AnyOf(Mapping[str, Any]):
    """The receipts of a block, the first of them for every transaction."""

    def __init__(self, raws: Mapping[str, Any]) -> None:
        self._raws = raws

    def __getitem__(self, tx_hash: str) -> Any:
        return next(iter(self._raws.values())) | {"transactionHash": tx_hash}

    def __iter__(self) -> Any:
        return iter(self._raws)

    def __len__(self) -> int:
        return len(self._raws)

    def __contains__(self, tx_hash: object) -> bool:
        return bool(self._raws)


def any_of_block() -> Mutant:
    original = Receipts._fetch_list

    async def _fetch_list(self: Any, *arguments: Any) -> Any:
        return _AnyOf(await original(self, *arguments))

    return Mutant(
        "any receipt of the block, by its status alone",
        ((Receipts, "_fetch_list", _fetch_list), *broken_settling.status_alone().patches),
        (ONE_USE,),
    )


def list_without_block() -> Mutant:
    original = decode.read_receipt

    async def _fetch_list(self: Any, endpoint: Any, number: str, block_hash: str) -> Any:
        raws = await endpoint.request("eth_getBlockReceipts", number) or ()
        return {raw["transactionHash"]: raw for raw in raws}

    def read_receipt(raw: Any, raw_block: Any, tx_hash: str) -> Any:
        known = raw_block or {"number": "0x1", "timestamp": "0x1"}
        return original(raw, known | {"hash": raw["blockHash"]}, tx_hash)

    return Mutant(
        "a receipt of a list counts in any block",
        ((Receipts, "_fetch_list", _fetch_list), (decode, "read_receipt", read_receipt)),
    )
