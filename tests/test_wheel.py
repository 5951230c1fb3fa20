"""The built wheel, installed in a clean environment beside folders that have our names."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory):
    """Return a way to run `gateway` from the wheel, in a folder with traps in it."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home / "venv", with_pip=False)
    python = home / "venv" / "bin" / "python"
    site = next((home / "venv" / "lib").glob("python*")) / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    # The dependencies come from this environment; a line in a .pth file runs no other .pth file,
    # so the editable install of the project itself stays invisible.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    for trap in ("plugins", "providers", "static"):
        (home / "work" / trap).mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "GATEWAY_WALLET": "0x1111111111111111111111111111111111111111",
        "GATEWAY_SETTLEMENT_KEY": "11" * 32,
        "GATEWAY_SANDBOX": "true",
    }

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [python, *arguments],
            cwd=home / "work",
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_the_wheel_holds_the_program_and_no_folders_of_the_checkout(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {
        "gateway",
        "gateway_x402",
        "gateway_documents",
        "gateway_openai",
        "gateway_sandbox_image",
    } <= tops
    assert not tops & {"plugins", "providers", "static", "tests", "docs", "bench"}
    assert "gateway/static/llms.txt" in names
    assert "gateway/store/migrations/0001_initial.sql" in names
    assert any(name.endswith(".ttf") for name in names)
    assert not [name for name in names if "__pycache__" in name]


def test_it_runs_from_the_wheel(installed) -> None:
    where = installed("-c", "import gateway; print(gateway.__file__)")
    assert "site-packages" in where.stdout, where.stderr
    plugins = installed("-m", "gateway", "plugins", "--json")
    assert plugins.returncode == 0, plugins.stderr
    assert [row["problem"] for row in json.loads(plugins.stdout)] == [""] * 7
    endpoints = json.loads(installed("-m", "gateway", "endpoints", "--json").stdout)
    assert {row["slug"] for row in endpoints} == {"document-parser", "sandbox-image"}


def test_the_pages_are_in_the_wheel(installed) -> None:
    ask = """
import asyncio
from gateway.app import create_app

async def main():
    app = create_app()
    async with app.test_app():
        answer = await app.test_client().get("/llms.txt")
        print(answer.status_code, "sandbox-image" in await answer.get_data(as_text=True))

asyncio.run(main())
"""
    answer = installed("-c", ask)
    assert "200 True" in answer.stdout, answer.stderr
