"""`gateway serve --play`: the operator's own gateway, with play money."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from gateway.settings import Settings
from gateway_demo.rehearsal.stage import Stage


@contextmanager
def rehearse() -> Iterator[Settings]:
    """Run an embedded chain, and yield the settings of a gateway on it.

    Raises `SettingsError` for mistakes in the operator's settings.
    """
    with tempfile.TemporaryDirectory(prefix="gateway-play-", ignore_cleanup_errors=True) as folder:
        stage = Stage(folder=Path(folder))
        # Mistakes show before the chain starts, which takes seconds.
        stage.load_settings()
        with stage.start_chain() as stage_with_chain:
            settings = stage_with_chain.load_settings()
            # Standard output is the log.
            click.echo("\n".join(describe_rehearsal(settings)), err=True)
            yield settings


def describe_rehearsal(settings: Settings) -> list[str]:
    """Return the introduction for a person: real and play parts, and how to buy."""
    # Without these, commands would read the real shop's database and chain.
    variables = {
        "NETWORK": settings.network,
        "RPC_URLS": settings.rpc_urls[0],
        "DATABASE_URL": "",
        "DATA_DIR": settings.data_dir,
        "WALLET": settings.wallet,
    }
    exports = " ".join(f"GATEWAY_{name}={value}" for name, value in variables.items())
    return [
        "A rehearsal: play money on an embedded chain, with its own keys and a temporary database.",
        "Your plugins are real: a vendor with a key bills you for what it makes.",
        f"Buy at {settings.base_url}/ with the play purse, or from another terminal:",
        f"  gateway buy SLUG 'a prompt' --url {settings.base_url} --key demo",
        "For the operator's commands in another terminal:",
        f"  export {exports}",
    ]
