"""Modules of the pages alone: links of transfers and of phones' wallets, and hashes."""

import json
from pathlib import Path

import pytest

from tests.proof.pages.building import run

USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
WALLET = "0x7CF1a6bd3fB7A9C1A5E2A3F9C2Db2f3a4B5c6D7E"
HASH = "0x" + "aB" * 32
PAGE = "https://shop.example.com/play/picture?prompt=a+boat+%26+a+sea&aspect_ratio=1%3A1"


@pytest.fixture(scope="module")
def call(frontend, tmp_path_factory):
    """Return a function that calls an exported function, and returns its result or error."""
    folder = tmp_path_factory.mktemp("modules")

    def call(module: str, function: str, *arguments):
        out = folder / f"{module}.mjs"
        if not out.exists():
            bundle(frontend, module, out)
        script = (
            f"import {{ {function} as call }} from {json.dumps(out.as_uri())};"
            f"try {{ console.log(JSON.stringify(call(...{json.dumps(arguments)}))) }}"
            "catch (error) { console.log(JSON.stringify({ error: error.message })) }"
        )
        return json.loads(run_node(script, frontend))

    return call


def bundle(frontend: Path, module: str, out: Path) -> None:
    """Write a module of the pages, with all that it imports, to a file."""
    options = f"entryPoints: ['src/{module}.ts'], bundle: true, format: 'esm', outfile: '{out}'"
    run_node(f"import {{ build }} from 'esbuild'; await build({{ {options} }});", frontend)


def run_node(script: str, folder: Path) -> str:
    """Run a script in Node, and return its output."""
    return run(folder, "node", "--input-type=module", "-e", script)


def test_a_transfer_is_the_link_of_eip_681(call):
    uri = call("eip681", "transferUri", USDC, 8453, WALLET, "20437")
    assert uri == f"ethereum:{USDC}@8453/transfer?address={WALLET}&uint256=20437"


@pytest.mark.parametrize(
    "text",
    [
        HASH,
        f"  {HASH}\n",
        f"https://basescan.org/tx/{HASH}",
        f"https://basescan.org/tx/{HASH}#eventlog",
        f"https://base.blockscout.com/tx/{HASH}?tab=logs",
    ],
)
def test_a_hash_is_read_alone_and_from_an_explorers_link(call, text):
    assert call("eip681", "readHash", text) == HASH.lower()


@pytest.mark.parametrize(
    "text", ["", "0x", HASH[:-1], HASH + "0", HASH[2:], WALLET, f"{HASH} {HASH}"]
)
def test_anything_else_is_no_hash(call, text):
    assert "64 digits or letters" in call("eip681", "readHash", text)["error"]


def test_each_app_opens_the_page_with_the_request(call):
    encoded = (
        "https%3A%2F%2Fshop.example.com%2Fplay%2Fpicture"
        "%3Fprompt%3Da%2Bboat%2B%2526%2Ba%2Bsea%26aspect_ratio%3D1%253A1"
    )
    assert dict(call("phone", "phoneLinks", PAGE)) == {
        "MetaMask": "https://link.metamask.io/dapp/" + PAGE.removeprefix("https://"),
        "Base or Coinbase Wallet": f"https://go.cb-w.com/dapp?cb_url={encoded}",
        "Rainbow": f"https://rnbwapp.com/dapp?url={encoded}",
        "Trust Wallet": f"https://link.trustwallet.com/open_url?coin_id=60&url={encoded}",
    }


def test_a_page_without_https_opens_in_no_app(call):
    assert call("phone", "phoneLinks", "http://127.0.0.1:8080/play/picture") == []
