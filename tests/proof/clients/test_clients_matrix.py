"""The matrix of clients, with clients that need no installation, and some that misbehave."""

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import WALLET
from tests.proof.clients import rows
from tests.proof.clients.__main__ import main
from tests.proof.clients.places import default_cache
from tests.proof.clients.purchase import Failed, check_chain
from tests.proof.clients.rows import BUYERS, ROWS, Row
from tests.proof.clients.shop import PRICE_UNITS, Shop
from tests.proof.clients.tap import Tap

ROOT = Path(__file__).parents[3]
HONEST = (BUYERS / "python_requests.py").read_text()
BUYS_TWICE = HONEST.replace(
    "        answer.raise_for_status()\n",
    "        answer = http.post(url, json=body, timeout=30)\n        answer.raise_for_status()\n",
)
NAMES_ANOTHER = HONEST.replace("receipt.transaction}", "'0x' + 64 * '0'}")
ENDS_IN_AN_ERROR = """
import os, requests
url = os.environ["SHOP_URL"] + "/api/x402/sandbox-image"
requests.post(url, json={"prompt": "x"}, headers={"X-PAYMENT": "e30="}).raise_for_status()
"""
PAYS_NOTHING = 'print(\'{"status": "completed", "transaction": "0x00"}\')'


SENTENCES = {  # how each row's line ends
    "httpx": r"v2 +PAYMENT-SIGNATURE +402 → 200 +completed +0x\w{10}… 1 transfer +\d+\.\d",
    "requests": r"v2 +PAYMENT-SIGNATURE +402 → 200 +completed +0x\w{10}… 1 transfer +\d+\.\d",
    "fetch-2.27.0": r"skipped: Node is not installed",
    "absent": r"skipped: cannot be installed \(ERROR: No matching distribution .* x402==0\.0\.0\)",
    "error": r"failed: requests\.exceptions\.HTTPError: 402 Client Error: .* "
    r"\(the gateway answered 402: invalid_x402_version\)",
    "twice": r"failed: the answers should be \[402, 200\], not \[402, 200, 402, 200\]",
    "another": r"failed: the settlement, says the client, should be 0x[0-9a-f]{64}, not 0x0{64}",
    "nothing": r"failed: the answers should be \[402, 200\], not \[\]",
}


@pytest.fixture
def chosen(monkeypatch, tmp_path) -> None:
    """Use two rows that need no installation, two that are skipped, four that fail."""
    by_name = {row.name: row for row in ROWS}
    misbehaving = {
        "error": ENDS_IN_AN_ERROR,
        "twice": BUYS_TWICE,
        "another": NAMES_ANOTHER,
        "nothing": PAYS_NOTHING,
    }
    for name, code in misbehaving.items():
        (tmp_path / name).write_text(code)
    chosen = (
        *(by_name[name] for name in ("httpx", "requests", "fetch-2.27.0")),
        Row(name="absent", buyer=BUYERS / "python_httpx.py", packages=(("x402", "0.0.0"),)),
        *(Row(name=name, buyer=tmp_path / name) for name in misbehaving),
    )
    monkeypatch.setattr(rows, "ROWS", chosen)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # nothing is fetched here


@pytest.mark.full  # it checks the matrix itself: test_official_client.py buys in the gate
def test_every_row_says_what_happened_and_one_that_fails_is_the_exit_code(chosen, tmp_path):
    ran = CliRunner().invoke(main, ["--cache", str(tmp_path / "cache")])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    lines = {line.split()[0]: line for line in ran.output.splitlines() if line}
    here = importlib.metadata.version("x402")
    versions = dict.fromkeys(SENTENCES, here) | {"fetch-2.27.0": "2.27.0", "absent": "0.0.0"}
    wrong = [
        lines.get(name, f"{name} is missing")
        for name, sentence in SENTENCES.items()
        if not re.fullmatch(f"{name} +{versions[name]} +{sentence}", lines.get(name, ""))
    ]
    assert wrong == []
    assert ran.output.splitlines()[-1] == "2 bought, 4 failed, 2 skipped"
    assert ran.exit_code == 1


@pytest.mark.full
def test_skipped_rows_are_no_failure(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # an uninstalled checkout's too
    command = [sys.executable, "-m", "tests.proof.clients", "--cache", str(tmp_path)]
    command += ["--only", "fetch-2.27.0", "--only", "v1-fetch-1.2.0"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("skipped: Node is not installed") == 2
    assert ran.stdout.splitlines()[-1] == "0 bought, 0 failed, 2 skipped"


def test_a_row_that_is_not_there_is_one_sentence():
    ran = CliRunner().invoke(main, ["--only", "carrier-pigeon"])
    assert ran.exit_code == 2
    assert "There is no row 'carrier-pigeon'; there are httpx, requests, " in ran.output


@pytest.mark.parametrize("given", ["", "relative/is/not/allowed"])
def test_clients_are_kept_in_the_users_cache(monkeypatch, given):
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert default_cache() == Path.home() / ".cache" / "generation-gateway" / "clients"


def test_the_users_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "generation-gateway" / "clients"


# -- the chain's records


@pytest.fixture
def shop(chain) -> Shop:
    return Shop(chain=chain, tap=Tap(""), wallet=WALLET, gateway=None, port=0)


def pays(shop: Shop, customer, units: int = PRICE_UNITS, to: str = WALLET) -> str:
    return shop.chain.transfer_usdc(customer.key, to, units)


@pytest.fixture
def customer(shop):
    account = shop.customer()
    shop.chain.fund(account.address, usdc_units=0)  # but ETH, to pay by hand
    return account


def test_one_transfer_of_the_price_is_what_the_chain_must_show(shop, customer):
    check_chain(shop, customer.address, pays(shop, customer))


@pytest.mark.parametrize(
    "more",
    [{"units": PRICE_UNITS}, {"units": 1, "to": "0x" + "12" * 20}],
    ids=["to the wallet", "to somebody else"],
)
def test_a_second_transfer_of_the_customer_is_found(shop, customer, more):
    transaction = pays(shop, customer)
    pays(shop, customer, **more)
    with pytest.raises(Failed, match="the customer's transfers should be"):
        check_chain(shop, customer.address, transaction)


def test_another_price_is_found(shop, customer):
    transaction = pays(shop, customer, PRICE_UNITS + 1)
    with pytest.raises(Failed, match="the customer's transfers should be"):
        check_chain(shop, customer.address, transaction)


def test_a_settlement_that_is_not_on_the_chain_is_found(shop, customer):
    pays(shop, customer)
    with pytest.raises(Failed, match="the settlement's receipt should be 0x1, not None"):
        check_chain(shop, customer.address, "0x" + "0" * 64)
