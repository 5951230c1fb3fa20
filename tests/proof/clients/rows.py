"""The rows of the matrix: client, version and script."""

from pathlib import Path

import attrs

BUYERS = Path(__file__).parent / "buyers"
_VIEM = "2.38.0"  # the packages name a range; its newest versions cannot be installed everywhere


@attrs.frozen(kw_only=True)
class Row:
    """One client. `packages` are installed for it; the first is the client itself."""

    name: str
    buyer: Path
    packages: tuple[tuple[str, str], ...] = ()
    extras: str = ""  # of the first package, as pip writes them
    by_mcp: bool = False  # whether it buys by a tool at /mcp

    @property
    def runtime(self) -> str:
        """The program that runs the script: Python or Node."""
        return "Node" if self.buyer.suffix == ".mjs" else "Python"


def _python(name: str, buyer: str, version: str = "", extras: str = "") -> Row:
    """Return a row of the Python package `x402`; by default of the installed version."""
    packages = (("x402", version),) if version else ()
    return Row(name=name, buyer=BUYERS / buyer, packages=packages, extras=extras)


def _node(name: str, buyer: str, *packages: tuple[str, str]) -> Row:
    return Row(name=name, buyer=BUYERS / buyer, packages=(*packages, ("viem", _VIEM)))


def _scoped(client: str, version: str) -> tuple[tuple[str, str], ...]:
    """Return a client of x402 2.x with the packages of the same version."""
    return tuple((f"@x402/{part}", version) for part in (client, "core", "evm"))


def _mcp(name: str, buyer: str, *packages: tuple[str, str], extras: str = "") -> Row:
    """Return a row of a client that buys by a tool."""
    return Row(name=name, buyer=BUYERS / buyer, packages=packages, extras=extras, by_mcp=True)


def _mpp(name: str, version: str) -> Row:
    """Return a row of the Python package `pympp`, which pays by another protocol."""
    packages = (("pympp", version),)
    return Row(name=name, buyer=BUYERS / "python_mpp.py", packages=packages, extras="[evm]")


_AXIOS = ("axios", "1.13.2")
_EXTRAS = "[evm,httpx,requests]"
_MCP = (
    ("@modelcontextprotocol/sdk", "1.32.2"),
    ("@x402/core", "2.27.0"),
    ("@x402/evm", "2.27.0"),
    ("viem", _VIEM),
)

ROWS: tuple[Row, ...] = (
    _python("httpx", "python_httpx.py"),  # what `make install` installs, the newest we know
    _python("requests", "python_requests.py"),
    _python("httpx-2.0.0", "python_httpx.py", "2.0.0", _EXTRAS),
    _python("requests-2.0.0", "python_requests.py", "2.0.0", _EXTRAS),
    _node("fetch-2.27.0", "fetch.mjs", *_scoped("fetch", "2.27.0")),
    _node("fetch-2.0.0", "fetch.mjs", *_scoped("fetch", "2.0.0")),
    _node("axios-2.11.0", "axios.mjs", *_scoped("axios", "2.11.0"), _AXIOS),
    _node("axios-2.2.0", "axios.mjs", *_scoped("axios", "2.2.0"), _AXIOS),
    # Needs no package: the requests of the Go client before 2026-08-31.
    _python("go-v2-hour", "go_v2_hour.py"),
    _python("v1-httpx-1.0.0", "python_v1_httpx.py", "1.0.0"),
    _python("v1-requests-1.0.0", "python_v1_requests.py", "1.0.0"),
    _node("v1-fetch-1.2.0", "v1_fetch.mjs", ("x402-fetch", "1.2.0")),
    _node("v1-axios-0.7.2", "v1_axios.mjs", ("x402-axios", "0.7.2"), _AXIOS),
    _mpp("mpp-0.16.0", "0.16.0"),
    _mcp("mcp-sdk-1.32.2", "mcp.mjs", *_MCP),
    _mcp("mcp-cloudflare", "cloudflare.mjs", *_MCP),
    _mcp(
        "mcp-session-2.25.0",
        "python_mcp_session.py",
        ("x402", "2.25.0"),
        ("mcp", "1.30.0"),
        extras="[evm,mcp]",
    ),
    # Of revision 2025-03-26: a result with other content than texts and pictures breaks them.
    _mcp("mcp-sdk-1.10.2", "mcp_text.mjs", ("@modelcontextprotocol/sdk", "1.10.2"), *_MCP[1:]),
    _mcp("mcp-sdk-1.11.0", "mcp_text.mjs", ("@modelcontextprotocol/sdk", "1.11.0"), *_MCP[1:]),
    _mcp(
        "mcp-python-1.8.1",
        "python_mcp_text.py",
        ("x402", "2.25.0"),
        ("mcp", "1.8.1"),
        # The newest version whose internals that release still finds.
        ("pydantic", "2.11.10"),
        extras="[evm]",
    ),
)
