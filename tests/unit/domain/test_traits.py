"""The old name of a provider's trait works, and a warning gives the new one."""

import warnings

import attrs
import pytest

from gateway import Traits


def test_the_old_name_of_a_trait_sets_the_new_one_and_warns():
    with pytest.warns(DeprecationWarning, match="resubmit_after_cancel") as warned:
        traits = Traits(cancellable=True)
    assert warned[0].filename == __file__
    assert traits == Traits(resubmit_after_cancel=True)
    with pytest.warns(DeprecationWarning, match="resubmit_after_cancel") as warned:
        assert traits.cancellable is True
    assert warned[0].filename == __file__


def test_a_trait_that_was_set_by_its_old_name_is_changed_by_its_new_one():
    with pytest.warns(DeprecationWarning, match="resubmit_after_cancel"):
        traits = Traits(cancellable=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        changed = attrs.evolve(traits, max_concurrency=2)
        assert changed == Traits(resubmit_after_cancel=True, max_concurrency=2)
        assert not attrs.evolve(traits, resubmit_after_cancel=False).resubmit_after_cancel
