"""The bank of the vouchers: an external server whose ledger is the truth about their money.

Its payment method is in `voucher_method.py`, its customers are in `voucher_people.py`, and its
invariants in `voucher_truth.py`.
"""

import contextvars
import random

import attrs

from gateway import MethodPayment, Refused, Taken
from tests.proof.simulation.world import World

NAME = "voucher"
_SHARE = 0.3  # of the histories have a shop that takes vouchers
_MOODS = {  # what becomes of a request to settle where the bank is in trouble, and how often
    "error before taking": 3,
    "error after taking": 4,
    "silent before taking": 1,
    "silent after taking": 2,
    "takes it later": 2,
    "an odd answer": 1,
    "refuses": 2,
}


@attrs.frozen
class Voucher:
    """A voucher that the bank has sold; `secret` is its unguessable part."""

    serial: str
    units: int
    owner: str
    refund_to: str | None
    expires_at: float
    secret: str

    @property
    def header(self) -> str:
        expires = f"{self.expires_at:.3f}"
        fields = (self.serial, self.units, self.owner, self.refund_to or "", expires, self.secret)
        return "|".join(map(str, fields))


@attrs.frozen
class Entry:
    """The bank's final decision on a claim; `refusal` None: it was taken."""

    claim: str
    serial: str
    task_id: str
    units: int
    refusal: str | None


@attrs.define
class Bank:
    """Sells vouchers and redeems them, each claim once; it survives the gateway."""

    world: World
    trouble: float  # how often a request to settle goes wrong
    dice: random.Random  # who its customers are; what they do, the world's own decide
    issued: dict[str, Voucher] = attrs.field(factory=dict)  # by serial
    revoked: set[str] = attrs.field(factory=set)  # serials
    ledger: dict[str, Entry] = attrs.field(factory=dict)  # by claim

    @classmethod
    def draw(cls, world: World) -> "Bank | None":
        """Return the bank of a history; None if the shop takes no vouchers.

        It has its own random generator, so histories without vouchers did not change.
        """
        dice = random.Random(f"vouchers {world.seed}")
        if dice.random() >= _SHARE:
            return None
        return cls(world, dice.choice((0.0, 0.1, 0.4, 0.9)), dice)

    # -- customers

    def issue(
        self, owner: str, units: int, *, seconds: float, refund_to: str | None = None
    ) -> Voucher:
        """Sell a voucher that is valid for some seconds."""
        voucher = Voucher(
            serial=f"no-{len(self.issued)}",
            units=units,
            owner=owner,
            refund_to=refund_to,
            expires_at=self.world.now() + seconds,
            secret=self.world.dice.randbytes(8).hex(),
        )
        self.issued[voucher.serial] = voucher
        self.world.note(f"{owner} buys voucher {voucher.serial} of {units}")
        return voucher

    def revoke(self, voucher: Voucher) -> None:
        """Refund the owner, unless a shop has the money already."""
        self.revoked.add(voucher.serial)

    # -- shops

    def complaint(self, header: str, now: float) -> str | None:
        """Return why a voucher is invalid now; None for a valid one."""
        voucher = self.issued.get(serial_of(header))
        if voucher is None or voucher.header != header:
            return "voucher_unknown"
        if any(entry.serial == voucher.serial for entry in self.ledger.values()):
            return "voucher_spent"
        if voucher.serial in self.revoked:
            return "voucher_revoked"
        return "voucher_expired" if now > voucher.expires_at else None

    def mood(self) -> str:
        if self.world.is_healed or self.world.dice.random() >= self.trouble:
            return "in order"
        mood = self.world.dice.choices(tuple(_MOODS), tuple(_MOODS.values()))[0]
        self.world.faults[f"bank: {mood}"] += 1
        self.world.note(f"bank: {mood}")
        return mood

    def take(self, asked: MethodPayment, *, refuses: bool = False) -> Taken | Refused:
        """Decide on a claim at the first request, and repeat the decision for every further one.

        Like a method's ledger, it knows a claim only by name. The gateway must ensure that no other
        claim uses the same voucher.
        """
        entry = self.ledger.get(asked.claim)
        if entry is None:
            entry = self.ledger[asked.claim] = self._decide(asked, refuses=refuses)
            self.world.note(f"bank decides: {entry}")
        if entry.task_id != asked.task_id:
            return Refused("voucher_spent")
        return Refused(entry.refusal) if entry.refusal else Taken(f"receipt of {asked.claim}")

    def take_later(self, asked: MethodPayment, seconds: float) -> None:
        """Take it when a delayed request arrives, even if its sender is gone."""
        own = contextvars.Context()
        self.world.loop.call_later(seconds, self.take, asked, context=own)

    def _decide(self, asked: MethodPayment, *, refuses: bool) -> Entry:
        header = asked.data.decode()
        voucher = self.issued[serial_of(header)]
        refusal = "bank_refused" if refuses else None
        if voucher.header != header:
            refusal = "voucher_unknown"
        elif voucher.serial in self.revoked:
            refusal = "voucher_revoked"
        elif asked.reserved_at > voucher.expires_at:
            refusal = "voucher_expired"
        return Entry(asked.claim, voucher.serial, asked.task_id, voucher.units, refusal)


def serial_of(header: str) -> str:
    return header.partition("|")[0]
