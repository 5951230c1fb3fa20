"""The requests of `gateway examples`: what each kind of offer is asked for."""

import io

from gateway.domain import (
    DOCUMENT_FILE,
    Attachment,
    Choice,
    Endpoint,
    GenerationRequest,
)
from gateway.domain.description import sample_file
from gateway.errors import SettingsError
from gateway.web.routes.files import Assets, static_folder
from gateway_shop import sample_files
from gateway_shop.sample_files import SampleFile

_WIDE = ("4:3", "3:2", "16:9")
_FORMATS = {".webp": "WEBP", ".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG"}
_REPORT = """# Quarterly Report

Harbour Coffee Roasters sold 33,289 bags between July and September 2026.

| Region | Orders | Revenue in dollars |
| --- | --- | --- |
| North Sea coast | 1204 | 148050 |
| Rhine valley | 986 | 111225 |
| Alps | 512 | 61380 |
"""


def order(endpoint: Endpoint, turn: int, prompt: str = "") -> GenerationRequest:
    """Return the request of an example; `turn` chooses one of our prompts if `prompt` is empty.

    It is wide, as the cards of the pages are; other choices have their defaults. Raises
    `SettingsError` for an endpoint whose files we do not have.
    """
    attachment = _find_file(endpoint) if endpoint.takes_file else None
    is_pdf = attachment is not None and attachment.extension == ".pdf"
    return GenerationRequest(
        prompt=prompt or _find_prompt(endpoint, turn),
        aspect_ratio=_find_ratio(endpoint.aspect_ratio),
        output_format=endpoint.output_format.default,
        resolution=endpoint.resolution.default,
        attachment=attachment,
        pages=(2 if is_pdf else 1) if endpoint.counts_pages else None,
    )


def _find_ratio(ratio: Choice) -> str | None:
    return next((one for one in _WIDE if one in ratio.values), ratio.default)


def _find_prompt(endpoint: Endpoint, turn: int) -> str:
    prompt = endpoint.declaration.prompt
    if prompt.use == "required" or "prompt" in endpoint.required_fields:
        return prompt.examples[turn % len(prompt.examples)]
    return ""


def _find_file(endpoint: Endpoint) -> Attachment:
    endings = endpoint.file_extensions
    sample = sample_files.choose(endpoint)
    if sample is not None and (ending := _find_ending(sample, endings)):
        return Attachment(name=f"sample{ending}", data=_convert(sample, ending))
    if ".pdf" in endings:
        # Slow to import.
        from gateway_demo.sample import sample_pdf  # noqa: PLC0415

        return Attachment(name="report.pdf", data=sample_pdf())
    if text := next((one for one in (".md", ".txt") if one in endings), ""):
        return Attachment(name=f"report{text}", data=_REPORT.encode())
    if DOCUMENT_FILE not in endpoint.file_kinds and (own := sample_file(endpoint)):
        return Attachment(name=own[0], data=own[1])
    raise SettingsError(f"{endpoint.slug} takes no PDF, picture or text, and we have nothing else.")


def _find_ending(sample: SampleFile, endings: tuple[str, ...]) -> str:
    """Return the extension in which an endpoint takes a sample, or an empty text."""
    own = sample.ending
    known = (own, *_FORMATS) if own in _FORMATS else (own,)
    return next((one for one in known if one in endings), "")


def _convert(sample: SampleFile, ending: str) -> bytes:
    """Return a sample, a picture also in another format."""
    assets = Assets(static_folder() / "web")
    built = assets[assets.url(sample.asset).removeprefix(assets.prefix)].data
    if ending == sample.ending:
        return built
    from PIL import Image  # noqa: PLC0415 - slow to import

    file = io.BytesIO()
    with Image.open(io.BytesIO(built)) as picture:
        picture.convert("RGB").save(file, _FORMATS[ending])
    return file.getvalue()
