"""Reads the operator's folder of declarations."""

import tomllib
from pathlib import Path

import msgspec

from gateway import SettingsError
from gateway_http.checks import check_declaration
from gateway_http.declarations import Declaration

_MANUAL = "docs/http-endpoints.md lists every key."


def read_folder(folder: str) -> dict[str, Declaration]:
    """Return the declarations of a folder by slug, which is a file's name.

    Raises `SettingsError` with one sentence that names the file and the mistake.
    """
    return {path.stem: read_file(path) for path in list_files(folder)}


def list_files(folder: str) -> list[Path]:
    """Return the files of a folder. Those of an editor begin with a dot. Raises `SettingsError`."""
    place = Path(folder)
    if not place.is_dir():
        raise SettingsError(
            f"GATEWAY_HTTP_ENDPOINTS names {folder}, which is no folder. Example: "
            "GATEWAY_HTTP_ENDPOINTS=endpoints"
        )
    return sorted(path for path in place.glob("*.toml") if not path.name.startswith("."))


def read_file(path: Path) -> Declaration:
    """Return the declaration in a file; raises `SettingsError`."""
    try:
        found = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Declaration)
        check_declaration(found)
    except OSError as error:
        raise SettingsError(f"{path.name} cannot be read: {error.strerror}.") from None
    except msgspec.ValidationError as error:
        reason = str(error).replace(" - at `$.", " - at `").removesuffix(" - at `$`")
        raise SettingsError(f"{path.name} is not right: {reason}. {_MANUAL}") from None
    except (ValueError, SettingsError) as error:
        raise SettingsError(f"{path.name} is not right: {error}. {_MANUAL}") from None
    return found
