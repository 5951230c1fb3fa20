"""The simulation of the money code: histories without a violation, mutants that are caught."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.chain import signer
from gateway.contracts import NoFreeNonce
from gateway_local_settler import keys
from tests.proof.simulation.__main__ import main
from tests.proof.simulation.campaign import run_chunk
from tests.proof.simulation.history import run_history
from tests.proof.simulation.mutant import patched
from tests.proof.simulation.mutants import hunt
from tests.proof.simulation.mutants import main as hunt_all
from tests.proof.simulation.mutations import MUTANTS, REQUIRED, SHOWN_BY

ROOT = Path(__file__).parents[3]
_CHUNK = 100  # `make sim` plays a hundred thousand


@pytest.mark.parametrize("chunk", [0, pytest.param(1, marks=pytest.mark.full)])
def test_two_hundred_histories_break_no_promise(chunk):
    report = run_chunk(range(chunk * _CHUNK, (chunk + 1) * _CHUNK))
    assert report.violations == []
    assert report.histories == _CHUNK
    assert report.faults["kill -9"] > _CHUNK / 2
    assert report.states["x402 settled"] > _CHUNK
    assert report.states["x402 released"] > 0
    assert report.states["direct settled"] > 0
    assert report.states["voucher settled"] > 0


def test_payments_that_wait_for_the_only_nonce_break_no_promise(monkeypatch):
    waits, raised = [], NoFreeNonce.__init__

    def noted(self, signer):
        waits.append(signer)
        raised(self, signer)

    monkeypatch.setattr(NoFreeNonce, "__init__", noted)
    with patched((signer, "MAX_WAITING", 1), (keys, "MAX_WAITING", 1)):
        report = run_chunk(range(8))
    assert report.violations == []
    assert len(waits) > 5


# The first one is of a shop that takes vouchers.
@pytest.mark.parametrize("seed", [3, 7, 77, 777])
def test_one_seed_replays_one_history(seed):
    first, second = [], []
    once = run_history(seed, tracing=first.append)
    again = run_history(seed, tracing=second.append)
    assert first == second
    assert (once.digest, once.steps, once.faults) == (again.digest, again.steps, again.faults)
    assert len(first) > 20


@pytest.mark.full
def test_a_history_does_not_depend_on_the_process_that_plays_it():
    command = [sys.executable, "-m", "tests.proof.simulation", "--seed", "5", "--trace"]
    environments = [os.environ | {"PYTHONHASHSEED": salt} for salt in ("1", "2")]
    first, second = (
        subprocess.run(command, env=env, cwd=ROOT, capture_output=True, check=True).stdout
        for env in environments
    )
    assert first == second
    assert b" serves" in first


def test_other_seeds_are_other_histories():
    digests = {run_history(seed, tracing=lambda _: None).digest for seed in range(5)}
    assert len(digests) == 5


def test_the_mutants_that_payments_md_lists_are_all_there():
    assert len(REQUIRED) == 8
    assert set(REQUIRED) <= set(MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name):
    catch = hunt(name, first_seed=SHOWN_BY[name])
    assert catch.violation, f"{catch.histories} histories did not notice"


def test_the_command_says_which_history_broke_a_promise_and_how_to_see_it_again(capsys):
    catch = hunt("status-alone", first_seed=SHOWN_BY["status-alone"])
    broken = ["--seed", str(catch.seed), "--mutant", "status-alone", "--trace"]
    assert main(broken) == 1
    output = capsys.readouterr().out
    assert catch.violation in output
    assert f"--seed {catch.seed} --mutant status-alone --trace" in output
    assert main(["--seed", str(catch.seed)]) == 0


@pytest.mark.full
def test_many_histories_end_in_a_table(capsys):
    assert main(["--histories", "4", "--processes", "1"]) == 0
    output = capsys.readouterr().out
    assert "violations" in output
    assert "histories a second" in output


@pytest.mark.full
def test_many_histories_of_broken_code_end_in_an_error(capsys):
    broken = ["--histories", "20", "--processes", "1", "--mutant", "nonce-twice"]
    assert main(broken) == 1
    assert "NONCE_TWICE" in capsys.readouterr().out


def test_the_hunt_fails_where_a_mutant_escapes(capsys):
    assert hunt_all(["--cap", "1", "unpinned-block"]) == 1
    assert "NOT CAUGHT" in capsys.readouterr().out
