"""Shares provider states between nodes: off sale, paused, and each node's share of the limits.

Every few seconds a node reports its own findings and applies those of the others. Only a vendor's
refusal of an account or a model is reported. Consecutive failures are not, because they may be due
to the node's own network. While the database is down, each node keeps the last known states.
"""

import zlib
from collections import Counter
from collections.abc import Iterator

import attrs

from gateway.catalog.catalog import Catalog
from gateway.catalog.circuit_breaker import CircuitBreaker
from gateway.catalog.upstream import Upstream
from gateway.contracts import Clock
from gateway.contracts.parts import Part
from gateway.errors import StoreUnavailable
from gateway.running.gateway import Gateway
from gateway.tasks import TaskTiming
from gateway_nodes.provider_states import (
    OffSale,
    OnSale,
    Paused,
    ProviderState,
    Report,
    SharedStates,
    SqlProviderStates,
)

# Limits of shared rests and pauses, in case the database's clock is wrong.
_MAX_OFF_S = 6 * 3600.0
_MAX_PAUSE_S = 3600.0
# Tolerance between a reported time and the same time read back.
_NEWS_S = 0.5


@attrs.define
class _Subject:
    """A provider, or an endpoint's model, and its last known shared state."""

    name: str
    circuit: CircuitBreaker
    # None for a model: pauses apply to the whole account.
    upstream: Upstream | None = None

    # Of the last shared state.
    epoch: int = 0
    is_off: bool = False
    # By this node's clock.
    paused_until: float = 0.0

    def find_news(self, now: float) -> Iterator[Report]:
        """Yield this node's findings that the other nodes do not have."""
        circuit = self.circuit
        if circuit.problem is not None and circuit.is_account and not self.is_off:
            off_for_s = min(max(circuit.probe_at - now, 0.0), _MAX_OFF_S)
            yield OffSale(name=self.name, reason=circuit.problem, off_for_s=off_for_s)
        if self.is_off and not circuit.is_open:
            yield OnSale(name=self.name, epoch=self.epoch)
        if self.upstream is not None:
            until = self.upstream.pace.paused_until
            if until > max(now, self.paused_until) + _NEWS_S:
                yield Paused(name=self.name, pause_s=min(until - now, _MAX_PAUSE_S))

    def note_reported(self, report: Report) -> None:
        """Note that a report was stored."""
        if not isinstance(report, Paused):
            self.is_off = isinstance(report, OffSale)

    def apply(self, state: ProviderState, *, is_own: bool) -> None:
        """Take the provider off sale or put it back, as in the newest state.

        This node's own report (`is_own`) changes nothing here: the circuit may have changed since.
        """
        if state.epoch == self.epoch:
            return
        was_off, self.is_off = self.is_off, state.off_reason is not None
        self.epoch = state.epoch
        if state.off_reason is not None and not is_own:
            off_for_s = min(state.off_for_s, _MAX_OFF_S)
            self.circuit.trip(state.off_reason, pause_s=off_for_s, is_account=True)
        elif was_off and not self.is_off and self.circuit.is_open:
            self.circuit.try_again()

    def apply_pause(self, pause_s: float, now: float, long_wait_s: float) -> None:
        """Hold back submits during a pause that the vendor asked any node for."""
        until = now + min(pause_s, _MAX_PAUSE_S)
        is_news = until > max(now, self.paused_until) + _NEWS_S
        if self.upstream is None or not is_news:
            return
        is_own = self.upstream.pace.paused_until + _NEWS_S >= until
        self.paused_until = until
        if not is_own:
            self.upstream.pause_as_requested(until - now, long_wait_s=long_wait_s)


def make_part(gateway: Gateway) -> Part:
    """Return the part that exchanges states before the first sale and every few seconds."""
    store = gateway.store
    shared = SharedProviders(
        gateway.catalog,
        SqlProviderStates(store.read, store.write, store.nodes.name),
        gateway.now,
        long_wait_s=TaskTiming().long_wait_s,
    )
    gateway.keep(shared)
    every_s = gateway.timing.provider_states_s
    return Part(
        name="provider-states",
        start=shared.exchange,
        work=shared.exchange,
        every_s=every_s,
        resume=shared.exchange,
    )


class SharedProviders:
    """Keeps a catalogue's circuits, pauses and shares in sync with the other nodes."""

    def __init__(
        self, catalog: Catalog, states: SqlProviderStates, now: Clock, *, long_wait_s: float
    ) -> None:
        """`long_wait_s`: a provider that asks for a longer pause is taken off sale."""
        self._catalog = catalog
        self._states = states
        self._now = now
        self._long_wait_s = long_wait_s
        self._subjects: dict[str, _Subject] = {}

    async def exchange(self) -> None:
        """Report news of this node, and apply news of the others."""
        subjects = self._find_subjects()
        now = self._now()
        news = {one.name: list(one.find_news(now)) for one in subjects.values()}
        try:
            shared = await self._states.exchange([one for each in news.values() for one in each])
        except StoreUnavailable:
            # The store has logged it. The next exchange reports the same news.
            return
        for name, reports in news.items():
            for report in reports:
                subjects[name].note_reported(report)
        self._apply(shared, subjects, news)
        self._share(shared, subjects)

    def _apply(
        self,
        shared: SharedStates,
        subjects: dict[str, _Subject],
        news: dict[str, list[Report]],
    ) -> None:
        now = self._now()
        for state in shared.states:
            subject = subjects.get(state.name)
            if subject is None:
                continue
            is_own = any(isinstance(one, OffSale) for one in news[state.name])
            subject.apply(state, is_own=is_own)
            subject.apply_pause(state.pause_s, now, self._long_wait_s)

    def _share(self, shared: SharedStates, subjects: dict[str, _Subject]) -> None:
        """Divide each vendor's concurrency and rate limits among the worker nodes."""
        if shared.node not in shared.workers:
            # It runs no workers, or the others consider it dead: keep the current share.
            return
        index = shared.workers.index(shared.node)
        for subject in subjects.values():
            if subject.upstream is not None:
                # Rotate the order per provider, so that no node gets every remainder.
                rank = (index + zlib.crc32(subject.name.encode())) % len(shared.workers)
                subject.upstream.pace.share(nodes=len(shared.workers), rank=rank)

    def _find_subjects(self) -> dict[str, _Subject]:
        """Return every provider and model by its name, which is the same on all nodes."""
        names: Counter[str] = Counter()
        for upstream in self._catalog.upstreams():
            name = f"provider:{upstream.plugin}:{upstream.provider.name}"
            names[name] += 1
            if names[name] > 1:
                # Same plugin and name: numbered in the order of registration.
                name = f"{name}:{names[name]}"
            self._keep(_Subject(name, upstream.circuit, upstream))
        for one in self._catalog.everything():
            self._keep(_Subject(f"endpoint:{one.endpoint.slug}", one.circuit))
        return self._subjects

    def _keep(self, subject: _Subject) -> None:
        """Keep a subject with its last known state; a reload may replace its circuit."""
        known = self._subjects.get(subject.name)
        if known is not None:
            # What was known of the earlier circuit is no news, and the new one is on sale.
            known.circuit, known.upstream = subject.circuit, subject.upstream
        else:
            self._subjects[subject.name] = subject
