"""Draws the README's pictures by running the demo: `python -m gateway_demo.tour.picture FOLDER`.

Writes the terminal to `demo.svg`, and the purchased picture to `picture.webp`.
"""

import contextlib
import re
import shutil
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from gateway_demo.tour.guide import run_demo
from gateway_demo.tour.screen import Screen

_COLUMNS = 96
_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
_DUSK = TerminalTheme(
    # Background, then foreground.
    (17, 24, 34),
    (214, 222, 232),
    [
        *((40, 50, 64), (240, 113, 120), (126, 211, 158), (246, 201, 120)),
        *((122, 170, 240), (199, 146, 234), (122, 208, 224), (214, 222, 232)),
    ],
    [
        *((118, 134, 154), (255, 139, 146), (150, 228, 178), (255, 219, 148)),
        *((150, 190, 255), (219, 170, 250), (150, 226, 240), (255, 255, 255)),
    ],
)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Run the demo once, and save its terminal and the purchased picture."""
    sys.path[:] = [str(Path(entry).absolute()) for entry in sys.path]
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(record=True, width=_COLUMNS, highlight=False)
    bought = Path("demo-output")
    with tempfile.TemporaryDirectory() as elsewhere, contextlib.chdir(elsewhere):
        code = run_demo(
            once=True,
            port=8402,
            rpc_port=8545,
            output=bought,
            screen=Screen(console=console),
            picture_format="webp",
        )
        if code == 0:
            shutil.copy(bought / "picture.webp", folder)
    svg = console.export_svg(title="gateway demo --once", theme=_DUSK)
    (folder / "demo.svg").write_text(_replace_fonts(svg))
    sys.exit(code)


def _replace_fonts(svg: str) -> str:
    """Return the SVG with local fonts: rich links to a third party's."""
    local = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return local.replace("font-family: Fira Code, monospace", f"font-family: {_FONTS}")


if __name__ == "__main__":
    main()
