"""Conditions of endpoints: off sale, failing, sold at a loss, soon retired."""

import datetime as dt
from collections.abc import Iterator, Mapping

from gateway_operator.desk.condition import Condition, Thresholds
from gateway_operator.desk.facts import EndpointFacts, Facts
from gateway_operator.desk.wording import age, join, sentence, usdc


def _off_sale(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    for provider, endpoints in _by_provider(facts).items():
        first = endpoints[0]
        since = first.off_since if first.off_since is not None else facts.at
        is_long = facts.at - since >= limits.off_sale_urgent_s
        yield Condition(
            condition="off_sale",
            subject=provider,
            level="bad" if is_long or first.is_account else "warn",
            title=f"{join(one.slug for one in endpoints)}: off sale",
            text=f"{sentence(first.problem or '')} Nobody is charged.",
            action=_suggest_fix(first),
            page="endpoints",
            button="View the endpoint",
            href=f"/admin/endpoints#{first.slug}",
        )


def _unchecked(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield endpoints whose results nothing checks; their problem names the way out."""
    for one in facts.endpoints:
        if one.is_unchecked and not one.is_switched_off:
            yield Condition(
                condition="unchecked",
                subject=one.slug,
                level="bad",
                title=f"{one.slug}: off sale",
                text=f"{sentence(one.problem or '')} Nobody is charged.",
                action=f"Run `gateway plugins`, repair what it names, or switch {one.slug} off.",
                page="endpoints",
                button="View the endpoint",
                href=f"/admin/endpoints#{one.slug}",
            )


def _suggest_fix(one: EndpointFacts) -> str:
    if one.is_held:
        return "Set or remove the value on the page Settings, then restart the gateway."
    if one.is_account:
        return "Fix the key, credit or model at the vendor, then press Try now."
    return "Wait: it is tried again automatically. Pause it if it keeps failing."


def _retiring(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    for one in facts.endpoints:
        if one.is_switched_off or one.retires_at - facts.at > limits.retires_soon_s:
            continue
        day = dt.datetime.fromtimestamp(one.retires_at, dt.UTC).date().isoformat()
        gone = f"its vendor does not serve {one.model} any more"
        yield Condition(
            condition="retires",
            subject=one.slug,
            level="bad" if one.is_retired else "warn",
            title=(
                f"{one.slug} is not sold: {gone}" if one.is_retired else f"{one.slug} ends on {day}"
            ),
            text=f"The vendor stops serving {one.model} on {day}.",
            action=f"Set another model for {one.slug}, or switch it off.",
            page="endpoints",
            button="View the endpoint",
            href=f"/admin/endpoints#{one.slug}",
        )


def _failures(facts: Facts, limits: Thresholds) -> Iterator[Condition]:
    for one in facts.endpoints:
        if one.failed < limits.failures_soon:
            continue
        yield Condition(
            condition="failures",
            subject=one.slug,
            level="bad" if one.failed >= limits.failures_urgent else "warn",
            title=f"{one.slug} fails: {one.failed} of its last {one.recent_tasks}",
            text="Each failed sale must be refunded. The tasks show the vendor's error.",
            action="Read the errors. Pause the endpoint if it keeps failing.",
            page="tasks",
            button="View the tasks",
            href=f"/admin/tasks?slug={one.slug}&status=failed",
        )


def _below_cost(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    for one in facts.endpoints:
        if one.cost_micros is not None and one.price_units < one.cost_micros and one.sells:
            yield Condition(
                condition="margin",
                subject=one.slug,
                level="bad",
                title=f"{one.slug} is sold below its cost",
                text=(
                    f"It costs {usdc(one.cost_micros)} US dollars and is sold for "
                    f"{usdc(one.price_units)} USDC."
                ),
                action="Raise the price, or pause the endpoint.",
                page="endpoints",
                button="Change the price",
                href=f"/admin/endpoints/{one.slug}/price",
            )


def _losing(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    """Yield endpoints whose newest tasks lost money although the price covers the cost."""
    for one in facts.endpoints:
        if one.margin_units is None or one.margin_units >= 0 or not one.sells:
            continue
        yield Condition(
            condition="margin_of_late",
            subject=one.slug,
            level="warn",
            title=f"{one.slug} lost money in its newest 20 tasks",
            text=(
                f"Each cost {usdc(-one.margin_units)} more than it brought, on average, "
                "before gas. Failed tasks were refunded and may have been billed."
            ),
            action="Raise the price, or pause the endpoint.",
            page="endpoints",
            button="Change the price",
            href=f"/admin/endpoints/{one.slug}/price",
        )


def _unknown_cost(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    unknown = [one for one in facts.endpoints if one.uncosted and one.cost_micros is None]
    if unknown:
        yield Condition(
            condition="cost_unknown",
            level="note",
            title="Margin unknown",
            text=f"{join(one.slug for one in unknown)}: no cost is reported or set.",
            action="Set what one generation costs you.",
            page="endpoints",
            button="Set a cost",
            href=f"/admin/endpoints/{unknown[0].slug}/cost",
            raises_alarm=False,
        )


def _paused(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    for one in facts.endpoints:
        if one.is_paused and one.pause is not None:
            reason = f" Reason: {one.pause.reason}" if one.pause.reason else ""
            yield Condition(
                condition="paused",
                subject=one.slug,
                level="note",
                title=f"{one.slug} is paused by you",
                text=f"Since {age(facts.at - one.pause.at)}.{reason}",
                action="Resume it when it should be sold again.",
                page="endpoints",
                button="Resume",
                href=f"/admin/endpoints/{one.slug}/resume",
                raises_alarm=False,
            )


def _fallback_used(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    for one in facts.endpoints:
        if one.made_by is None:
            continue
        lasted = f" for {age(facts.at - one.off_since)}" if one.off_since is not None else ""
        yield Condition(
            condition="fallback_used",
            subject=one.slug,
            # A key or a bill that only the operator can repair is not forgotten.
            level="warn" if one.is_account else "note",
            title=f"{one.slug} is made by {one.made_by}",
            text=f"Its own vendor has failed{lasted}: {sentence(one.problem or '')}",
            action=_suggest_fix(one),
            page="endpoints",
            button="View the endpoint",
            href=f"/admin/endpoints#{one.slug}",
        )


def _fallback_unusable(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    for one in facts.endpoints:
        # What nothing checks is off sale whatever its vendor does.
        is_off = one.is_switched_off or one.is_unchecked
        if one.fallback is None or not one.fallback_problem or is_off:
            continue
        yield Condition(
            condition="fallback_unusable",
            subject=one.slug,
            level="warn",
            title=f"{one.fallback} cannot make the orders of {one.slug}",
            text=f"It is the fallback, but {one.fallback_problem}. So {one.slug} is off sale while "
            "its own vendor fails.",
            action="Choose another fallback, or none.",
            page="endpoints",
            button="Change the fallback",
            href=f"/admin/endpoints/{one.slug}/fallback",
        )


def _fallback_doubts(facts: Facts, _: Thresholds) -> Iterator[Condition]:
    for one in facts.endpoints:
        if not one.fallback_doubts or one.fallback_problem or one.is_switched_off:
            continue
        yield Condition(
            condition="fallback_doubts",
            subject=one.slug,
            level="note",
            title=f"Check the fallback of {one.slug}",
            text=one.fallback_doubts,
            action="Set its cost, or choose another fallback.",
            page="endpoints",
            button="Change the fallback",
            href=f"/admin/endpoints/{one.slug}/fallback",
            raises_alarm=False,
        )


def _by_provider(facts: Facts) -> Mapping[str, list[EndpointFacts]]:
    found: dict[str, list[EndpointFacts]] = {}
    for one in facts.endpoints:
        is_told = one.is_switched_off or one.is_unchecked or one.made_by is not None
        if one.problem is not None and not is_told:
            found.setdefault(one.provider, []).append(one)
    return found


ENDPOINT_RULES = (
    _off_sale,
    _unchecked,
    _fallback_used,
    _fallback_unusable,
    _fallback_doubts,
    _retiring,
    _failures,
    _below_cost,
    _losing,
    _unknown_cost,
    _paused,
)
