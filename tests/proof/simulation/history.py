"""One history: its participants, the process's deaths, the recovery, and the final checks."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import attrs

from tests.proof.simulation import burners as gas_burners
from tests.proof.simulation import (
    code_payers,
    crowd,
    invariants,
    late_payers,
    market,
    old_sales,
)
from tests.proof.simulation import delegators as delegating
from tests.proof.simulation.bank import Bank
from tests.proof.simulation.chain import SimulatedChain
from tests.proof.simulation.database import open_database
from tests.proof.simulation.flippers import Flipper
from tests.proof.simulation.ground import Ground
from tests.proof.simulation.life import Life
from tests.proof.simulation.people import DirectPayer, Payer, Town
from tests.proof.simulation.relay import Relay
from tests.proof.simulation.seams import seams
from tests.proof.simulation.third_parties import Cheat, Observer, ThirdParty
from tests.proof.simulation.voucher_people import Customer, VoucherBuyer, VoucherCheat
from tests.proof.simulation.weather import Weather
from tests.proof.simulation.world import World

_TROUBLE_S = 60.0  # after that the outside behaves
_HEALING_S = 4500.0  # longest validBefore, the margins after it, and time to spare
_POLL_S = 3.0


@attrs.define
class Cast:
    """The participants."""

    payers: list[Payer]
    directs: list[DirectPayer]
    observers: list[Observer]
    third_parties: list[ThirdParty]
    cheats: list[Cheat]
    weather: list[Weather]
    flippers: list[Flipper]
    customers: list[Customer]  # with vouchers
    spoilers: list[crowd.Spoiler] = attrs.field(factory=list)  # of batches
    burners: list[gas_burners.Burner] = attrs.field(factory=list)
    delegators: list[delegating.Delegator] = attrs.field(factory=list)
    old_buyers: list[old_sales.OldBuyer] = attrs.field(factory=list)  # of a lost database
    code_payers: list[DirectPayer] = attrs.field(factory=list)  # of reserved amounts

    @classmethod
    def draw(cls, town: Town, dice: random.Random, bank: Bank | None) -> "Cast":
        is_leaky = dice.random() < 0.25
        return cls(
            payers=[
                Payer(
                    town,
                    f"payer {n}",
                    leaks=is_leaky and dice.random() < 0.7,
                    idempotency_key=dice.choice((None, f"key {n}")),
                )
                for n in range(dice.randint(1, 3))
            ],
            directs=[
                DirectPayer(
                    town,
                    f"direct {n}",
                    idempotency_key=dice.choice((None, f"key {n}")),
                    proves=dice.random() < 0.5,
                )
                for n in range(dice.choice((0, 0, 1, 1, 2)))
            ],
            observers=[Observer(town) for _ in range(dice.choice((0, 1, 1)))],
            third_parties=[ThirdParty(town)] if is_leaky else [],
            cheats=[Cheat(town, "cheat")] if dice.random() < 0.3 else [],
            weather=[Weather(town, dice.choice((market.SIGNER, market.REFUNDER)))]
            if dice.random() < 0.6
            else [],
            flippers=[Flipper(town, "flipper")] if dice.random() < 0.1 else [],
            customers=_draw_customers(town, bank) if bank is not None else [],
        )

    def everybody(self) -> list:
        return [
            *self.payers,
            *self.directs,
            *self.observers,
            *self.third_parties,
            *self.cheats,
            *self.weather,
            *self.flippers,
            *self.customers,
            *self.spoilers,
            *self.burners,
            *self.delegators,
            *self.old_buyers,
            *self.code_payers,
        ]


def _draw_customers(town: Town, bank: Bank) -> list[Customer]:
    """Return the customers with vouchers, who are known in the town."""
    dice = bank.dice
    for n in range(dice.randint(1, 2)):
        key = dice.choice((None, f"key {n}"))
        town.customers.append(VoucherBuyer(town, bank, f"voucher {n}", idempotency_key=key))
    if dice.random() < 0.5:
        town.customers.append(VoucherCheat(town, bank, "voucher cheat"))
    return town.customers


@attrs.frozen(kw_only=True)
class Outcome:
    """The outcome of a history."""

    seed: int
    violations: tuple[str, ...]
    lives: int
    steps: int
    seconds: float  # of virtual time
    faults: Counter
    states: Counter  # of payments, by flow and state
    digest: str


class History:
    """Plays one seed."""

    def __init__(
        self,
        seed: int,
        *,
        tracing: Callable[[str], None] | None = None,
        relaxed: tuple[str, ...] = (),
    ) -> None:
        self.world = World(seed, tracing=tracing)
        self.chain = SimulatedChain(self.world)
        self.db = open_database(self.world, relaxed)
        terms = market.Terms.draw(self.world.dice).with_batches(seed)
        self.chain.fund(market.REFUNDER, terms.refund_units)
        relay = Relay(self.world, self.chain)
        bank = Bank.draw(self.world)
        self.ground = Ground(self.world, self.chain, self.db, relay, terms, bank)
        self.town = Town(self.world, self.chain)
        self.cast = Cast.draw(self.town, self.world.dice, bank)
        if terms.batch > 1:
            self.chain.batch_trouble = random.Random(f"gas {seed}").choice((0.0, 0.1, 0.5))
            payers, self.cast.spoilers = crowd.draw(self.town, seed)
            self.cast.payers += payers
        if late := late_payers.draw(self.town, seed):
            self.cast.payers += late
            late_payers.open_long_ago(self.db)
        else:
            self.cast.old_buyers = old_sales.draw(self.town, seed, self.db)
        if terms.settlement != "relay":
            self.cast.burners = gas_burners.draw(self.town, seed, in_crowd=terms.batch > 1)
            self.cast.delegators = delegating.draw(self.town, seed)
        self.cast.code_payers = code_payers.draw(self.town, seed)
        self.lives = 0

    def run(self) -> Outcome:
        world = self.world
        with seams(world):
            world.note(f"seed {world.seed}: {self.ground.terms}, {world.odds}")
            world.loop.run(self._play())
            violations = invariants.check(self.ground, self.cast)
            violations += [f"UNHANDLED {text}" for text in world.loop.complaints]
        for violation in violations:
            world.note(f"VIOLATION {violation}")
        states = Counter(
            f"{row['method'] or row['flow']} {row['state']}"
            for row in self.db.execute("SELECT * FROM payments")
        )
        self.db.close()
        return Outcome(
            seed=world.seed,
            violations=tuple(violations),
            lives=self.lives,
            steps=world.loop.steps,
            seconds=world.loop.time(),
            faults=world.faults,
            states=states,
            digest=world.digest(),
        )

    async def _play(self) -> None:
        world = self.world
        keeper = asyncio.ensure_future(self._keep_alive())
        self._plan_ends()
        await self.town.opened.wait()  # nobody pays a shop that was never open
        people = [asyncio.ensure_future(person.live()) for person in self.cast.everybody()]
        await asyncio.wait(people, timeout=_TROUBLE_S)
        world.note("the world heals")
        world.is_healed = True
        self.chain.heal()
        if world.dice.random() < 0.2:
            self._kill()
        await self._settle_down(people)
        self._kill()
        keeper.cancel()
        for person in people:
            if person.done() and person.exception() is not None:
                raise person.exception()  # the simulation's own mistake

    def _plan_ends(self) -> None:
        """Decide the steps at which the process dies, and when it gets SIGTERM."""
        dice, loop = self.world.dice, self.world.loop
        for _ in range(dice.choice((0, 0, 1, 1, 2, 3))):
            loop.after_steps(dice.randrange(10, 2500), self._kill)
        if dice.random() < 0.2:
            loop.call_later(dice.uniform(1.0, 40.0), self._stop)

    def _kill(self) -> None:
        if self.town.life is not None:
            self.town.life.kill()

    def _stop(self) -> None:
        if self.town.life is not None and self.town.life.is_open:
            self.town.life.stop()

    async def _keep_alive(self) -> None:
        """Restart the process whenever it has ended."""
        dice = self.world.dice
        while True:
            self.lives += 1
            self.town.life = life = Life(self.ground, self.lives, self.town.opened)
            await life.ended
            self.town.life = None
            await asyncio.sleep(dice.choice((0.0, 1.0, 15.0, 40.0)))

    async def _settle_down(self, people: list) -> None:
        """Wait until nothing is open, or for the longest possible time."""
        until = self.world.loop.time() + _HEALING_S
        while self.world.loop.time() < until:
            await asyncio.sleep(_POLL_S)
            is_waiting = any(not person.done() for person in people)
            if not (is_waiting or self.chain.pending or invariants.open_work(self.ground)):
                return


def run_history(seed: int, **options: object) -> Outcome:
    """Play one seed to its end."""
    return History(seed, **options).run()
