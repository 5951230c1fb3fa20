"""What `gateway serve` imports before its first answer, and what it leaves for later."""

import json
import os
import subprocess
import sys

from tests.conftest import WALLET

# The first answer needs these libraries. docs/architecture.md says what each costs.
NEEDED = {
    "aiofiles",
    "aiosqlite",
    "attrs",
    "blinker",
    "cattrs",
    "cffi",
    "click",
    "coincurve",
    "deprecated",
    "eth-hash",
    "flask",
    "h11",
    "h2",
    "hpack",
    "hypercorn",
    "hyperframe",
    "immutables",
    "itsdangerous",
    "jinja2",
    "limits",
    "markupsafe",
    "msgspec",
    "packaging",
    "pluggy",
    "priority",
    "pycryptodome",
    "quart",
    "structlog",
    "typed-settings",
    "typing-extensions",
    "uvloop",
    "werkzeug",
    "wrapt",
    "wsproto",
}

# These load after the first answer, or when they are used.
LATER = {
    "aiohttp",
    "apprise",
    "argon2-cffi",
    "eth-account",
    "eth-keyfile",
    "eth-utils",
    "httpx2",
    "mcp",
    "mcp-types",
    "obstore",
    "pillow",
    "prometheus-client",
    "py-ecc",
    "pydantic",
    "pyotp",
    "requests",
    "rich",
    "segno",
    "standardwebhooks",
    "starlette",
    "web3",
    "webauthn",
}

# setuptools puts a hook into every start of Python.
OURS_AND_PYTHONS = {"generation-gateway", "setuptools"}

# Does what `gateway serve` does, and notes what is loaded when the first answer has been made.
SERVE = """
import asyncio, json, sys
from importlib.metadata import packages_distributions

from gateway.cli.serve import hidden

with hidden("rich", "pydantic"):
    from gateway.app import create_app
    from gateway.settings import load_settings
    import gateway.web.server
    settings = load_settings()

from gateway.web.services import EXTENSION

async def answer_once():
    app = create_app(settings)
    async with app.test_app():
        answered = app.extensions[EXTENSION].answered
        set_answered = answered.set
        def note_and_set():
            loaded.update(name.partition(".")[0] for name, module in sys.modules.items() if module)
            set_answered()
        answered.set = note_and_set
        answer = await app.test_client().get("/api/health")
        assert answer.status_code == 200

loaded = set()
asyncio.run(answer_once())
owners = packages_distributions()
found = {owner for name in loaded for owner in owners.get(name, ())}
print(json.dumps([owner.lower().replace("_", "-") for owner in found]))
"""


def _loaded_at_the_first_answer(folder) -> set[str]:
    settings = {
        "GATEWAY_BASE_URL": "https://gateway.example.com",
        "GATEWAY_WALLET": WALLET,
        "GATEWAY_SETTLEMENT_KEY": "1" * 64,
        "GATEWAY_RPC_URLS": "http://127.0.0.1:9",
        "GATEWAY_DATA_DIR": str(folder),
    }
    inherited = {name: value for name, value in os.environ.items() if "GATEWAY_" not in name}
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", SERVE],
        env=inherited | paths | settings,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_the_first_answer_waits_for_no_library_but_these(tmp_path):
    loaded = _loaded_at_the_first_answer(tmp_path)
    assert not loaded & LATER
    assert loaded - OURS_AND_PYTHONS <= NEEDED


def test_a_command_imports_no_more_than_its_own_modules(tmp_path):
    code = "import sys, gateway.cli; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    loaded = {name for name in run.stdout.split() if name.startswith("gateway")}
    assert loaded == {"gateway", "gateway.cli", "gateway.version"}


def test_public_names_that_nobody_asked_for_yet_are_listed():
    code = "import gateway; assert set(gateway.__all__) <= set(dir(gateway))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_order_in_which_public_names_are_asked_for_does_not_matter():
    code = "import gateway; [getattr(gateway, name) for name in reversed(gateway.__all__)]"
    subprocess.run([sys.executable, "-c", code], check=True)
