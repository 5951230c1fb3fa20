"""Reads web addresses, e-mail addresses and file names: dots, slashes and dashes as words."""

import re

# The last part of a bare host name. Others are more often two sentences without a space.
_ENDINGS = "com|org|net|edu|gov|io|co|ai|app|dev|info|biz|me|tv|uk|us|de|fr|eu|ca|au|jp|ch|at|nl"
_FILES = (
    "md|txt|pdf|docx?|xlsx?|pptx?|csv|json|ya?ml|toml|xml|html?|css|js|ts|py|rs|go|sh|exe|zip|gz|tar"
    "|png|jpe?g|gif|svg|webp|mp3|mp4|wav|flac|ogg|opus|srt|vtt|log|ini|cfg"
)
_MAIL = re.compile(r"(?<![\w.+-])([\w.+-]{1,64})@((?:[\w-]{1,63}\.){1,8}[a-zA-Z]{2,24})(?![\w-])")
_URL = re.compile(r"(?i:\b(?:https?|ftp)://|\bwww\.)[^\s<>()\"']{2,2000}")
_HOST = re.compile(
    rf"(?<![\w@.-])((?:[a-zA-Z\d-]{{1,63}}\.){{1,8}}(?:{_ENDINGS}))(?![\w-]|\.\w)(/[\w./~%-]*)?"
)
_FILE = re.compile(rf"(?<![\w.-])([\w-]{{1,64}}(?:\.[\w-]{{1,64}}){{0,4}}\.(?:{_FILES}))(?![\w-])")
_PATH = re.compile(r"(?<![\w.:])~?(?:/[\w.-]{1,64}){2,16}/?")
_SIGNS = {".": "dot", "/": "slash", "-": "dash", "_": "underscore", "+": "plus", "~": "tilde"}
_PART = re.compile(r"[^\W\d_]+|\d+|[./_+~-]")
# Words in addresses, of which shorter ones are spelled.
_SPELLED_LETTERS = 2
_WORDS = {"co", "me", "my", "go", "to", "in", "of", "is", "us", "we", "do", "up", "on", "at", "it"}
_END_OF_SENTENCE = ".,;:!?"


def spoken(text: str) -> str:
    """Return the text with its addresses as words. Queries and fragments are left out."""
    text = _MAIL.sub(lambda found: f"{_read(found[1])} at {_read(found[2])}", text)
    text = _URL.sub(_read_url, text)
    text = _HOST.sub(lambda found: _read(found[0].rstrip(_END_OF_SENTENCE)) + _rest(found[0]), text)
    text = _PATH.sub(lambda found: _read(found[0].rstrip(_END_OF_SENTENCE)) + _rest(found[0]), text)
    return _FILE.sub(lambda found: _read(found[0]), text)


def _read_url(found: re.Match[str]) -> str:
    url = found[0].rstrip(_END_OF_SENTENCE)
    address = re.sub(r"^(?i:https?|ftp)://", "", url)
    address = re.split(r"[?#]", address, maxsplit=1)[0].rstrip("/")
    return _read(address) + _rest(found[0])


def _rest(address: str) -> str:
    """Return the punctuation of the sentence behind an address."""
    return address[len(address.rstrip(_END_OF_SENTENCE)) :]


def _read(address: str) -> str:
    return " ".join(map(_read_part, _PART.findall(address)))


def _read_part(part: str) -> str:
    if part in _SIGNS:
        return _SIGNS[part]
    if part.isdigit():
        return part if len(part) <= 4 else " ".join(part)  # noqa: PLR2004 - a year, a port
    if part.lower() == "www":
        return "W.W.W."
    is_short = len(part) <= _SPELLED_LETTERS and part.lower() not in _WORDS
    return " ".join(part.upper()) if is_short else part
