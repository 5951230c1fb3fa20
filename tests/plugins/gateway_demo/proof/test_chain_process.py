"""The chain in its own process, as `gateway demo` and tests in other languages use it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from web3 import Web3

ROOT = Path(__file__).parents[4]
FRIEND = "0x00000000000000000000000000000000DeaDBeef"


def test_the_command_says_where_it_answers_and_funds_accounts():
    command = [
        sys.executable,
        "-m",
        "gateway_demo.chain",
        "--port",
        "0",
        "--fund",
        FRIEND,
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            ready = json.loads(process.stdout.readline())
            provider = Web3.HTTPProvider(ready["rpc_url"])
            web3 = Web3(provider)
            assert ready["chain_id"] == web3.eth.chain_id == 8453
            assert web3.eth.get_balance(FRIEND) == 10**18
            snapshot = provider.make_request("evm_snapshot", [])["result"]
            assert provider.make_request("play_fund", [FRIEND, "0x1", "0x0"])["result"]
            assert web3.eth.get_balance(FRIEND) == 10**18 + 1
            assert provider.make_request("evm_revert", [snapshot])["result"]
            assert web3.eth.get_balance(FRIEND) == 10**18
            assert provider.make_request("evm_increaseTime", [3600])["result"] == 3600
            assert provider.make_request("evm_setAutomine", [False])["result"]
            assert provider.make_request("anvil_dropTransaction", ["0x" + "ab" * 32])
        finally:
            process.terminate()
            process.wait(timeout=10)
