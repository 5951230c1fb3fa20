"""Buys pictures, scans and big spreadsheets at once from a gateway with little memory.

`python -m tests.proof.process.memory_soak` prints the peak, the waits, and the kills for lack of
memory. It needs root, and Linux with control groups. `--tree` measures another checkout.
"""

import argparse
import base64
import contextlib
import io
import itertools
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from gateway_demo.chain import PlayChain
from tests.conftest import Payer, new_account
from tests.proof.process.gateway_process import Gateway, until

_V2, _V1 = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
_PRICES = {
    "sandbox-image": 20_000,
    "sandbox-image-edit": 30_000,
    "document-parser": 10_000,
}
_TRIES = 40


@attrs.define
class Group:
    """A control group with a limit of memory, of either version."""

    folder: Path
    is_v2: bool

    @property
    def _names(self) -> tuple[str, str, str]:
        v1 = ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control")
        return ("memory.max", "memory.peak", "memory.events") if self.is_v2 else v1

    def peak_mb(self) -> float:
        """Return the most memory that it had, with cached files."""
        return int((self.folder / self._names[1]).read_text()) / 10**6

    def anonymous_mb(self) -> float:
        """Return the memory that cannot be given back."""
        name = "anon" if self.is_v2 else "rss"
        return self._read("memory.stat")[name] / 10**6

    def times_full(self) -> int:
        """Return how often the limit was reached, so that the kernel took back cached files."""
        if self.is_v2:
            return self._read("memory.events")["max"]
        return int((self.folder / "memory.failcnt").read_text())

    def kills(self) -> int:
        """Return how many processes the kernel killed for lack of memory."""
        return self._read(self._names[2])["oom_kill"]

    def _read(self, name: str) -> dict[str, int]:
        lines = (line.split() for line in (self.folder / name).read_text().splitlines())
        return {words[0]: int(words[1]) for words in lines}

    def write_limit(self, limit_bytes: int) -> None:
        (self.folder / self._names[0]).write_text(str(limit_bytes))
        for swap, value in (("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", limit_bytes)):
            with contextlib.suppress(OSError):
                (self.folder / swap).write_text(str(value))


def find_problem() -> str | None:
    """Return why no control group can be made here, or None."""
    try:
        with limited(10**9):
            return None
    except OSError as error:
        return str(error)


@contextlib.contextmanager
def limited(limit_bytes: int) -> Iterator[Group]:
    """Make a control group, and remove it at the end."""
    is_v2 = (_V2 / "cgroup.controllers").exists()
    folder = (_V2 if is_v2 else _V1) / f"gateway-soak-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    try:
        group = Group(folder, is_v2)
        group.write_limit(limit_bytes)
        yield group
    finally:
        until(lambda: not (folder / "cgroup.procs").read_text())
        folder.rmdir()


def picture(side: int = 5000) -> bytes:
    """Return a JPEG of side² pixels."""
    from PIL import Image

    made = Image.effect_noise((side // 10, side // 10), 60).resize((side, side))
    made.convert("RGB").save(file := io.BytesIO(), "JPEG", quality=60)
    return file.getvalue()


def scan(pages: int = 3) -> bytes:
    """Return a PDF whose pages are pictures of text, at 200 dpi."""
    from PIL import Image, ImageDraw, ImageFont

    made = []
    for page in range(pages):
        image = Image.new("L", (1654, 2339), "white")
        for line in range(45):
            words = f"Line {line} of page {page}: the harbour cafe sold {line * 7} cups of coffee."
            ImageDraw.Draw(image).text(
                (120, 90 + 48 * line), words, font=ImageFont.load_default(28)
            )
        made.append(image)
    made[0].save(file := io.BytesIO(), "PDF", save_all=True, append_images=made[1:], resolution=200)
    return file.getvalue()


def spreadsheet(rows: int = 60_000) -> bytes:
    """Return a workbook with many rows of ten cells."""
    office = "http://schemas.openxmlformats.org"
    links, package = f"{office}/officeDocument/2006/relationships", f"{office}/package/2006"
    main = f"{office}/spreadsheetml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    cell = "<c><v>{}</v></c>"
    row = "<row>" + cell * 10 + "</row>"
    cells = "".join(row.format(*range(at * 31, at * 31 + 10)) for at in range(rows))
    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in {
            "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default '
            'Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+'
            f'xml"/><Override PartName="/xl/workbook.xml" ContentType="{kind}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{links}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{links}"><sheets><sheet '
            'name="Sales" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
            f'<Relationship Id="r1" Type="{links}/worksheet" Target="worksheets/sheet1.xml"/>'
            "</Relationships>",
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData>'
            "</worksheet>",
        }.items():
            target.writestr(name, text)
    return file.getvalue()


def orders() -> list[tuple[str, dict[str, str]]]:
    """Return the slugs and bodies that are bought at once."""

    def attached(data: bytes, name: str) -> dict[str, str]:
        return {"fileBase64": base64.b64encode(data).decode(), "fileName": name}

    return [
        ("sandbox-image", {"prompt": "A harbour at dusk", "resolution": "4K"}),
        ("sandbox-image-edit", {"prompt": "snow at night", **attached(picture(), "a.jpg")}),
        ("document-parser", attached(scan(), "scan.pdf")),
        ("document-parser", attached(spreadsheet(), "book.xlsx")),
    ]


@attrs.define
class Soak:
    """Buyers of one gateway, with counts of their answers."""

    gateway: Gateway
    chain: PlayChain
    ends: Counter[str] = attrs.field(factory=Counter)
    refusals: Counter[str] = attrs.field(factory=Counter)
    # Tasks that waited for memory, as their buyers read it.
    waited: set[str] = attrs.field(factory=set)
    _numbers: Iterator[int] = attrs.field(factory=itertools.count)

    def buy(self, slug: str, body: dict[str, str]) -> None:
        """Buy, also after refusals that ask for another try, and wait for the end."""
        payer = Payer(self.chain)
        # Each buyer has an address of its own.
        number = next(self._numbers)
        about = {"X-Real-IP": f"10.0.{number // 250}.{number % 250 + 1}"}
        for _ in range(_TRIES):
            header = about | {"X-PAYMENT": payer.header(_PRICES[slug])}
            status, answer = self.gateway.request("POST", f"/api/x402/{slug}", body, header)
            if status == 200:
                break
            self.refusals[f"{status} {answer.get('error', '')[:60]}"] += 1
            time.sleep(2)
        else:
            self.ends["not sold"] += 1
            return
        while not (task := self.gateway.task(answer["taskId"], wait_s=1))["done"]:
            if task.get("waitsFor") == "memory":
                self.waited.add(task["taskId"])
        details = task["details"] if task["status"] == "failed" else ""
        self.ends[f"{slug} {task['status']} {details}".strip()] += 1


def run(folder: Path, chain: PlayChain, key: str, rounds: int, group: Group, **changed) -> Soak:
    """Serve within the group, and have each order bought `rounds` times at once."""
    gateway = Gateway(
        folder,
        chain,
        key,
        GATEWAY_SANDBOX="true",
        GATEWAY_WORKERS="4",
        GATEWAY_LOG_FORMAT="json",
        GATEWAY_CLIENT_IP_HEADER="X-Real-IP",
        **changed,
    )
    enter = f'echo $$ > "{group.folder}/cgroup.procs" && exec "{sys.executable}" -m gateway serve'
    gateway.command, gateway.is_forked = ("sh", "-c", enter), False
    gateway.start()
    soak = Soak(gateway, chain)
    try:
        made = orders() * rounds
        with ThreadPoolExecutor(len(made)) as buyers:
            for done in [buyers.submit(soak.buy, *order) for order in made]:
                done.result()
    finally:
        gateway.kill()
    return soak


def main() -> None:
    """Run the soak and print its counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, help="another checkout of the gateway")
    parser.add_argument("--rounds", type=int, default=3, help="how often each file is bought")
    parser.add_argument("--megabytes", type=int, default=1024, help="the limit (2^20 bytes)")
    given = parser.parse_args()
    paths = [given.tree / one for one in ("", "providers", "plugins")] if given.tree else []
    with contextlib.ExitStack() as stack:
        chain = stack.enter_context(PlayChain())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        group = stack.enter_context(limited(given.megabytes * 2**20))
        account = new_account()
        chain.fund(account.address, eth_wei=10**18, usdc_units=0)
        changed = {}
        if paths:
            changed["PYTHONPATH"] = ":".join(map(str, [*paths, folder / "site"]))
        most, is_over = [0.0], threading.Event()

        def watch() -> None:
            while not is_over.wait(0.1):
                most[0] = max(most[0], group.anonymous_mb())

        watcher = threading.Thread(target=watch)
        watcher.start()
        began = time.monotonic()
        try:
            soak = run(folder, chain, account.key.hex(), given.rounds, group, **changed)
        finally:
            is_over.set()
            watcher.join()
        lines = [
            f"{time.monotonic() - began:.0f} s",
            f"peak {group.peak_mb():.0f} MB, of it at most {most[0]:.0f} MB not of files",
            f"times at the limit: {group.times_full()}",
            f"killed for lack of memory: {group.kills()}",
            f"tasks that waited for memory: {len(soak.waited)}",
            f"machine.short: {len(soak.gateway.events('machine.short'))}",
        ]
        for counts in (soak.ends, soak.refusals):
            lines += [f"{times:4} {what}" for what, times in sorted(counts.items())]
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
