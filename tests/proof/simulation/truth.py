"""The real events on the chain, read from its own blocks by an independent implementation."""

import attrs

from gateway.domain import Receipt
from gateway.domain.eip3009 import AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC
from tests.proof.simulation.chain import SimulatedChain
from tests.proof.simulation.market import WALLET
from tests.proof.simulation.token import TOKEN


@attrs.frozen
class Paid:
    """One USDC transfer to the wallet; `place` is its rank in its transaction."""

    tx_hash: str
    place: int
    log_index: int
    sender: str
    units: int
    key: str | None  # the authorization it used

    @property
    def identity(self) -> tuple:
        """The same for one transfer in whichever block it was mined."""
        return ("auth", self.key) if self.key else (self.tx_hash, self.place)


def paid_in(receipt: Receipt) -> list[Paid]:
    """Return the transfers to the wallet in one receipt."""
    found = []
    for place, log in enumerate(receipt.logs):
        if log.address != TOKEN or log.topics[0] != TRANSFER_TOPIC:
            continue
        if log.topics[2][-40:] != WALLET.lower()[2:]:
            continue
        before = receipt.logs[place - 1] if place else None
        key = None
        if before is not None and before.topics[0] == AUTHORIZATION_USED_TOPIC:
            key = f"auth:{TOKEN}:0x{before.topics[1][-40:]}:{before.topics[2]}"
        units = int.from_bytes(log.data, "big")
        sender = "0x" + log.topics[1][-40:]
        found.append(Paid(receipt.tx_hash, place, log.index, sender, units, key))
    return found


class Truth:
    """Every transfer to the wallet on the final chain."""

    def __init__(self, chain: SimulatedChain) -> None:
        self._chain = chain
        self.paid = [paid for receipt in chain.state.mined.values() for paid in paid_in(receipt)]
        self.by_key = {paid.key: paid for paid in self.paid if paid.key}
        self.by_identity = {paid.identity: paid for paid in self.paid}

    def recorded(self, tx_hash: str, log_index: int, payer: str, units: int) -> Paid | None:
        """Return the transfer of a record, in whichever block it was read."""
        versions = self._chain.versions.get(tx_hash, [])
        for receipt in reversed(versions):
            for paid in paid_in(receipt):
                if (paid.log_index, paid.sender, paid.units) == (log_index, payer, units):
                    return paid
        return None
