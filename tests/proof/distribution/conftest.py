"""The wheel of this checkout, built once for a run of tests."""

from pathlib import Path

import pytest

from tests.proof.distribution.clean_place import ROOT, built


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("wheel"))
