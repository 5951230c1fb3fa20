"""Parses request bodies strictly, and checks them against specification and endpoint."""

import base64
import codecs
import functools
import hashlib
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

import attrs
import msgspec

from gateway.domain import (
    ASPECT_RATIOS,
    MAX_CALLBACK_CHARS,
    MAX_FILE_BYTES,
    MAX_FILE_NAME_CHARS,
    MAX_PROMPT_CHARS,
    OUTPUT_FORMATS,
    PAYER_SIGNATURE,
    TX_HASH,
    Attachment,
    Choice,
    Endpoint,
    GenerationRequest,
)
from gateway.domain.built_in import KNOWN_FORMATS
from gateway.errors import PayloadTooLarge, ValidationError

# A fixed limit, because the recursion limit differs between Python versions.
_MAX_DEPTH = 100
# A request needs two; the rest may come from unknown fields, which are ignored.
_MAX_BRACKETS = 10_000
# The scan yields to other threads after each piece.
_PIECE_BYTES = 64 * 1024
_NO_MARKS = bytes(set(range(256)) - set(b'"[]{}'))
_NOT_A_STRING = re.compile(r"Expected `(?:str|bytes) \| null`, got `\w+` - at `\$\.(\w+)`")
_TX_HASH = re.compile(TX_HASH)
_SIGNATURE = re.compile(PAYER_SIGNATURE)
# Host names are ASCII; others use `xn--`.
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_ADDRESS = re.compile(
    rf"https?://(?:{_LABEL}(?:\.{_LABEL})*|\[(?P<ip>[0-9A-Fa-f:.]{{2,45}})\])(?::(?P<port>[0-9]{{1,5}}))?"
    r"(?:[/?][!-~]*)?"
)
_MAX_PORT = 65_535
Body = TypeVar("Body", bound="GenerationBody")


@attrs.frozen(kw_only=True)
class GenerationBody:
    """Body of `POST /api/x402/{slug}` (spec §2.1, and the file of document endpoints)."""

    prompt: str | None = None
    aspect_ratio: str | None = None
    output_format: str | None = None
    resolution: str | None = None
    file: bytes | None = attrs.field(default=None, repr=False)
    file_name: str | None = None
    # Not in `repr`, because many contain a secret.
    callback_url: str | None = attrs.field(default=None, repr=False)

    @functools.cached_property
    def attachment(self) -> Attachment | None:
        """The file and its hash, which takes long for a large one. None without a file."""
        if self.file is None or self.file_name is None:
            return None
        return Attachment(name=self.file_name, data=self.file)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DirectBody(GenerationBody):
    """Body of `POST /api/proxy-generate` (spec §2.2, and the payer's proof)."""

    slug: str
    tx_hash: str
    payer_signature: str | None = None


class _LoginFields(TypedDict, total=False):
    """The msgspec schema of `POST /admin/login`."""

    password: str | None
    code: str | None


_NAMES = {
    "file": "fileBase64",
    "file_name": "fileName",
    "callback_url": "callbackUrl",
    "tx_hash": "txHash",
    "payer_signature": "payerSignature",
}
_FIELD_NAMES = {name: field for field, name in _NAMES.items()}
_REQUIRED: Mapping[type, tuple[str, ...]] = {GenerationBody: (), DirectBody: ("slug", "txHash")}


def _decoder_of(kind: type["GenerationBody"]) -> "msgspec.json.Decoder[Any]":
    """Return a decoder to a dictionary of a body's fields, in which Base64 has become bytes.

    A wrong type stops msgspec before it builds the value.
    """
    fields = {_NAMES.get(one.name, one.name): one.type | None for one in attrs.fields(kind)}
    return msgspec.json.Decoder(TypedDict("Fields", fields, total=False))  # type: ignore[operator]


_DECODERS = {kind: _decoder_of(kind) for kind in (GenerationBody, DirectBody)}
_LOGIN_DECODER = msgspec.json.Decoder(_LoginFields)
_OBJECT_DECODER = msgspec.json.Decoder(dict[str, Any])


def read_login(data: bytes) -> tuple[str | None, str | None]:
    """Return the optional password and code of a login; raises `ValidationError`."""
    fields = _read_object(data, _LOGIN_DECODER)
    return fields.get("password"), fields.get("code")


def read_object(data: bytes) -> Mapping[str, Any]:
    """Return any JSON object, for the operator's small bodies; raises `ValidationError`."""
    return _read_object(data, _OBJECT_DECODER)


def _read_object(data: bytes, decoder: "msgspec.json.Decoder[Any]") -> Mapping[str, Any]:
    """Read a JSON object in UTF-8; raises `ValidationError` for anything else."""
    if has_too_many_brackets(data):
        raise ValidationError("The body nests brackets too deeply, or has too many of them.")
    try:
        _check_encoding(data)
        fields: Mapping[str, Any] = decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        if wrong := _NOT_A_STRING.fullmatch(str(error)):
            raise ValidationError(f"{wrong[1]} must be a string.") from None
        is_deep = isinstance(error, RecursionError)
        details = "nested too deeply" if is_deep else str(error)[:200]
        raise ValidationError("The body must be a JSON object in UTF-8.", details=details) from None
    return fields


def _check_encoding(data: bytes) -> None:
    """Raise `UnicodeDecodeError` for bad UTF-8, which msgspec accepts in unknown fields."""
    if len(data) <= _PIECE_BYTES:
        data.decode()
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), _PIECE_BYTES):
        decoder.decode(data[start : start + _PIECE_BYTES])
    decoder.decode(b"", final=True)


def has_too_many_brackets(data: bytes) -> bool:
    """Whether there are too many brackets outside strings, or too deeply nested ones."""
    # Most bodies have few brackets and need no scan.
    if data.count(b"[") + data.count(b"{") <= _MAX_DEPTH:
        return False
    depth = number = 0
    for brackets in _brackets_outside_strings(data):
        number += len(brackets)
        if number > _MAX_BRACKETS:
            return True
        for bracket in brackets:
            depth += 1 if bracket in b"[{" else -1
            if depth > _MAX_DEPTH:
                return True
    return False


def _brackets_outside_strings(data: bytes) -> Iterator[bytes]:
    """Yield the brackets outside strings for each piece of the body.

    This takes linear time. A regular expression for strings with escapes would take quadratic time
    on an unterminated string.
    """
    cut_escape, is_in_string = b"", False
    for start in range(0, len(data), _PIECE_BYTES):
        piece = cut_escape + data[start : start + _PIECE_BYTES]
        piece = piece.replace(rb"\\", b"")
        cut_escape = b"\\" if piece.endswith(b"\\") else b""
        marks = piece.replace(rb"\"", b"").translate(None, _NO_MARKS)
        parts = marks.split(b'"')
        yield b"".join(parts[is_in_string::2])
        is_in_string ^= len(parts) % 2 == 0


def read(kind: type[Body], data: bytes, formats: Sequence[str] = KNOWN_FORMATS) -> Body:
    """Parse a body without type conversion; ignore unknown fields. Raises `ValidationError`.

    `formats`: the values that `output_format` may have at any endpoint.
    """
    envelope = _read_object(data, _DECODERS[kind])
    for name in _REQUIRED[kind]:
        if envelope.get(name) is None:
            raise ValidationError(f"{name} is missing.")
    body = kind(**{_FIELD_NAMES.get(name, name): value for name, value in envelope.items()})
    _check_specification(body, formats)
    return body


def _check_specification(body: GenerationBody, formats: Sequence[str]) -> None:
    """Raise `ValidationError` for a body that violates spec §2.1 or §2.2."""
    if isinstance(body, DirectBody):
        if not _TX_HASH.fullmatch(body.tx_hash):
            raise ValidationError("txHash must be 0x followed by 64 hexadecimal characters.")
        if body.payer_signature is not None and not _SIGNATURE.fullmatch(body.payer_signature):
            raise ValidationError("payerSignature must be 0x followed by hexadecimal digits.")
        if body.prompt is None and body.file is None:
            raise ValidationError("prompt is missing.")
    if body.prompt is not None and not 1 <= len(body.prompt) <= MAX_PROMPT_CHARS:
        raise ValidationError("prompt must have 1 to 10,000 characters.")
    for name, value, allowed in (
        ("aspect_ratio", body.aspect_ratio, ASPECT_RATIOS),
        ("output_format", body.output_format, formats),
    ):
        if value is not None and value not in allowed:
            raise ValidationError(f"{name} must be one of: {', '.join(allowed)}.")
    if body.file is not None:
        _check_file(body.file, body.file_name)
    if body.callback_url is not None and not _is_address(body.callback_url):
        raise ValidationError(
            f"callbackUrl must be an address such as https://example.com/hook of at most "
            f"{MAX_CALLBACK_CHARS:,} characters, without a user name in it."
        )


def _is_address(text: str) -> bool:
    """Whether all URL parsers agree about the host of this address."""
    found = _ADDRESS.fullmatch(text) if len(text) <= MAX_CALLBACK_CHARS else None
    if found is None or (found["ip"] is not None and not _is_ip_v6(found["ip"])):
        return False
    return 0 < int(found["port"] or 1) <= _MAX_PORT


def _is_ip_v6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _check_file(file: bytes, name: str | None) -> None:
    if not name or len(name) > MAX_FILE_NAME_CHARS:
        raise ValidationError("fileBase64 needs a fileName of 1 to 255 characters.")
    if not file:
        raise ValidationError("The file is empty.")
    if len(file) > MAX_FILE_BYTES:
        raise PayloadTooLarge("The file is larger than 7.5 MB.")


def request_hash(body: GenerationBody) -> bytes:
    """Return the SHA-256 of the buyer's fields, which a `payerSignature` signs.

    It hashes their JSON in UTF-8 in JavaScript's format with sorted keys: no spaces, and only
    necessary escapes. A file is padded standard Base64.
    """
    fields = {}
    for field in attrs.fields(GenerationBody):
        value = getattr(body, field.name)
        if value is not None:
            is_file = isinstance(value, bytes)
            text = base64.b64encode(value).decode() if is_file else value
            fields[_NAMES.get(field.name, field.name)] = text
    written = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(written.encode()).digest()


def with_file(body: Body, file: bytes, name: str | None) -> Body:
    """Add a file that was sent separately; raises `ValidationError`."""
    _check_file(file, name)
    return attrs.evolve(body, file=file, file_name=name)


def request_of(body: GenerationBody, endpoint: Endpoint) -> GenerationRequest:
    """Check a body against the endpoint's rules, and fill in its defaults.

    Raises `ValidationError`.
    """
    return _fill_in(body, endpoint, _read_attachment(body, endpoint))


def sent_hash(body: GenerationBody, slug: str) -> str:
    """Return a SHA-256 (hex) of the buyer's fields and slug, whatever the endpoint's rules are."""
    sent = GenerationRequest(
        prompt=body.prompt or "",
        aspect_ratio=body.aspect_ratio,
        output_format=body.output_format,
        resolution=body.resolution,
        attachment=body.attachment,
        callback_url=body.callback_url,
    )
    return sent.fingerprint(slug)


def request_without_file(body: GenerationBody, endpoint: Endpoint) -> GenerationRequest:
    """Like `request_of`, for a request whose file is not uploaded yet."""
    name = body.file_name or ""
    if len(name) > MAX_FILE_NAME_CHARS:
        raise ValidationError("fileName must have 1 to 255 characters.")
    _check_extension(Attachment(name=name, data=b""), endpoint)
    return _fill_in(body, endpoint, None)


def _fill_in(
    body: GenerationBody, endpoint: Endpoint, attachment: Attachment | None
) -> GenerationRequest:
    if "prompt" in endpoint.required_fields and body.prompt is None:
        raise ValidationError("prompt is missing.")
    if len(body.prompt or "") > endpoint.max_prompt_chars:
        raise ValidationError(
            f"prompt must have 1 to {endpoint.max_prompt_chars:,} characters at this endpoint."
        )
    return GenerationRequest(
        prompt=body.prompt or "",
        aspect_ratio=_choose("aspect_ratio", body.aspect_ratio, endpoint.aspect_ratio),
        output_format=_choose_format(body.output_format, endpoint),
        resolution=_choose("resolution", body.resolution, endpoint.resolution),
        attachment=attachment,
    )


def _choose(name: str, value: str | None, choice: Choice) -> str | None:
    """Return a field's value or its default; ignore it if the endpoint has no choice."""
    if value is None or not choice.values:
        return choice.default
    if value not in choice.values:
        raise ValidationError(f"{name} must be one of: {', '.join(choice.values)}.")
    return value


def _choose_format(value: str | None, endpoint: Endpoint) -> str | None:
    """Like `_choose`; ignore a picture's format where no picture results (spec §2.1 allows it)."""
    if value is None:
        return endpoint.output_format.default
    if value in OUTPUT_FORMATS and value not in endpoint.formats:
        value = None
    elif value not in OUTPUT_FORMATS and value not in endpoint.output_format.values:
        raise ValidationError(f"This endpoint does not offer the output_format {value}.")
    return _choose("output_format", value, endpoint.output_format)


def _read_attachment(body: GenerationBody, endpoint: Endpoint) -> Attachment | None:
    if not endpoint.takes_file:
        if body.file is not None:
            raise ValidationError("This endpoint takes no file.")
        return None
    if (attachment := body.attachment) is None:
        raise ValidationError("fileBase64 is missing.")
    _check_extension(attachment, endpoint)
    return attachment


def _check_extension(attachment: Attachment, endpoint: Endpoint) -> None:
    if attachment.extension not in endpoint.file_extensions:
        allowed = ", ".join(endpoint.file_extensions)
        raise ValidationError(f"fileName must end in one of: {allowed}.")
