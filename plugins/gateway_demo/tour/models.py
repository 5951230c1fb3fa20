"""The purchases that need the extra `models`: a cut-out, an enlargement, speech, a transcript."""

import base64
import re
import textwrap
from typing import Any

import attrs

from gateway.web.routes.files import Assets, static_folder
from gateway_demo.tour.purchases import Buyer
from gateway_demo.tour.screen import NOTABLE

CUT_OUT_SLUG = "background-removal"
ENLARGE_SLUG = "image-upscaling"
SPEECH_SLUG = "text-to-speech"
TRANSCRIPT_SLUG = "speech-to-text"
SLUGS = frozenset({CUT_OUT_SLUG, ENLARGE_SLUG, SPEECH_SLUG, TRANSCRIPT_SLUG})
# A photograph in the public domain.
_PHOTOGRAPH = "photo.webp"
_MOST_CHARS = 300
_LINE_CHARS = 70
# Headings, tables, lists and notes are not read aloud.
_UNSPOKEN = re.compile(r"[#|>*\-\[!`]|\d+\.")


@attrs.frozen
class ModelBuyer:
    """Buys what real models make, and shows each step."""

    buyer: Buyer

    def cut_out(self) -> None:
        """Buy a photograph without its background."""
        body = {"output_format": "png", **_photograph()}
        self._buy(CUT_OUT_SLUG, body, "no prompt, a photograph", "cut-out.png")

    def enlarge(self) -> None:
        """Buy the photograph with four times the width and height."""
        body = {"output_format": "png", "resolution": "4x", **_photograph()}
        self._buy(ENLARGE_SLUG, body, "no prompt, the same photograph", "enlarged.png")

    def read_aloud(self, markdown: str) -> bytes:
        """Buy the first sentences of a document as speech."""
        text = first_sentences(markdown)
        body = {"prompt": text, "output_format": "mp3"}
        return self._buy(SPEECH_SLUG, body, f"{len(text)} characters of the document", "speech.mp3")

    def transcribe(self, sound: bytes) -> None:
        """Buy the words of a sound."""
        body = {"output_format": "txt", **_file("speech.mp3", sound)}
        words = self._buy(TRANSCRIPT_SLUG, body, "no prompt, the sound", "transcript.txt")
        self.buyer.screen.excerpt(textwrap.fill(words.decode(), _LINE_CHARS))

    def _buy(self, slug: str, body: dict[str, str], prompt: str, name: str) -> bytes:
        with self.buyer.screen.step("Request, sign, repeat") as step:
            status_url = self.buyer.buy_at_once(step, slug, body, prompt)
        with self.buyer.follow_task("result", status_url) as (step, task):
            output = task["result"]["outputs"][0]
            content = self.buyer.client.download(output)
            step.fact("saved", str(self.buyer.save(name, content)), NOTABLE)
            step.fact("", _describe(output))
        return content


def first_sentences(markdown: str) -> str:
    """Return the first paragraphs of a document, up to some hundred characters."""
    lines = [line.strip() for line in markdown.splitlines()]
    text = " ".join(line for line in lines if line and not _UNSPOKEN.match(line))
    if len(text) <= _MOST_CHARS:
        return text
    end = text.rfind(". ", 0, _MOST_CHARS)
    return text[: end + 1] if end > 0 else text[:_MOST_CHARS]


def _describe(output: dict[str, Any]) -> str:
    size = f"{output['width']} x {output['height']}, " if output.get("width") else ""
    length = f"{output['seconds']:.1f} s, " if output.get("seconds") else ""
    return f"{size}{length}{output['bytes']:,} bytes, SHA-256 verified"


def _photograph() -> dict[str, str]:
    assets = Assets(static_folder() / "web")
    return _file(_PHOTOGRAPH, assets[assets.url(_PHOTOGRAPH).removeprefix(assets.prefix)].data)


def _file(name: str, data: bytes) -> dict[str, str]:
    return {"fileName": name, "fileBase64": base64.b64encode(data).decode()}
