"""Power cuts during commits of money: everything acknowledged is in every image of the disk.

`make crash` tests more moments.
"""

import random

import pytest

from tests.proof.crashes import power


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("full"))


def recorded(folder, **how):
    try:
        return power.record(folder / "recorded", **how)
    except power.CannotRecord as error:
        pytest.skip(str(error))


def images(recording, count, tmp_path):
    return list(power.cut(recording, count, random.Random(3), tmp_path / "image"))


def test_a_power_cut_loses_nothing_that_was_acknowledged(recording, tmp_path):
    left = images(recording, 12, tmp_path)
    assert [image for image in left if image.lost or image.damage] == []
    assert len({image.moment for image in left}) == 12
    assert max(image.told for image in left) > 1000


@pytest.mark.full
def test_the_recorder_sees_commits_checkpoints_and_new_files(recording):
    done = [(step.kind, step.path.rpartition("/")[2]) for step in power.steps(recording)]
    assert done.count(("S", "gateway.db-wal")) > 100
    assert done.count(("S", "gateway.db")) > 1
    assert {("C", "gateway.db"), ("C", "gateway.db-wal"), ("D", "data")} <= set(done)


@pytest.mark.full
def test_with_synchronous_normal_a_power_cut_does_lose_what_was_acknowledged(tmp_path):
    """Shows that the images can detect a loss: an unsafe setting is caught."""
    left = images(recorded(tmp_path, synchronous="NORMAL", rounds=10), 8, tmp_path)
    assert [image for image in left if image.lost]
    assert [image for image in left if image.damage] == []
