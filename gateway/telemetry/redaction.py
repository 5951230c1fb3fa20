"""Redacts secrets and prompts in texts for the log or a public page.

Most of these texts come from outside the gateway: a plugin's exception or output, a vendor's
response. They may quote the operator's key or the buyer's prompt, whole or in part, plain or
escaped.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import attrs
import typed_settings as ts

from gateway.settings import SectionOffer, Settings

REDACTED = "…"
# Shorter secrets and prompts are not redacted: they may be any word.
_MIN_CHARS = 8
# Shorter lines of a PEM and folders of a URL are not redacted on their own.
_MIN_PART_CHARS = 12
# Length of the shortest quote from a prompt that is redacted.
_RUN_CHARS = 24
# A prompt is cut into pieces of this length. Any run of _RUN_CHARS contains a whole piece.
_GRAM_CHARS = 12
# A quote may be shorter than the prompt by this factor: the prompt has a percent-encoded emoji, the
# text the character.
_MAX_SHORTENED = 12
# The quick check searches for the longest word in this many characters of the prompt.
_SKIMMED_CHARS = 256
# Longer texts skip the quick check.
_MAX_SKIMMED_CHARS = 2_000
# Remembered places of one piece, in a prompt that repeats itself.
_MAX_PLACES = 8
# A redacted word in a response would confirm a guess.
_CHOSEN_BY_A_PERSON = "admin_password"
_SECRET_NAME = re.compile(r"(KEYS?|SECRET|TOKEN|PASSWORD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9]+")
# Between the keys of a list, also a malformed one.
_SEPARATORS = re.compile(r"[,;\s]+")
_HEX = re.compile(r"(0[xX])?[0-9a-fA-F]{16,}")


class _Prompt:
    """A buyer's prompt, indexed at the first text that may quote it."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _spellings(self) -> list[str]:
        return sorted(_spellings(self._text), key=len, reverse=True)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The start positions of each piece; pieces neither overlap nor leave gaps."""
        found: dict[str, list[int]] = {}
        for at in range(0, len(self._text) - _GRAM_CHARS + 1, _GRAM_CHARS):
            places = found.setdefault(self._text[at : at + _GRAM_CHARS], [])
            if len(places) < _MAX_PLACES:
                places.append(at)
        return found

    def may_be_in(self, text: str) -> bool:
        """Check quickly whether `take_out_of` could change a text.

        Every spelling contains the prompt's words unchanged. If text and prompt share `_RUN_CHARS`
        in a row, each contains a whole piece of `_GRAM_CHARS` of the other, at any alignment.
        """
        # For a long text this check would take longer than the search. Only `unquote` changes
        # words: those after a percent sign.
        is_long = len(text) > _MAX_SKIMMED_CHARS
        if is_long or "%" in self._text or self._longest_word in text:
            return True
        shorter, longer = sorted((text, self._text), key=len)
        starts = range(0, len(shorter) - _GRAM_CHARS + 1, _GRAM_CHARS)
        return any(shorter[at : at + _GRAM_CHARS] in longer for at in starts)

    @cached_property
    def _longest_word(self) -> str:
        return max(_WORD.findall(self._text[:_SKIMMED_CHARS]), key=len, default="")

    def take_out_of(self, text: str) -> str:
        """Redact the prompt, and any `_RUN_CHARS` of it in a row."""
        if len(text) < _MIN_CHARS or not self.may_be_in(text):
            return text
        if len(text) * _MAX_SHORTENED >= len(self._text):
            for spelling in self._spellings:
                text = text.replace(spelling, REDACTED)
        return "".join(self._remove_runs(text)) if len(text) >= _RUN_CHARS else text

    def _remove_runs(self, text: str) -> Iterator[str]:
        """Yield the redacted text in parts, in time linear in its length."""
        kept = at = 0
        while at <= len(text) - _GRAM_CHARS:
            places = self._places.get(text[at : at + _GRAM_CHARS])
            if places is None:
                at += 1
                continue
            runs = [self._widen_run(text, at, place, kept) for place in places]
            start, end = max(runs, key=lambda run: run[1] - run[0])
            if end - start < _RUN_CHARS:
                at += 1
                continue
            yield text[kept:start]
            yield REDACTED
            kept = at = end
        yield text[kept:]

    def _widen_run(self, text: str, at: int, place: int, least: int) -> tuple[int, int]:
        """Return start and end, in the text, of the run that text and prompt share around a piece.

        The piece is at `at` in the text and at `place` in the prompt. The run starts no earlier
        than `least`.
        """
        prompt, start, end = self._text, at, at
        shift = place - at
        while start > least and start + shift > 0 and text[start - 1] == prompt[start + shift - 1]:
            start -= 1
        while end < len(text) and end + shift < len(prompt) and text[end] == prompt[end + shift]:
            end += 1
        return start, end


_prompt: ContextVar[_Prompt | None] = ContextVar("prompt", default=None)


def hide_prompt(prompt: str | None) -> None:
    """Redact this prompt in texts of the current asyncio task and the tasks that it starts."""
    text = (prompt or "").strip()
    _prompt.set(_Prompt(text) if len(text) >= _MIN_CHARS else None)


class Redactor:
    """Redacts the operator's secrets and the current prompt. A process has one redactor."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add_secrets(secrets)

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Add secrets, in each spelling; very short ones are ignored."""
        known = len(self._secrets)
        for value in secrets:
            for part in _parts(value.strip()):
                self._secrets.update(_spellings(part))
        if len(self._secrets) > known:
            longest_first = sorted(self._secrets, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def without_secrets(self, text: str) -> str:
        """Return a text without the operator's secrets."""
        return self._pattern.sub(REDACTED, text) if self._pattern is not None else text

    def may_hold(self, text: str) -> bool:
        """Check quickly whether `clean` could change a text or a part of it."""
        if self._pattern is not None and self._pattern.search(text) is not None:
            return True
        prompt = _prompt.get()
        return prompt is not None and prompt.may_be_in(text)

    def clean(self, text: str) -> str:
        """Return a text without the operator's secrets and the current prompt."""
        text = self.without_secrets(text)
        prompt = _prompt.get()
        return prompt.take_out_of(text) if prompt is not None else text


def secrets_of(
    settings: Settings, sections: Iterable[SectionOffer] = (), *, are_all: bool = False
) -> Iterator[str]:
    """Yield every secret in the settings and the environment.

    A plugin's setting is secret if the plugin declares it so. A setting in none of `sections` is
    secret if its name suggests that, or in any case if `are_all` (no plugin is missing from
    `sections`). The admin's password is left out: a person chose it.
    """
    for field in attrs.fields(Settings):
        if field.name != "plugin_values":
            yield from _secrets_in_field(field, getattr(settings, field.name))
    fields = {name: field for one in sections for name, field in one.fields.items()}
    for name, value in settings.plugin_values.items():
        if name == _CHOSEN_BY_A_PERSON:
            continue
        if name in fields:
            yield from _secrets_in_field(fields[name], value)
        elif are_all or _SECRET_NAME.search(name):
            yield str(value)
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and name != "GATEWAY_ADMIN_PASSWORD":
            yield value


def names_secret(name: str) -> bool:
    """Whether a setting's name suggests that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


def _secrets_in_field(field: "attrs.Attribute[Any]", value: Any) -> Iterator[str]:
    if isinstance(field.default, ts.SecretStr):
        yield str(value)
        for word in str(value).split():
            if "://" in word:
                yield word
                # An `ntfy://` URL's topic is its host, and anyone who knows it can read the topic.
                yield urlsplit(word).netloc
                yield from _secrets_in_address(word)
    elif not field.repr:
        for address in (value,) if isinstance(value, str) else value:
            yield from _secrets_in_address(address)


def _secrets_in_address(address: str) -> Iterator[str]:
    """Yield the parts of an RPC URL that may be a key: user, password, query, long folders."""
    url = urlsplit(address)
    for part in (url.username, url.password, *url.query.replace("=", "&").split("&")):
        yield part or ""
    for folder in url.path.split("/"):
        is_plain_word = folder.isalpha() and folder.islower()
        if len(folder) >= _MIN_PART_CHARS and not is_plain_word:
            yield folder
    if url.username or url.query or len(url.path) > _MIN_PART_CHARS:
        yield address


def _parts(value: str) -> Iterator[str]:
    """Yield a secret and the parts that may be quoted alone.

    These are the lines of a PEM, the digits of a key, and each key of a list.
    """
    yield value
    keys = _SEPARATORS.split(value)
    if len(keys) > 1:
        for key in filter(_HEX.fullmatch, keys):
            yield from _parts(key)
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= _MIN_PART_CHARS)
    if _HEX.fullmatch(value):
        digits = value[2:] if value[:2] in ("0x", "0X") else value
        yield from (digits, digits.lower(), digits.upper())


def _spellings(value: str) -> set[str]:
    """Return the forms of a value in a text: plain, escaped once or twice, URL-encoded."""
    written = (repr(value), json.dumps(value), json.dumps(value, ensure_ascii=False))
    escaped = {each[1:-1] for each in written}
    found = {value, unquote(value), quote(value), quote(value, safe=""), *escaped}
    found |= {repr(each)[1:-1] for each in escaped}
    return {each for each in found if len(each) >= _MIN_CHARS}
