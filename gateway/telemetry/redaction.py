"""Takes secrets and prompts out of texts that go to the log or to a public page.

Most of these texts come from outside the gateway: a plugin's exception, what a plugin prints, a
vendor's answer. They may quote the operator's key or the buyer's prompt, whole or in part, plain or
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
# A shorter secret or prompt is not searched for: it may be any word.
_LEAST_CHARS = 8
# A shorter line of a PEM, or folder in an address, is not looked for by itself.
_LEAST_PART_CHARS = 12
# So many characters of a prompt in a row are taken out.
_RUN_CHARS = 24
# A prompt is cut into pieces of this length. Any run of _RUN_CHARS holds a whole one of them.
_GRAM_CHARS = 12
# A text that quotes a prompt may be shorter by this factor: a buyer sent an emoji escaped for an
# address, and the text has the character.
_MOST_SHORTENED = 12
# The longest word in so many characters of a prompt is looked for before its spellings are.
_SKIMMED_CHARS = 256
# A longer text is searched without a quick look before.
_MOST_SKIMMED_CHARS = 2_000
# So many places of the same piece are remembered, in a prompt that repeats itself.
_MAX_PLACES = 8
_SECRET_NAME = re.compile(r"(KEYS?|SECRET|TOKEN|PASSWORD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9]+")
# Between the keys of a list, also of one that is written wrongly.
_SEPARATORS = re.compile(r"[,;\s]+")
_HEX = re.compile(r"(0[xX])?[0-9a-fA-F]{16,}")


class _Prompt:
    """A buyer's prompt, prepared for the search at the first text that may quote it."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _spellings(self) -> list[str]:
        return sorted(_spellings(self._text), key=len, reverse=True)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Each piece of the prompt, without gaps or overlaps, to the places where it begins."""
        found: dict[str, list[int]] = {}
        for at in range(0, len(self._text) - _GRAM_CHARS + 1, _GRAM_CHARS):
            places = found.setdefault(self._text[at : at + _GRAM_CHARS], [])
            if len(places) < _MAX_PLACES:
                places.append(at)
        return found

    def may_be_in(self, text: str) -> bool:
        """Tell quickly whether `take_out_of` could change a text.

        Every spelling has the prompt's words as they are, and a text that shares `_RUN_CHARS` in a
        row with the prompt has a whole piece of `_GRAM_CHARS` in it, wherever the pieces begin.
        """
        # Of a long text the quick look would take longer than the search. Only `unquote` changes a
        # word: one that follows a percent sign.
        is_long = len(text) > _MOST_SKIMMED_CHARS
        if is_long or "%" in self._text or self._longest_word in text:
            return True
        starts = range(0, len(text) - _GRAM_CHARS + 1, _GRAM_CHARS)
        return any(text[at : at + _GRAM_CHARS] in self._text for at in starts)

    @cached_property
    def _longest_word(self) -> str:
        return max(_WORD.findall(self._text[:_SKIMMED_CHARS]), key=len, default="")

    def take_out_of(self, text: str) -> str:
        """Return a text without the prompt, and without any `_RUN_CHARS` in a row of it."""
        if len(text) < _LEAST_CHARS or not self.may_be_in(text):
            return text
        if len(text) * _MOST_SHORTENED >= len(self._text):
            for spelling in self._spellings:
                text = text.replace(spelling, REDACTED)
        return "".join(self._remove_runs(text)) if len(text) >= _RUN_CHARS else text

    def _remove_runs(self, text: str) -> Iterator[str]:
        """Yield what stays of a text, in time linear in its length."""
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
        """Return where the run that text and prompt share around a piece begins and ends in text.

        The piece is at `at` in the text and at `place` in the prompt; `least` is the earliest
        begin.
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
    """From now on, take this prompt out of the texts of the current task and those it starts."""
    text = (prompt or "").strip()
    _prompt.set(_Prompt(text) if len(text) >= _LEAST_CHARS else None)


class Redactor:
    """Knows the operator's secrets. A process has one of these."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Take these secrets out, too, in each spelling; ignore secrets of a few characters."""
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
        """Tell quickly whether `clean` could change a text or a part of it; most hold no secret."""
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
    """Yield every secret that settings and environment hold.

    A value of a plugin is secret if the plugin declares it so. Of a value that none of `sections`
    has, the name decides; if these `are_all`, no plugin has it, and it is secret as well. The
    admin's password is left out. A person chose it, and an answer in which one word is missing
    would tell a guesser that word.
    """
    for field in attrs.fields(Settings):
        if field.name not in ("admin_password", "plugin_values"):
            yield from _secrets_in_field(field, getattr(settings, field.name))
    fields = {name: field for one in sections for name, field in one.fields.items()}
    for name, value in settings.plugin_values.items():
        if name in fields:
            yield from _secrets_in_field(fields[name], value)
        elif are_all or _SECRET_NAME.search(name):
            yield str(value)
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and name != "GATEWAY_ADMIN_PASSWORD":
            yield value


def _addresses_in(secret: str) -> Iterator[str]:
    """Yield each address of a list of addresses with spaces, and the parts that may be a key."""
    for word in secret.split():
        if "://" in word:
            yield word
            # A topic of ntfy is the host of its address, and whoever knows it reads along.
            yield urlsplit(word).netloc
            yield from _secrets_in_address(word)


def _secrets_in_field(field: "attrs.Attribute[Any]", value: Any) -> Iterator[str]:
    if isinstance(field.default, ts.SecretStr):
        yield str(value)
        yield from _addresses_in(str(value))
    elif not field.repr:
        for address in (value,) if isinstance(value, str) else value:
            yield from _secrets_in_address(address)


def _secrets_in_address(address: str) -> Iterator[str]:
    """Yield the parts of an RPC address that may be a key: user, password, query, long folders."""
    url = urlsplit(address)
    for part in (url.username, url.password, *url.query.replace("=", "&").split("&")):
        yield part or ""
    for folder in url.path.split("/"):
        is_plain_word = folder.isalpha() and folder.islower()
        if len(folder) >= _LEAST_PART_CHARS and not is_plain_word:
            yield folder
    if url.username or url.query or len(url.path) > _LEAST_PART_CHARS:
        yield address


def _parts(value: str) -> Iterator[str]:
    """Yield a secret and its parts that a text may quote alone.

    They are a PEM's lines, a key's digits, and each key of a list with commas.
    """
    yield value
    keys = _SEPARATORS.split(value)
    if len(keys) > 1:
        for key in filter(_HEX.fullmatch, keys):
            yield from _parts(key)
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= _LEAST_PART_CHARS)
    if _HEX.fullmatch(value):
        digits = value[2:] if value[:2] in ("0x", "0X") else value
        yield from (digits, digits.lower(), digits.upper())


def _spellings(value: str) -> set[str]:
    """Return the forms of a value in a text: plain, escaped once or twice, as in an address."""
    written = (repr(value), json.dumps(value), json.dumps(value, ensure_ascii=False))
    escaped = {each[1:-1] for each in written}
    found = {value, unquote(value), quote(value), quote(value, safe=""), *escaped}
    found |= {repr(each)[1:-1] for each in escaped}
    return {each for each in found if len(each) >= _LEAST_CHARS}
