"""The tokens of a Whisper model: their numbers, their bytes and the times among them."""

from collections.abc import Sequence

import attrs

_STAMP_S = 0.02


@attrs.frozen
class Vocabulary:
    """Reads sequences of tokens."""

    numbers: dict[str, int]
    # None: the token is no text.
    _texts: Sequence[bytes | None]

    @classmethod
    def parse(cls, lines: str) -> "Vocabulary":
        """Return the vocabulary of a file with a token a line."""
        words = lines.rstrip("\n").split("\n")
        code = _letters()
        texts = [None if word.startswith("<|") else _bytes(word, code) for word in words]
        return cls({word: number for number, word in enumerate(words)}, texts)

    def prompt(self, *, names_language: bool) -> list[int]:
        """Return the tokens before an English transcript."""
        start = ["<|startoftranscript|>"]
        names = [*start, "<|en|>", "<|transcribe|>"] if names_language else start
        return [self.numbers[name] for name in names]

    @property
    def end(self) -> int:
        """The token behind a transcript; those before it are text."""
        return self.numbers["<|endoftext|>"]

    def seconds(self, token: int) -> float | None:
        """Return the time that a token states; None if it states none."""
        first = self.numbers["<|notimestamps|>"] + 1
        return None if token < first else (token - first) * _STAMP_S

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens; others than text have none."""
        known = (self._texts[one] for one in tokens if one < len(self._texts))
        return b"".join(one or b"" for one in known).decode("utf-8", "replace")


def _letters() -> dict[str, int]:
    """Return the byte that each letter of a token stands for, as GPT-2 writes them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + number): byte for number, byte in enumerate(others)
    }


def _bytes(word: str, code: dict[str, int]) -> bytes:
    return bytes(code[letter] for letter in word if letter in code)
