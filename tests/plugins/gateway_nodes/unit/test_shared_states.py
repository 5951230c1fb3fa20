"""The nodes' shared states of providers, with a database controlled by the test."""

import attrs
import pytest

from gateway.catalog.catalog import Catalog
from gateway.errors import StoreUnavailable
from gateway_nodes.provider_states import OffSale, OnSale, Paused, ProviderState, SharedStates
from gateway_nodes.shared_states import SharedProviders
from tests.unit.tasks.engine_shop import PAPER, PlainApi


class Table:
    """The rows of one database, like those of `SqlProviderStates`, with its own clock."""

    def __init__(self):
        self.now = 5_000.0
        self.rows = {}
        self.running = ["a", "b"]
        self.is_away = False
        self.reports = []

    def of_node(self, node):
        return NodeStates(self, node)


@attrs.define
class NodeStates:
    """One node's access to the table."""

    table: Table
    node: str

    async def exchange(self, reports):
        table = self.table
        if table.is_away:
            raise StoreUnavailable
        table.reports += reports
        for one in reports:
            epoch, reason, off, paused = table.rows.get(one.name, (0, None, 0.0, 0.0))
            match one:
                case OffSale():
                    row = (epoch + 1, one.reason, table.now + one.off_for_s, paused)
                case OnSale() if one.epoch == epoch and reason is not None:
                    row = (epoch + 1, None, 0.0, paused)
                case Paused():
                    row = (epoch, reason, off, max(paused, table.now + one.pause_s))
                case _:
                    continue
            table.rows[one.name] = row
        states = [
            ProviderState(
                name=name,
                epoch=row[0],
                off_reason=row[1],
                off_for_s=row[2] - table.now,
                pause_s=row[3] - table.now,
            )
            for name, row in table.rows.items()
        ]
        return SharedStates(states=states, workers=table.running, node=self.node)


class Node:
    """A node's catalogue with one provider and one endpoint, and possibly a wrong clock."""

    def __init__(self, table, name, *, ahead_s=0.0, **traits):
        self.table = table
        self.ahead_s = ahead_s
        api = PlainApi()
        if traits:
            api.traits = attrs.evolve(api.traits, **traits)
        self.catalog = Catalog({}, now=self.now, slots=8)
        self.catalog.register(PAPER, api, "test")
        self.shared = SharedProviders(
            self.catalog, table.of_node(name), self.now, long_wait_s=600.0
        )

    def now(self):
        return 1_700_000_000.0 + self.table.now + self.ahead_s

    @property
    def sold(self):
        (registered,) = self.catalog.everything()
        return registered

    @property
    def circuit(self):
        return self.sold.upstream.circuit

    @property
    def pace(self):
        return self.sold.upstream.pace

    @property
    def slugs(self):
        return [endpoint.slug for endpoint in self.catalog]


@pytest.fixture
def table():
    return Table()


@pytest.fixture
def nodes(table):
    # Clocks an hour apart: every time is the database's.
    return Node(table, "a"), Node(table, "b", ahead_s=3600.0)


async def looked(*nodes):
    for node in nodes:
        await node.shared.exchange()


async def test_what_one_node_takes_off_sale_no_node_sells(nodes):
    one, other = nodes
    one.circuit.trip("402: top up", pause_s=900, is_account=True)
    await looked(one, other)
    assert other.slugs == []
    assert other.sold.wait_s == float("inf")
    assert other.circuit.problem == "402: top up"
    # Only the operator can fix it, so paid tasks do not wait.
    assert other.sold.find_lasting_outage(1800.0) is other.circuit
    assert other.circuit.probe_at - other.now() == pytest.approx(900)


async def test_a_model_that_is_gone_is_gone_everywhere_and_its_vendor_is_not(nodes):
    one, other = nodes
    one.sold.circuit.trip("404: no such model", pause_s=6 * 3600, is_account=True)
    await looked(one, other)
    assert other.slugs == []
    assert not other.circuit.is_open


async def test_a_provider_that_a_reload_replaces_is_shared_too(nodes):
    one, other = nodes
    await looked(one, other)
    for node in nodes:
        node.catalog.replace("test", [(PAPER, PlainApi())])
    one.circuit.trip("402: top up", pause_s=900, is_account=True)
    await looked(one, other)
    assert other.slugs == []
    assert other.circuit.problem == "402: top up"


async def test_a_corrected_file_is_not_taken_off_sale_by_what_was_before(nodes):
    one, other = nodes
    one.circuit.trip("400: wrong request", pause_s=900, is_account=True)
    await looked(one, other)
    for node in nodes:
        node.catalog.replace("test", [(PAPER, PlainApi())])
    for _ in range(2):
        await looked(one, other)
        assert (one.slugs, other.slugs) == (["paper"], ["paper"])


async def test_whoever_finds_that_it_works_again_puts_it_back_for_all(nodes):
    one, other = nodes
    one.circuit.trip("402: top up", is_account=True)
    await looked(one, other)
    other.circuit.try_again()
    await looked(other, one)
    assert one.slugs == other.slugs == [PAPER.slug]
    # Each sells on trial first.
    assert one.circuit.is_on_trial


async def test_failures_in_a_row_stay_with_the_node_that_met_them(nodes, table):
    one, other = nodes
    for number in range(5):
        one.circuit.failed("Transient", f"task-{number}")
    await looked(one, other)
    assert (one.slugs, other.slugs, table.reports) == ([], [PAPER.slug], [])


async def test_a_trip_after_the_clearing_stands(nodes):
    one, other = nodes
    one.circuit.trip("402: top up", is_account=True)
    await looked(one, other)
    # One node clears it; the other learns of that, tries, and is refused again.
    one.circuit.try_again()
    await looked(one, other)
    other.circuit.trip("401: no such key", is_account=True)
    await looked(other, one)
    assert one.circuit.problem == other.circuit.problem == "401: no such key"


async def test_a_clearing_that_is_late_does_not_undo_a_newer_trip(nodes, table):
    one, other = nodes
    third = Node(table, "c")
    one.circuit.trip("402: top up", is_account=True)
    await looked(one, other, third)
    one.circuit.try_again()
    # The third one clears first and is refused again before the first one's report arrives.
    third.circuit.try_again()
    await looked(third)
    third.circuit.trip("401: no such key", is_account=True)
    await looked(third, one, other)
    assert one.circuit.problem == third.circuit.problem == "401: no such key"
    # It never received the clearing.
    assert other.slugs == []


async def test_two_that_are_refused_at_once_agree(nodes):
    one, other = nodes
    one.circuit.trip("402: first", is_account=True)
    other.circuit.trip("402: second", is_account=True)
    await looked(one, other, one)
    one.circuit.try_again()
    await looked(one, other)
    assert one.slugs == other.slugs == [PAPER.slug]
    await looked(one, other)
    assert one.slugs == other.slugs == [PAPER.slug]


async def test_news_of_one_look_is_told_once(nodes, table):
    one, other = nodes
    one.circuit.trip("402: top up", is_account=True)
    one.pace.pause(100)
    for _ in range(5):
        await looked(one, other)
        table.now += 2
    assert [type(report) for report in table.reports] == [OffSale, Paused]
    other.circuit.try_again()
    for _ in range(5):
        await looked(other, one)
    assert [type(report) for report in table.reports[2:]] == [OnSale]


async def test_no_node_submits_before_a_vendors_pause_ends(nodes, table):
    one, other = nodes
    one.pace.pause(100)
    await looked(one, other)
    table.now += 40
    await looked(one, other)
    assert (one.pace.wait_s(), other.pace.wait_s()) == (pytest.approx(60), pytest.approx(60))
    # It is short, so buyers may wait for it.
    assert other.slugs == [PAPER.slug]
    table.now += 61
    await looked(one, other)
    assert (one.pace.wait_s(), other.pace.wait_s()) == (0, 0)


async def test_no_node_sells_during_a_long_pause(nodes):
    one, other = nodes
    one.sold.upstream.pause_as_requested(700.0, long_wait_s=600.0)
    await looked(one, other)
    assert (one.slugs, other.slugs) == ([], [])
    # An operator's trial there is not undone by the same pause.
    other.circuit.try_again()
    await looked(one, other)
    assert other.slugs == [PAPER.slug]
    assert other.pace.wait_s() == pytest.approx(700)


async def test_a_pause_in_the_past_and_one_without_end_do_no_harm(nodes, table):
    one, other = nodes
    table.rows["provider:test:" + one.sold.upstream.provider.name] = (0, None, 0.0, 1.0)
    await looked(one, other)
    assert other.pace.wait_s() == 0
    # The database's clock was years ahead when it was written.
    name = next(iter(table.rows))
    table.rows[name] = (1, "402", table.now + 1e9, table.now + 1e9)
    await looked(one, other)
    assert other.pace.paused_until - other.now() <= 3600
    assert other.circuit.probe_at - other.now() <= 6 * 3600


async def test_a_rest_that_is_long_over_is_probed_soon(nodes, table):
    one, _ = nodes
    table.rows["provider:test:" + one.sold.upstream.provider.name] = (7, "402", 1.0, 0.0)
    await looked(one)
    assert one.slugs == []
    assert 0 < one.circuit.probe_at - one.now() <= 30


async def test_while_the_database_is_away_the_last_belief_stands(nodes, table):
    one, other = nodes
    one.circuit.trip("402: top up", is_account=True)
    await looked(one, other)
    table.is_away = True
    other.circuit.try_again()
    await looked(one, other)
    assert (one.slugs, other.slugs) == ([], [PAPER.slug])
    table.is_away = False
    await looked(other, one)
    assert one.slugs == [PAPER.slug]


async def test_a_database_that_has_forgotten_is_not_told_for_ever(nodes, table):
    one, other = nodes
    one.circuit.trip("402: top up", is_account=True)
    await looked(one, other)
    table.rows.clear()
    table.reports.clear()
    one.circuit.try_again()
    for _ in range(3):
        await looked(one)
    assert len(table.reports) == 1


async def test_rows_of_providers_that_are_gone_are_passed_over(nodes, table):
    table.rows["provider:gone:gone"] = (3, "402", table.now + 9, table.now + 9)
    await looked(*nodes)
    assert nodes[0].slugs == [PAPER.slug]


# -- shares


def free_of(nodes):
    return sorted(node.pace.free_submits() for node in nodes)


@pytest.mark.parametrize(("most", "parts"), [(7, [2, 2, 3]), (3, [1, 1, 1]), (1, [0, 0, 1])])
async def test_the_nodes_share_what_a_vendor_allows_at_once(table, most, parts):
    table.running = ["a", "b", "c"]
    nodes = [Node(table, name, max_concurrency=most) for name in "abc"]
    await looked(*nodes)
    assert free_of(nodes) == parts
    # A node has died: the others get its share.
    table.running = ["a", "c"]
    left = [nodes[0], nodes[2]]
    await looked(*left)
    assert sum(free_of(left)) == most
    table.running = ["a", "b", "c"]
    await looked(*nodes)
    assert free_of(nodes) == parts


async def test_what_runs_counts_after_a_node_has_come(table):
    table.running = ["a"]
    one, late = (Node(table, name, max_concurrency=4) for name in "ab")
    await looked(one)
    with one.pace.slot(), one.pace.slot(), one.pace.slot():
        table.running = ["a", "b"]
        await looked(one, late)
        assert (one.pace.free_submits(), late.pace.free_submits()) == (0, 2)


async def test_submits_of_a_minute_are_shared_among_those_that_may_work(table):
    table.running = ["a", "b", "c"]
    nodes = [Node(table, n, max_concurrency=2, submits_per_minute=5) for n in "abc"]
    await looked(*nodes)
    assert free_of(nodes) == [0, 1, 1]
    for node in nodes:
        while node.pace.free_submits():
            node.pace.submitted()
            with node.pace.slot():
                pass
    sent = [node.pace._count_recent() for node in nodes]
    assert sorted(sent) == [0, 2, 3]
    few = [Node(table, n, submits_per_minute=1) for n in "abc"]
    await looked(*few)
    assert free_of(few) == [0, 0, 1]
    assert sorted(node.pace.wait_s() for node in few)[1:] == [float("inf")] * 2


async def test_a_provider_that_names_no_number_is_asked_by_every_node_in_full(table):
    nodes = [Node(table, name) for name in "ab"]
    await looked(*nodes)
    assert free_of(nodes) == [8, 8]


async def test_a_node_that_the_others_take_for_dead_keeps_its_part(table):
    node = Node(table, "b", max_concurrency=4)
    await looked(node)
    table.running = ["a"]
    await looked(node)
    assert node.pace.free_submits() == 2
