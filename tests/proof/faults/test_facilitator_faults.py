"""docs/faults.md holds for the facilitator: whatever it responds, the chain decides."""

from collections.abc import Iterator

import pytest

from tests.proof.faults import tables
from tests.proof.faults.cases import ENDS, run_case_with
from tests.proof.faults.facilitator_scene import FAST, FAULTS, FacilitatorScene
from tests.proof.faults.scene import Case, patience

(_TABLE,) = [table for table in tables.tables() if table.chapter == "X402, by a facilitator"]


class Stage:
    """The scene in use; it is replaced after a case has spoiled it."""

    def __init__(self) -> None:
        self._scene: FacilitatorScene | None = None

    def scene(self) -> FacilitatorScene:
        self._scene = self._scene or FacilitatorScene()
        return self._scene

    def drop(self) -> None:
        scene, self._scene = self._scene, None
        if scene is not None:
            scene.close()


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with patience(FAST):
        opened = Stage()
        yield opened
        opened.drop()


@pytest.mark.parametrize(("call", "fault", "end"), _TABLE.cells)
def test_a_facilitator_that_fails_ends_as_the_table_says(stage, call, fault, end):
    scene = stage.scene()
    case = Case(run="own", call=call, fault=fault)
    try:
        running = run_case_with(scene, case, FAULTS[fault], scene.facilitator, end)
        assert scene.run(running) == end
        assert set(scene.facilitator.seen) <= set(_TABLE.rows)
    except BaseException:
        stage.drop()
        raise


def test_the_table_speaks_the_words_that_the_page_explains():
    assert tables.words("The facilitator's faults") == set(FAULTS)
    assert {fault for _, fault, _ in _TABLE.cells} == set(FAULTS)
    assert {end for _, _, end in _TABLE.cells} <= set(ENDS)
