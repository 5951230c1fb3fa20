"""The imports of `gateway serve` before its first response, and those deferred until later."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from tests import hidden_models
from tests.conftest import WALLET

# The first response needs these libraries. docs/architecture.md has the cost of each.
NEEDED = {
    "aiofiles",
    "aiosqlite",
    "attrs",
    "blinker",
    "btclib-secp256k1",
    "cffi",
    "click",
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
    "markupsafe",
    "msgspec",
    "pluggy",
    "priority",
    "pycryptodome",
    "quart",
    "structlog",
    "typed-settings",
    "typing-extensions",
    "uvloop",
    "werkzeug",
    "wsproto",
}

# Loaded after the first response, or on use.
LATER = {
    "aiohttp",
    "apprise",
    "argon2-cffi",
    "cattrs",
    "eth-account",
    "eth-keyfile",
    "eth-utils",
    "httpx2",
    "limits",
    "mcp",
    "mcp-types",
    "obstore",
    "packaging",
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

# So are these parts of the gateway.
OPERATORS = (
    "gateway_operator.desk",
    "gateway_backups.schedule",
    "gateway_backups.drill",
    "gateway_operator.pages.page",
    "gateway_operator.running",
    "gateway_operator.pages",
    "gateway_operator.alarms.state_watch",
)
OPERATORS_PREFIXES = tuple(f"{name}." for name in OPERATORS)

# Of a plugin without its key or address, only the settings and the parts of its defaults.
WITHOUT_KEY = {
    "gateway_azure_documents": {"settings"},
    "gateway_bfl": {"models"},
    "gateway_comfyui": {"settings"},
    "gateway_docling": set(),
    "gateway_facilitator_settler": set(),
    "gateway_fal": {"models"},
    "gateway_gemini": {"models"},
    "gateway_http": set(),
    "gateway_kie": {"models"},
    "gateway_llamaparse": {"settings"},
    "gateway_mistral": {"settings"},
    "gateway_mpp": set(),
    "gateway_openai": {"settings", "sizes"},
    "gateway_openrouter": {"models"},
    "gateway_replicate": {"models"},
    "gateway_sandbox_image": set(),
}

# setuptools puts a hook into every start of Python.
OURS_AND_PYTHONS = {"generation-gateway", "setuptools"}

# Acts like `gateway serve`, and records the loaded modules after the first response.
SERVE = """
import asyncio, json, sys
from importlib.metadata import packages_distributions

import attrs

from gateway.cli.serve import hidden

with hidden("rich", "pydantic"):
    from gateway.app import create_app
    from gateway.settings import load_settings
    import gateway.web.server.serve
    settings = load_settings()

# A plugin's setting that has a value is read by the same converter.
from gateway.plugins.installed import find_sections
find_sections(settings)

from gateway.web.front.current import EXTENSION

async def answer_once():
    app = create_app(settings)
    async with app.test_app():
        answered = app.extensions[EXTENSION].lifecycle.answered
        set_answered = answered.set
        def note_and_set():
            loaded.update(name for name, module in sys.modules.items() if module)
            set_answered()
        answered.set = note_and_set
        answer = await app.test_client().get("/api/health")
        assert answer.status_code == 200

loaded = set()
asyncio.run(answer_once())
owners = packages_distributions()
tops = {name.partition(".")[0] for name in loaded}
found = {owner for name in tops for owner in owners.get(name, ())}
ours = [name for name in loaded if name.startswith(("gateway.", "gateway_"))]
compared = [
    f"{kind.__module__}.{kind.__name__}"
    for kind in {id(one): one for name in ours for one in vars(sys.modules[name]).values()}.values()
    if isinstance(kind, type) and attrs.has(kind) and "__eq__" in vars(kind)
]
print(json.dumps([[owner.lower().replace("_", "-") for owner in found], ours, compared]))
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> tuple[set[str], set[str], set[str]]:
    """Return the names that are loaded at the first response.

    These are the libraries, the gateway's modules, and its attrs classes that are compared.
    """
    folder = tmp_path_factory.mktemp("start")
    settings = {
        "GATEWAY_BASE_URL": "https://gateway.example.com",
        "GATEWAY_WALLET": WALLET,
        "GATEWAY_SETTLEMENT_KEY": "1" * 64,
        "GATEWAY_ADMIN_PASSWORD_HASH": "$argon2id$v=19$m=8,t=1,p=1$" + "c" * 22 + "$" + "a" * 43,
        "GATEWAY_RPC_URLS": "http://127.0.0.1:9",
        "GATEWAY_DATA_DIR": str(folder),
        "GATEWAY_PLUGINS_DISABLED": hidden_models.NAMES,
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
    libraries, modules, compared = map(set, json.loads(run.stdout.splitlines()[-1]))
    return libraries, modules, compared


def test_the_first_answer_waits_for_no_library_but_these(loaded):
    libraries, _, _ = loaded
    assert not libraries & LATER
    assert libraries - OURS_AND_PYTHONS <= NEEDED


def test_the_first_answer_waits_for_nothing_that_only_the_operator_needs(loaded):
    _, modules, _ = loaded
    assert "gateway_operator" in modules
    # Each of these names must exist, or a renamed folder would be missed.
    for name in OPERATORS:
        assert importlib.util.find_spec(name) is not None, name
    theirs = [name for name in modules if f"{name}.".startswith(OPERATORS_PREFIXES)]
    assert theirs == []
    # Of the plugin of several machines, one on SQLite has the hooks alone.
    assert [name for name in modules if name.startswith("gateway_nodes")] == ["gateway_nodes"]
    # Without a bucket, only its settings are read.
    of_bucket = {name for name in modules if name.startswith("gateway_bucket")}
    assert of_bucket == {"gateway_bucket", "gateway_bucket.settings"}
    assert [name for name in modules if name.startswith("gateway_uvicorn")] == ["gateway_uvicorn"]


def test_the_first_answer_waits_for_no_provider_that_sells_nothing(loaded):
    _, modules, _ = loaded
    for plugin, needed in WITHOUT_KEY.items():
        found = {name.partition(".")[2] for name in modules if name.startswith(f"{plugin}.")}
        assert plugin in modules
        assert found <= needed, plugin


def test_the_first_answer_waits_for_no_more_modules_of_ours(loaded):
    """Each costs about 0.6 ms. Raise the number only for one that the first answer needs."""
    _, modules, _ = loaded
    assert len(modules) <= 330


def test_the_first_answer_waits_for_few_generated_comparisons(loaded):
    """Each class whose objects have a `==` and a `repr` by attrs costs another 0.2 ms.

    So a class that is neither compared nor printed is declared with `eq=False, repr=False`.
    """
    _, _, compared = loaded
    assert "gateway.domain.offers.Endpoint" in compared
    assert len(compared) <= 104, sorted(compared)


@pytest.mark.parametrize("asked", ["pass", "cli.main(['--help'], standalone_mode=False)"])
def test_a_command_imports_no_more_than_its_own_modules(tmp_path, asked):
    code = f"import sys; from gateway import cli; {asked}; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    names = run.stdout.splitlines()[-1].split()
    loaded = {name for name in names if name.startswith("gateway")}
    needed = {"cli", "errors", "installed", "plugins", "plugins.installed", "version"}
    assert loaded == {"gateway", *(f"gateway.{name}" for name in needed)}
    assert "importlib.metadata" not in names


def test_public_names_that_nobody_asked_for_yet_are_listed():
    code = "import gateway; assert set(gateway.__all__) <= set(dir(gateway))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_order_in_which_public_names_are_asked_for_does_not_matter():
    code = "import gateway; [getattr(gateway, name) for name in reversed(gateway.__all__)]"
    subprocess.run([sys.executable, "-c", code], check=True)
