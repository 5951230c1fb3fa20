"""The operator's logo: a file whose type is read from its content."""

import hashlib
from pathlib import Path
from typing import Any

import attrs

from gateway.errors import SettingsError
from gateway_shop.settings import ShopSettings

# A page loads it before everything else.
MAX_BYTES = 200_000
_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
}
_WAY_OUT = "Save it as PNG, or as plain SVG."
# Elements and attributes that run code, or load or change something.
_ACTIVE = {"script", "foreignobject", "iframe", "object", "embed", "audio", "video", "link", "set"}
_LINKS = ("href", "src")
_EMBEDDED = ("#", "data:image/png", "data:image/jpeg", "data:image/webp")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Logo:
    """The file as buyers get it."""

    # Such as `logo-0a1b2c3d.svg`: it changes with the content.
    name: str
    media_type: str
    data: bytes


def read_logo(settings: ShopSettings) -> Logo | None:
    """Return the logo, or None; raises `SettingsError` for a file that is no safe picture."""
    path = settings.logo_file
    if path is None:
        return None
    if settings.logo_url:
        raise SettingsError(
            "GATEWAY_LOGO_FILE and GATEWAY_LOGO_URL are both set: remove one of them."
        )
    data = _read(path)
    ending = _find_type(data)
    if ending == ".svg" and (problem := _find_danger(data)):
        raise _refusal(path, f"{problem}. {_WAY_OUT}")
    digest = hashlib.sha256(data).hexdigest()[:8]
    return Logo(name=f"logo-{digest}{ending}", media_type=_TYPES[ending], data=data)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refusal(path, f"it cannot be read ({error.strerror})") from None
    if len(data) > MAX_BYTES:
        raise _refusal(path, f"it has more than {MAX_BYTES // 1000} KB")
    if not _find_type(data):
        raise _refusal(path, "it is no PNG, JPEG, WebP or SVG, whatever its name says")
    return data


def _refusal(path: Path, problem: str) -> SettingsError:
    return SettingsError(f"GATEWAY_LOGO_FILE={path}: {problem.rstrip('.')}.")


def _find_type(data: bytes) -> str:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return ".png"
    if data.startswith(b"\xff\xd8\xff"):
        return ".jpg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ".webp"
    return ".svg" if _parse(data) is not None else ""


def _parse(data: bytes) -> Any:
    """Return the root of an SVG, or None. Entities are not resolved, and nothing is loaded."""
    # Slow to import, and few gateways have such a logo.
    from lxml import etree  # noqa: PLC0415

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        return None
    return root if etree.QName(root).localname == "svg" else None


def _find_danger(data: bytes) -> str:
    """Return what a picture must not have, or nothing.

    As an `<img>` an SVG runs no script. These rules also hold for who opens the file itself.
    """
    root = _parse(data)
    if root.getroottree().docinfo.doctype:
        return "it has a DOCTYPE"
    for element in root.getroottree().xpath("//* | //processing-instruction()"):
        if not isinstance(element.tag, str):
            return "it has a processing instruction"
        if (name := _local(element.tag).lower()) in _ACTIVE or name.startswith("animate"):
            return f"it has the element <{name}>"
        for attribute, value in element.attrib.items():
            if problem := _find_in_attribute(str(attribute).lower(), str(value)):
                return problem
        if name == "style" and _loads("".join(element.itertext())):
            return "its style loads something"
    return ""


def _find_in_attribute(attribute: str, value: str) -> str:
    name = _local(attribute)
    if name != attribute and "xlink" not in attribute:
        # A drawing program's own note.
        return ""
    if name.startswith("on"):
        return f"it has the script attribute {name}"
    if name in _LINKS and not value.strip().lower().startswith(_EMBEDDED):
        return f"it links to {value[:40]!r}"
    return f"its attribute {name} loads something" if _loads(value) else ""


def _loads(style: str) -> bool:
    """Whether a style refers to anything but a part of the same file."""
    plain = style.lower().replace(" ", "").replace('"', "").replace("'", "")
    has_call = any(word in plain for word in ("@import", "image-set(", "\\"))
    return has_call or plain.count("url(") != plain.count("url(#")


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
