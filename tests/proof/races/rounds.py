"""The races: each round sends requests for the same money, all at once."""
# ruff: noqa: ASYNC110 - polls from outside, without an event

import asyncio
import random
import secrets

from tests.proof.races.shop import PRICE, Shop, tally


async def same_hash(shop: Shop, at_once: int) -> None:
    """One hash with different bodies: one is served, the others are refused with the reason."""
    async with shop.one_sale() as answers:
        tx_hash = shop.payer.transfer(PRICE)
        requests = (shop.pay_directly(tx_hash, f"boat {number}") for number in range(at_once))
        answers.extend(await asyncio.gather(*requests))
    assert tally(answers) == {"200": 1, "TX_ALREADY_USED": at_once - 1}


async def same_authorization(shop: Shop, at_once: int) -> None:
    """One header with one body: all get the same task."""
    header = shop.payer.header()
    async with shop.one_sale() as answers:
        answers.extend(await asyncio.gather(*(shop.buy(header) for _ in range(at_once))))
    assert tally(answers) == {"200": at_once}


async def same_authorization_other_bodies(shop: Shop, at_once: int) -> None:
    """One header with five bodies: one body wins for all its senders; the others pay nothing."""
    header = shop.payer.header()
    prompts = [f"boat {number % 5}" for number in range(at_once)]
    async with shop.one_sale() as answers:
        answers.extend(await asyncio.gather(*(shop.buy(header, prompt) for prompt in prompts)))
    served = {prompt for prompt, answer in _pairs(prompts, answers) if answer.status == 200}
    assert len(served) == 1
    refused = {
        answer.outcome for prompt, answer in _pairs(prompts, answers) if prompt not in served
    }
    assert refused <= {"402"}


async def hash_while_it_settles(shop: Shop, at_once: int) -> None:
    """The settlement's own hash in the direct flow, even before it is mined: it buys nothing."""
    header = shop.payer.header()
    buyers = at_once // 10 or 1
    async with shop.one_sale() as answers:
        shop.chain.set_automine(False)
        try:
            paying = [asyncio.create_task(shop.buy(header)) for _ in range(buyers)]
            tx_hash = await _broadcast(shop)
            thieves = [
                asyncio.create_task(shop.pay_directly(tx_hash)) for _ in range(at_once - buyers)
            ]
            await asyncio.sleep(random.uniform(0, 0.05))
        finally:
            shop.chain.set_automine(True)
        refused = await asyncio.gather(*thieves)
        answers.extend(await asyncio.gather(*paying))
    assert tally(answers) == {"200": buyers}
    assert tally(refused) == {"TX_ALREADY_USED": at_once - buyers}


async def same_idempotency_key(shop: Shop, at_once: int) -> None:
    """One hash under one Idempotency-Key: one body wins as one task, another is a conflict."""
    key = secrets.token_hex(8)
    prompts = ["a boat" if number % 5 else "a house" for number in range(at_once)]
    async with shop.one_sale() as answers:
        tx_hash = shop.payer.transfer(PRICE)
        about = {"Idempotency-Key": key}
        requests = (shop.pay_directly(tx_hash, prompt, **about) for prompt in prompts)
        answers.extend(await asyncio.gather(*requests))
    outcome: dict[str, set[str]] = {}
    for prompt, answer in _pairs(prompts, answers):
        outcome.setdefault(prompt, set()).add(answer.outcome)
    assert outcome["a boat"] != outcome["a house"]
    assert all(words in ({"200"}, LOSES) for words in outcome.values()), outcome


async def fresh_authorizations_under_one_key(shop: Shop, at_once: int) -> None:
    """One Idempotency-Key with different authorizations: one of them is used."""
    about = {"Idempotency-Key": secrets.token_hex(8)}
    async with shop.one_sale() as answers:
        requests = (shop.buy(shop.payer.header(), **about) for _ in range(at_once))
        answers.extend(await asyncio.gather(*requests))
    assert tally(answers) == {"200": at_once}


RACES = {
    "the same hash": same_hash,
    "the same authorization": same_authorization,
    "the same authorization, other bodies": same_authorization_other_bodies,
    "a settlement's hash while it settles": hash_while_it_settles,
    "the same Idempotency-Key": same_idempotency_key,
    "fresh authorizations, one key": fresh_authorizations_under_one_key,
}
LOSES = {"IDEMPOTENCY_CONFLICT"}


def _pairs(prompts, answers):
    return zip(prompts, answers, strict=True)


async def _broadcast(shop: Shop) -> str:
    """Return the hash of the settlement once it is pending."""
    async with asyncio.timeout(30):
        while not (waiting := shop.waiting()):
            await asyncio.sleep(0.001)
    return waiting[0]
