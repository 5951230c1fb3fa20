"""The faulty gateways of `make chaos` still fit the code that they change."""

import subprocess
import sys

import pytest

from tests.proof.chaos.mutants import MUTANTS
from tests.proof.chaos.releases import UPGRADE_MUTANTS
from tests.proof.process.gateway_process import ROOT

_PATCHES = MUTANTS | {
    f"{name}, {which}": release.patch
    for name, releases in UPGRADE_MUTANTS.items()
    for which, release in zip(("before", "after"), releases, strict=True)
    if release.patch
}


@pytest.mark.parametrize("patch", _PATCHES.values(), ids=_PATCHES)
def test_its_patch_finds_what_it_changes(patch):
    done = subprocess.run(
        [sys.executable, "-c", patch], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
