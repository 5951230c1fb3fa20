"""A hook of mkdocs: the site's pages are the repository's, at the same paths.

Relative links therefore work in both places, also to files outside docs/. The menu is made from the
entry pages (links.ENTRIES).
"""

from typing import Any

import links
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the menu: README, then a tab for each entry."""
    config.nav = [{"Start": "README.md"}, *map(_tab, links.entry_pages(links.ROOT).items())]
    return config


def _tab(entry: tuple[str, dict[str, str]]) -> dict[str, Any]:
    name, listed = entry
    menu = [{title: page} for page, title in listed.items()]
    return {name.removesuffix(".md").title(): [f"docs/{name}", *menu]}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of docs/ by the pages in the menu, and all files that they link to."""
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    for name in sorted(_reachable()):
        files.append(File(name, str(links.ROOT), config.site_dir, config.use_directory_urls))
    return files


def _reachable() -> set[str]:
    tracked = links.tracked(links.ROOT)
    found, waiting = set[str](), ["README.md"]
    while waiting:
        name = waiting.pop()
        if name in found or name not in tracked:
            continue
        found.add(name)
        if name.endswith(".md"):
            waiting += [
                links.resolve(name, link.partition("#")[0])
                for _, link in links.links(links.ROOT / name)
            ]
    return found
