"""Prints the judges' findings:

`python -m tests.proof.clients.judges [--only NAME] [--write PAGE]`.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import attrs
import click

from gateway_demo.tour.errors import DemoError
from tests.proof.clients.judges import rows
from tests.proof.clients.judges.rows import Judge
from tests.proof.clients.places import Place, Skipped, default_cache, prepare
from tests.proof.clients.shop import Shop, open_shop

_JUDGE_S = 600
_OURS = re.compile(r"GATEWAY_.*|PYTHONPATH|NODE_OPTIONS", re.IGNORECASE)
# A judge that uses another address than the shop's reaches no server.
_NOWHERE = "http://127.0.0.1:9"
_HEADINGS = ("interface", "judge", "version", "result")
_BEGIN, _END = "<!-- judges: make clients -->", "<!-- end of judges -->"


class Failed(Exception):
    """A judge could not judge; the message is one line."""


@attrs.frozen
class Verdict:
    """One row of the table."""

    judge: Judge
    version: str
    result: str
    is_bad: bool = False

    def cells(self) -> tuple[str, ...]:
        return self.judge.interface, f"`{self.judge.name}`", self.version, self.result


@click.command()
@click.option("--only", multiple=True, metavar="NAME", help="A judge to run; may be repeated.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Their folder.")
@click.option(
    "--write",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A page whose table of judges is written anew.",
)
def main(only: tuple[str, ...], cache: Path | None, write: Path | None) -> None:
    """Let independent checkers judge a real gateway on the embedded chain."""
    chosen = _chosen(only)
    place = (cache or default_cache()).resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="gateway-judges-") as folder:
            verdicts = asyncio.run(_run(chosen, place, Path(folder)))
    except DemoError as error:
        raise click.ClickException(f"{error}\n{error.log}") from None
    table = [_HEADINGS, ("---",) * len(_HEADINGS), *(one.cells() for one in verdicts)]
    lines = ["| " + " | ".join(cells) + " |" for cells in table]
    click.echo("\n".join(lines))
    if write is not None:
        _write(write, lines)
    sys.exit(1 if any(one.is_bad for one in verdicts) else 0)


def _chosen(only: tuple[str, ...]) -> list[Judge]:
    names = [judge.name for judge in rows.JUDGES]
    unknown = [name for name in only if name not in names]
    if unknown:
        raise click.UsageError(f"There is no judge {unknown[0]!r}; there are {', '.join(names)}.")
    return [judge for judge in rows.JUDGES if not only or judge.name in only]


async def _run(chosen: list[Judge], cache: Path, folder: Path) -> list[Verdict]:
    async with open_shop(folder) as shop:
        return [await _judge(judge, cache, shop, folder) for judge in chosen]


async def _judge(judge: Judge, cache: Path, shop: Shop, folder: Path) -> Verdict:
    packages = judge.client.packages
    version = packages[0][1] if packages else "-"
    try:
        place = await asyncio.to_thread(prepare, judge.client, cache)
        report = await _ask(place, shop, folder)
    except Skipped as reason:
        return Verdict(judge, version, f"skipped: {reason}")
    except Failed as reason:
        return Verdict(judge, place.version, f"failed: {reason}", is_bad=True)
    shop.gateway.check()
    findings = report["findings"]
    result = "; ".join(findings) or f"no finding ({report['said']})"
    return Verdict(judge, place.version, result, is_bad=bool(findings))


async def _ask(place: Place, shop: Shop, folder: Path) -> dict:
    """Run a judge's script; raises `Failed` if there is no verdict."""
    kept = {name: value for name, value in os.environ.items() if not _OURS.fullmatch(name)}
    away = {"HTTPS_PROXY": _NOWHERE, "https_proxy": _NOWHERE, "HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *place.command,
        # Some of them write files into the current folder.
        cwd=folder,
        env=kept | away | {"SHOP_URL": shop.tap.url},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, complained = await asyncio.wait_for(process.communicate(), _JUDGE_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise Failed(f"it was not done after {_JUDGE_S} seconds") from None
    if process.returncode:
        lines = [line.strip() for line in complained.decode().splitlines() if line.strip()]
        named = [line for line in lines if re.match(r"[\w.]*Error\b", line)]
        raise Failed((named or lines or ["it did not say why"])[-1][:300])
    return json.loads(output.decode().splitlines()[-1])


def _write(page: Path, lines: list[str]) -> None:
    """Put the table between the page's two marks."""
    before, begun, rest = page.read_text().partition(_BEGIN)
    _, ended, after = rest.partition(_END)
    if not (begun and ended):
        raise click.ClickException(f"{page} has no place for the table: {_BEGIN} and {_END}.")
    page.write_text("\n".join((before + begun, *lines, ended + after)))


if __name__ == "__main__":
    main()
