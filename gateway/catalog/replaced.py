"""The endpoints of one plugin before and after a reload."""

from collections.abc import Mapping

import attrs

from gateway.catalog.registered import Registered
from gateway.domain import QUOTE_LIFE_S


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Replaced:
    """A plugin's endpoints after a reload, and how they differ."""

    # By slug, with those that are removed.
    endpoints: Mapping[str, Registered]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __str__(self) -> str:
        parts = (("added", self.added), ("removed", self.removed), ("changed", self.changed))
        return "; ".join(f"{verb} {', '.join(slugs)}" for verb, slugs in parts if slugs)


def replace_all(
    before: Mapping[str, Registered], made: Mapping[str, Registered], *, now: float
) -> Replaced:
    """Compare a plugin's endpoints. `before` includes those that an earlier reload removed."""
    known = {slug: one for slug, one in before.items() if not one.is_removed}
    new = {slug: _keep_circuit(known.get(slug), one) for slug, one in made.items()}
    gone = {slug: _remove(one, now) for slug, one in before.items() if slug not in made}
    return Replaced(
        endpoints={**gone, **new},
        added=tuple(slug for slug in new if slug not in known),
        removed=tuple(slug for slug in known if slug not in new),
        changed=tuple(
            slug for slug, one in new.items() if slug in known and _differ(known[slug], one)
        ),
    )


def _remove(one: Registered, now: float) -> Registered:
    until = one.honoured_until if one.is_removed else now + QUOTE_LIFE_S
    return attrs.evolve(one, is_removed=True, honoured_until=until)


def _differ(old: Registered, new: Registered) -> bool:
    return old.endpoint != new.endpoint or old.upstream is not new.upstream


def _keep_circuit(old: Registered | None, new: Registered) -> Registered:
    """Keep the circuit of an endpoint whose provider and model are the same."""
    if old is None or old.upstream is not new.upstream or old.endpoint.model != new.endpoint.model:
        return new
    return attrs.evolve(new, circuit=old.circuit)
