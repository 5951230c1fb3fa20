"""What several nodes believe alike about providers: who is off sale or paused, and whose share.

A node looks every few seconds: it tells what it found since, and believes what the others did. Of
a circuit only what the vendor says of the account, or of a model, is told. Failures in a row stay
with the node that met them: they may be of its own network. While the database is away, each node
keeps what it believed last.
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

# No vendor is believed for longer, whatever becomes of the database's clock.
_MOST_REST_S = 6 * 3600.0
_MOST_PAUSE_S = 3600.0
# What is told and read back differs by so little.
_NEWS_S = 0.5


@attrs.define
class _Subject:
    """A provider, or an endpoint's model, and what all nodes are known to believe of it."""

    name: str
    circuit: CircuitBreaker
    # None for a model: pauses are of the whole account.
    upstream: Upstream | None = None

    # Of the state that was read last.
    epoch: int = 0
    is_off: bool = False
    # By this node's clock.
    paused_until: float = 0.0

    def find_news(self, now: float) -> Iterator[Report]:
        """Yield what this node found and the others do not know."""
        circuit = self.circuit
        if circuit.problem is not None and circuit.is_account and not self.is_off:
            rest_s = min(max(circuit.probe_at - now, 0.0), _MOST_REST_S)
            yield OffSale(name=self.name, reason=circuit.problem, rest_s=rest_s)
        if self.is_off and not circuit.is_open:
            yield OnSale(name=self.name, epoch=self.epoch)
        if self.upstream is not None:
            until = self.upstream.pace.paused_until
            if until > max(now, self.paused_until) + _NEWS_S:
                yield Paused(name=self.name, pause_s=min(until - now, _MOST_PAUSE_S))

    def note_told(self, report: Report) -> None:
        """Note that a report is written down."""
        if not isinstance(report, Paused):
            self.is_off = isinstance(report, OffSale)

    def believe(self, state: ProviderState, *, is_own: bool) -> None:
        """Take the provider off sale or put it back, as the newest state says.

        What this node has just told (`is_own`) changes nothing here: it may have news by now.
        """
        if state.epoch == self.epoch:
            return
        was_off, self.is_off = self.is_off, state.off_reason is not None
        self.epoch = state.epoch
        if state.off_reason is not None and not is_own:
            rest_s = min(state.rest_s, _MOST_REST_S)
            self.circuit.trip(state.off_reason, pause_s=rest_s, is_account=True)
        elif was_off and not self.is_off and self.circuit.is_open:
            self.circuit.try_again()

    def believe_pause(self, pause_s: float, now: float, long_wait_s: float) -> None:
        """Let no submit out before a pause ends that the vendor asked any node for."""
        until = now + min(pause_s, _MOST_PAUSE_S)
        is_news = until > max(now, self.paused_until) + _NEWS_S
        if self.upstream is None or not is_news:
            return
        is_own = self.upstream.pace.paused_until + _NEWS_S >= until
        self.paused_until = until
        if not is_own:
            self.upstream.wait_as_asked(until - now, long_wait_s=long_wait_s)


def make_part(gateway: Gateway) -> Part:
    """Return the part that exchanges states every few seconds, first before the first sale."""
    store = gateway.store
    shared = SharedProviders(
        gateway.catalog,
        SqlProviderStates(store.read, store.write, store.nodes.name),
        gateway.now,
        long_wait_s=TaskTiming().long_wait_s,
    )
    gateway.keep(shared)
    every_s = gateway.timing.provider_states_s
    return Part(name="provider-states", start=shared.look, work=shared.look, every_s=every_s)


class SharedProviders:
    """Keeps a catalogue's circuits, pauses and shares as all nodes have them."""

    def __init__(
        self, catalog: Catalog, states: SqlProviderStates, now: Clock, *, long_wait_s: float
    ) -> None:
        """`long_wait_s`: a provider that asks for a longer pause is taken off sale."""
        self._catalog = catalog
        self._states = states
        self._now = now
        self._long_wait_s = long_wait_s
        self._subjects: dict[str, _Subject] = {}

    async def look(self) -> None:
        """Tell the other nodes what is new here, and believe what is new there."""
        subjects = self._find_subjects()
        now = self._now()
        news = {one.name: list(one.find_news(now)) for one in subjects.values()}
        try:
            shared = await self._states.exchange([one for each in news.values() for one in each])
        except StoreUnavailable:
            # The store has logged it. What was not told is still news at the next look.
            return
        for name, reports in news.items():
            for report in reports:
                subjects[name].note_told(report)
        self._believe(shared, subjects, news)
        self._share(shared, subjects)

    def _believe(
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
            subject.believe(state, is_own=is_own)
            subject.believe_pause(state.pause_s, now, self._long_wait_s)

    def _share(self, shared: SharedStates, subjects: dict[str, _Subject]) -> None:
        """Divide what a vendor allows at once, and in a minute, among the nodes that work."""
        if shared.node not in shared.workers:
            # It only sells, or the others take it for dead: then it keeps its part for now.
            return
        index = shared.workers.index(shared.node)
        for subject in subjects.values():
            if subject.upstream is not None:
                # Another node is the first for each provider, so that none has all remainders.
                rank = (index + zlib.crc32(subject.name.encode())) % len(shared.workers)
                subject.upstream.pace.share(nodes=len(shared.workers), rank=rank)

    def _find_subjects(self) -> dict[str, _Subject]:
        """Return every provider and model by a name that is the same on all nodes."""
        names: Counter[str] = Counter()
        for upstream in self._catalog.upstreams():
            name = f"provider:{upstream.plugin}:{upstream.provider.name}"
            names[name] += 1
            if names[name] > 1:
                # Of one plugin, in the order of registration.
                name = f"{name}:{names[name]}"
            if name not in self._subjects:
                self._subjects[name] = _Subject(name, upstream.circuit, upstream)
        for one in self._catalog.everything():
            name = f"endpoint:{one.endpoint.slug}"
            if name not in self._subjects:
                self._subjects[name] = _Subject(name, one.circuit)
        return self._subjects
