"""The requests of `gateway examples`: what each kind of offer is asked for."""

import io

from gateway.domain import (
    DOCUMENT_EXTRACTION,
    IMAGE_EDITING,
    TEXT_TO_IMAGE,
    Attachment,
    Choice,
    Endpoint,
    GenerationRequest,
)
from gateway.errors import SettingsError
from gateway.web.routes.files import Assets, static_folder

# Harmless for every vendor's filter, and different enough to fill a page. Offers take turns.
_PROMPTS = {
    TEXT_TO_IMAGE: (
        "a lighthouse above a stormy sea at night",
        "a red fox in fresh snow, early morning light",
        "a greenhouse full of ferns, sunlight through old glass",
        "an empty tram on a steep street in the rain, evening",
        "ripe apricots on a blue table, still life in oil",
        "a mountain lake in the evening, one small boat",
        "a paper boat on a puddle after the rain, close-up",
        "a city at dawn, seen from the hills",
    ),
    IMAGE_EDITING: (
        "make it winter, with falling snow",
        "paint it in the style of a Japanese woodblock print",
        "golden light of a late afternoon, and a sailing ship",
    ),
}
_WIDE = ("4:3", "3:2", "16:9")
_QUESTION = "What does it show?"
_PICTURE = "sandbox.webp"
_SCHEMA = (
    '{"type":"object","properties":{"title":{"type":"string"},"period":{"type":"string"},'
    '"revenue":{"type":"array","items":{"type":"object","properties":'
    '{"region":{"type":"string"},"dollars":{"type":"number"}}}}}}'
)
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
    if endpoint.capability == DOCUMENT_EXTRACTION:
        return _SCHEMA
    if prompts := _PROMPTS.get(endpoint.capability):
        return prompts[turn % len(prompts)]
    return _QUESTION if "prompt" in endpoint.required_fields else ""


def _find_file(endpoint: Endpoint) -> Attachment:
    endings = endpoint.file_extensions
    if endpoint.edits_pictures:
        ending = next((one for one in _FORMATS if one in endings), "")
        if ending:
            return Attachment(name=f"lake{ending}", data=_draw_lake(ending))
    elif ".pdf" in endings:
        # Slow to import.
        from gateway_demo.sample import sample_pdf  # noqa: PLC0415

        return Attachment(name="report.pdf", data=sample_pdf())
    elif text := next((one for one in (".md", ".txt") if one in endings), ""):
        return Attachment(name=f"report{text}", data=_REPORT.encode())
    raise SettingsError(f"{endpoint.slug} takes no PDF, picture or text, and we have nothing else.")


def _draw_lake(ending: str) -> bytes:
    """Return the picture of the pages' own editing sample in a format."""
    from PIL import Image  # noqa: PLC0415 - slow to import

    assets = Assets(static_folder() / "web")
    built = assets[assets.url(_PICTURE).removeprefix(assets.prefix)].data
    if ending == ".webp":
        return built
    file = io.BytesIO()
    with Image.open(io.BytesIO(built)) as picture:
        picture.convert("RGB").save(file, _FORMATS[ending])
    return file.getvalue()
