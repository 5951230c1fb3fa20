"""The verdict on nodes, for records written by hand."""

from tests.proof.chaos.nodes import Absence
from tests.proof.chaos.verdict import find_stolen, read_notes


def stolen(*lines: str, absences: tuple[Absence, ...] = ()) -> int:
    return len(find_stolen(read_notes(lines), absences))


def test_a_task_that_two_living_nodes_are_at_is_stolen():
    assert stolen("a begins 1 10.0", "a begins 2 10.5") == 1


def test_a_task_that_was_given_up_is_not():
    assert stolen("a begins 1 10.0", "a ends 1 10.4", "a begins 2 10.5") == 0


def test_the_end_of_another_nodes_attempt_gives_nothing_up():
    assert stolen("a begins 1 10", "a begins 2 11", "a ends 1 12", "a begins 3 13") == 2


def test_other_tasks_are_other_tasks():
    assert stolen("a begins 1 10.0", "b begins 2 10.5") == 0


def test_a_node_that_was_killed_has_lost_its_tasks():
    assert stolen("a begins 1 10", "a begins 2 12", absences=(Absence(1, 11.0),)) == 0


def test_a_node_that_is_killed_later_had_not():
    assert stolen("a begins 1 10", "a begins 2 12", absences=(Absence(1, 13.0),)) == 1


def test_a_node_that_stood_still_has_lost_its_tasks():
    assert stolen("a begins 1 10", "a begins 2 31", absences=(Absence(1, 11.0, 32.0),)) == 0


def test_a_node_that_stood_still_before_it_began_had_not():
    assert stolen("a begins 1 10", "a begins 2 11", absences=(Absence(1, 5.0, 9.0),)) == 1


def test_notes_are_told_in_the_order_of_time():
    assert [note.at for note in read_notes(["a begins 2 11", "a begins 1 10"])] == [10.0, 11.0]
