"""Takes secrets and prompts out of texts that go to the log or to a public page.

Most texts are not ours: a plugin's exception, what it prints, what a vendor answered. They may
quote the operator's key or what the buyer sent, whole or in part, plain or escaped.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import attrs
import typed_settings as ts

from gateway.settings import Settings, names_of

REDACTED = "…"
_LEAST_CHARS = 8  # a shorter secret or prompt is not looked for: it may be any word
_LEAST_PART_CHARS = 12  # of a line of a PEM, or of a folder in an address
_RUN_CHARS = 24  # of a prompt in a row that are taken out
_GRAM_CHARS = 12  # one of them lies whole in such a run, wherever it begins
_MOST_SHORTENED = 12  # times: an emoji, escaped for an address, and its one character
_MAX_PLACES = 8  # of the same piece in a prompt that repeats itself
_SECRET_NAME = re.compile(r"(KEY|SECRET|TOKEN|PASSWORD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)
_HEX = re.compile(r"(0[xX])?[0-9a-fA-F]{16,}")


class _Prompt:
    """What the buyer sent, as it is looked for; prepared at the first text it may be in."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _spellings(self) -> list[str]:
        return sorted(_spellings(self._text), key=len, reverse=True)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Pieces of the prompt, without gaps, to where they begin in it."""
        found: dict[str, list[int]] = {}
        for at in range(0, len(self._text) - _GRAM_CHARS + 1, _GRAM_CHARS):
            places = found.setdefault(self._text[at : at + _GRAM_CHARS], [])
            if len(places) < _MAX_PLACES:
                places.append(at)
        return found

    def taken_out(self, text: str) -> str:
        """Return a text without the prompt, and without any `_RUN_CHARS` in a row of it."""
        if len(text) < _LEAST_CHARS:
            return text
        if len(text) * _MOST_SHORTENED >= len(self._text):
            for spelling in self._spellings:
                text = text.replace(spelling, REDACTED)
        return "".join(self._kept(text)) if len(text) >= _RUN_CHARS else text

    def _kept(self, text: str) -> Iterator[str]:
        """Yield what stays of a text; linear in its length."""
        kept = at = 0
        while at <= len(text) - _GRAM_CHARS:
            places = self._places.get(text[at : at + _GRAM_CHARS])
            if places is None:
                at += 1
                continue
            runs = [self._widened(text, at, place, kept) for place in places]
            start, end = max(runs, key=lambda run: run[1] - run[0])
            if end - start < _RUN_CHARS:
                at += 1
                continue
            yield text[kept:start]
            yield REDACTED
            kept = at = end
        yield text[kept:]

    def _widened(self, text: str, at: int, place: int, least: int) -> tuple[int, int]:
        """Return where the run begins and ends that text and prompt share around a piece."""
        prompt, start, end = self._text, at, at
        shift = place - at
        while start > least and start + shift > 0 and text[start - 1] == prompt[start + shift - 1]:
            start -= 1
        while end < len(text) and end + shift < len(prompt) and text[end] == prompt[end + shift]:
            end += 1
        return start, end


_prompt: ContextVar[_Prompt | None] = ContextVar("prompt", default=None)


def hide_prompt(prompt: str | None) -> None:
    """Take this prompt out of what the current task, and those it starts, say from now on."""
    text = (prompt or "").strip()
    _prompt.set(_Prompt(text) if len(text) >= _LEAST_CHARS else None)


class Redactor:
    """Knows the operator's secrets; one per process."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Take these out, too, in each spelling; those of a few characters are left alone."""
        for value in secrets:
            for part in _parts(value.strip()):
                self._secrets.update(_spellings(part))
        longest_first = sorted(self._secrets, key=len, reverse=True)
        if longest_first:
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def without_secrets(self, text: str) -> str:
        """Return a text without the operator's secrets."""
        return self._pattern.sub(REDACTED, text) if self._pattern is not None else text

    def may_hold(self, text: str) -> bool:
        """Whether cleaning a text could change it; the quick look at what usually is clean."""
        holds = self._pattern is not None and self._pattern.search(text) is not None
        return holds or _prompt.get() is not None

    def clean(self, text: str) -> str:
        """Return a text without the operator's secrets and the current prompt."""
        text = self.without_secrets(text)
        prompt = _prompt.get()
        return prompt.taken_out(text) if prompt is not None else text


def secrets_of(
    settings: Settings, sections: Mapping[str, tuple[str, type]] | None = None
) -> Iterator[str]:
    """Yield every secret that settings and environment hold.

    `sections`: the plugins' settings, by prefix. Of a plugin's values those are secret that it
    declares so, and those that no plugin declares. The admin's password is not among them: a person
    chose it, and an answer in which one word is missing would tell a guesser which.
    """
    for field in attrs.fields(Settings):
        if field.name == "admin_password":
            continue
        value = getattr(settings, field.name)
        if isinstance(field.default, ts.SecretStr):
            yield str(value)
        elif not field.repr and field.name != "plugin_values":
            for address in (value,) if isinstance(value, str) else value:
                yield from _secrets_in_address(address)
    is_secret = _judge(sections)
    for name, value in settings.plugin_values.items():
        if is_secret(name):
            yield str(value)
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and name != "GATEWAY_ADMIN_PASSWORD":
            yield value


def _judge(sections: Mapping[str, tuple[str, type]] | None) -> Callable[[str], bool]:
    """Return what tells a plugin's secret by its name."""
    if sections is None:  # no plugin is loaded yet
        return lambda name: bool(_SECRET_NAME.search(name))
    fields: dict[str, attrs.Attribute[Any]] = {}
    for prefix, (_, kind) in sections.items():
        fields |= names_of(prefix, kind)
    return lambda name: name not in fields or isinstance(fields[name].default, ts.SecretStr)


def _secrets_in_address(address: str) -> Iterator[str]:
    """Yield what an RPC address may hide: its user, its password, long folders, its query."""
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
    """Yield a value, and what of it may be quoted alone: lines of a PEM, a key's bare digits."""
    yield value
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= _LEAST_PART_CHARS)
    if _HEX.fullmatch(value):
        digits = value[2:] if value[:2] in ("0x", "0X") else value
        yield from (digits, digits.lower(), digits.upper())


def _spellings(value: str) -> set[str]:
    """Return how a value may stand in a text: plain, escaped once or twice, in an address."""
    written = (repr(value), json.dumps(value), json.dumps(value, ensure_ascii=False))
    escaped = {each[1:-1] for each in written}
    found = {value, unquote(value), quote(value), quote(value, safe=""), *escaped}
    found |= {repr(each)[1:-1] for each in escaped}
    return {each for each in found if len(each) >= _LEAST_CHARS}
