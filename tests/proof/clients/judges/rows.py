"""The judges: the interface, version and script of each."""

from pathlib import Path

import attrs

from tests.proof.clients.rows import Row

_SCRIPTS = Path(__file__).parent


@attrs.frozen(kw_only=True)
class Judge:
    """One judge: an independent checker. `client` names its packages."""

    name: str
    interface: str
    client: Row


def _judge(interface: str, script: str, *packages: tuple[str, str]) -> Judge:
    client = Row(name=packages[0][0], buyer=_SCRIPTS / script, packages=packages)
    return Judge(name=client.name, interface=interface, client=client)


JUDGES: tuple[Judge, ...] = (
    _judge("OpenAPI", "openapi_validator.py", ("openapi-spec-validator", "0.9.0")),
    _judge("OpenAPI against the routes", "schemathesis_run.py", ("schemathesis", "4.32.5")),
    _judge("402 by GET", "x402_conformance.py", ("x402-conformance", "1.6.0")),
    _judge(
        "OpenAPI, 402, favicon (x402scan's audit)",
        "agentcash_discovery.mjs",
        ("@agentcash/discovery", "1.7.5"),
    ),
    # The newest versions in agentcash's ranges cannot be installed everywhere.
    _judge(
        "OpenAPI, 402 (an agent's command)",
        "agentcash.mjs",
        ("agentcash", "0.14.4"),
        ("mppx", "0.5.17"),
        ("viem", "2.47.6"),
    ),
)
