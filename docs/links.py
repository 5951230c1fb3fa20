"""Check the links of all pages, and that one of the four entries leads to each page of docs/.

    python docs/links.py      # prints each dead link with its place, and exits with 1

Needs only the standard library: the site's build (docs/site_pages.py) uses it too.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[1]
# The entry pages in docs/, in the order of the site's tabs.
ENTRIES = ("buy.md", "operate.md", "extend.md", "inside.md")
_FENCE = re.compile(r"^[ ]*(```+|~~~+).*?^[ ]*\1[ ]*$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(
    r"\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)|<(?:img|a)\s[^>]*?(?:src|href)=\"([^\"]+)\"",
    re.MULTILINE,
)
# An item of a list that begins with a link: a page of this entry.
_ITEM = re.compile(r"^- \[([^\]]+)\]\(([^)#\s]+\.md)\)", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//")


def main() -> int:
    """Return the process's exit code."""
    files = tracked(ROOT)
    findings = [*dead_links(ROOT, files), *entry_faults(ROOT, files)]
    sys.stderr.writelines(f"{finding}\n" for finding in findings)
    return 1 if findings else 0


def tracked(root: Path) -> frozenset[str]:
    """Return the files of the repository, new ones included, as paths below `root`."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return frozenset(name for name in names if (root / name).is_file())


def pages(files: Iterable[str]) -> list[str]:
    """Return the pages among `files`. Markdown below static/ is a sample on sale."""
    return sorted(one for one in files if one.endswith(".md") and not one.startswith("static/"))


def dead_links(root: Path, files: frozenset[str]) -> Iterator[str]:
    """Yield a sentence for each link to a file or heading that does not exist."""
    for page in pages(files):
        for line, link in links(root / page):
            path, _, anchor = link.partition("#")
            target = resolve(page, path)
            if target not in files:
                is_folder = any(one.startswith(f"{target}/") for one in files)
                why = "a folder has no page: link to its README.md" if is_folder else "no such file"
                yield f"{page}:{line}: {link}: {why}."
            elif anchor and target.endswith(".md") and anchor not in anchors(root / target):
                yield f"{page}:{line}: {link}: no such heading in {target}."


def resolve(page: str, path: str) -> str:
    """Return the file that a relative link of a page leads to, as a path below the root."""
    if not path:
        return page
    # `..` beyond the root stays in the path, which then names no file.
    parts: list[str] = []
    for part in (*Path(page).parent.parts, *Path(unquote(path)).parts):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts) or "."


def links(page: Path) -> Iterator[tuple[int, str]]:
    """Yield line and address of each link of a page that leads into the repository."""
    text = without_code(page.read_text("utf-8"))
    for found in _LINK.finditer(text):
        link = next(filter(None, found.groups()))
        if not _ELSEWHERE.match(link):
            yield text.count("\n", 0, found.start()) + 1, link


def without_code(text: str) -> str:
    """Return a page's text without code blocks and code spans, with the same lines."""
    return _SPAN.sub(_blank, _FENCE.sub(_blank, text))


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    text = _FENCE.sub(_blank, page.read_text("utf-8"))
    found = set(re.findall(r"<a\s+(?:id|name)=\"([^\"]+)\"", text))
    times: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.+?)#*$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-")
        found.add(f"{anchor}-{times[anchor]}" if times[anchor] else anchor)
        times[anchor] += 1
    return frozenset(found)


def entry_pages(root: Path) -> dict[str, dict[str, str]]:
    """Return for each entry the titles of its pages, by their paths below `root`."""
    return {
        entry: {
            resolve(f"docs/{entry}", link): title
            for title, link in _ITEM.findall((root / "docs" / entry).read_text("utf-8"))
        }
        for entry in ENTRIES
    }


def entry_faults(root: Path, files: frozenset[str]) -> Iterator[str]:
    """Yield a sentence for each page of docs/ that is not in the list of exactly one entry."""
    times = Counter(page for listed in entry_pages(root).values() for page in listed)
    expected = {page for page in pages(files) if Path(page).parent == Path("docs")}
    for page in sorted(expected - {f"docs/{entry}" for entry in ENTRIES}):
        if times[page] != 1:
            yield (
                f"{page}: {times[page]} of the entries {', '.join(ENTRIES)} list it; the site's "
                "menu needs one. Add an item `- [title](page.md): content` to one of them."
            )


if __name__ == "__main__":
    sys.exit(main())
