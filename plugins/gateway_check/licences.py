"""The licences of the models of the extras `models` and `nsfw`, and of their packages."""

import re
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec

import attrs

_GATEWAY = "generation-gateway"
_WEIGHTS = {_GATEWAY, "generation-gateway-models", "generation-gateway-models-large"}
_EXTRAS = ("models", "models-large", "nsfw")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_OF_EXTRA = re.compile(r"""\bextra\s*==\s*['"]([^'"]+)['"]""")
_MAX_CHARS = 60


@attrs.frozen
class Shipped:
    """A file of weights, or a package that runs it."""

    name: str
    licence: str
    source: str
    sha256: str = ""


def find_licences() -> list[Shipped]:
    """Return the installed weights, and the installed packages of the extras."""
    if find_spec("generation_gateway_models") is None:
        return []
    from generation_gateway_models import licences  # noqa: PLC0415 - the extra may be missing

    weights = [Shipped(one.name, one.licence, one.source, one.sha256) for one in licences()]
    return [*weights, *map(_package, sorted(_packages()))] if weights else []


def _packages() -> set[str]:
    """Return the installed packages that the extras need, with all that those need."""
    found: set[str] = set()
    waiting = [name for name, extra in _required(_GATEWAY) if extra in _EXTRAS]
    while waiting:
        name = waiting.pop()
        if name in found or not _is_installed(name):
            continue
        found.add(name)
        waiting += [needed for needed, extra in _required(name) if not extra]
    return found - _WEIGHTS


def _required(package: str) -> Iterator[tuple[str, str]]:
    """Yield the packages that one requires, each with the extra for which it does."""
    for line in metadata.requires(package) or ():
        name, extra = _NAME.match(line), _OF_EXTRA.search(line)
        if name is not None:
            yield name[0].lower().replace("_", "-"), extra[1] if extra else ""


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _package(name: str) -> Shipped:
    about = metadata.metadata(name)
    return Shipped(f"{name} {metadata.version(name)}", _licence_of(about), f"package {name}")


def _licence_of(about: metadata.PackageMetadata) -> str:
    """Return the licence of a package in a few words."""
    classified = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or ()
        if line.startswith("License :: ")
    ]
    expression, written = about.get_all("License-Expression"), about.get_all("License")
    given = [*(expression or ()), *classified, *(written or ())]
    first = next((text for text in given if text.strip()), "not named")
    return first.strip().splitlines()[0][:_MAX_CHARS]
