"""Parses a Dockerfile into stages of instructions, with variables, and its .dockerignore."""

import fnmatch
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import attrs

_KNOWN = frozenset(
    ("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "RUN", "STOPSIGNAL", "WORKDIR")
)


class UnknownInstruction(Exception):
    """The Dockerfile has an instruction that this parser does not support."""


@attrs.frozen(kw_only=True)
class Instruction:
    """One instruction, such as RUN, and its arguments."""

    keyword: str
    text: str

    @property
    def flags(self) -> dict[str, str]:
        """The `--name=value` flags before the arguments."""
        return dict(re.findall(r"--([a-z]+)=(\S+)", self.text))

    @property
    def arguments(self) -> list[str]:
        """The words after the flags."""
        return [word for word in self.text.split() if not word.startswith("--")]

    @property
    def command(self) -> list[str]:
        """The words of an ENTRYPOINT or CMD in JSON form."""
        return [str(word) for word in json.loads(self.text)]

    def pairs(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the names and values of an ENV, with variables filled in."""
        words = (word.partition("=") for word in shlex.split(self.text))
        return {name: filled(value, variables) for name, _, value in words}


@attrs.frozen(kw_only=True)
class Stage:
    """One stage: its base, its name, and its instructions in order."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Fill in `$NAME` and `${NAME}`; as in Docker, a name without a value is empty."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: variables.get(found[1], ""), text)


def instructions(text: str) -> list[Instruction]:
    """Split a Dockerfile into its instructions.

    Raises `UnknownInstruction` for one that `make image-check` cannot run.
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    found = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
    for keyword, *_ in found:
        if keyword not in _KNOWN:
            raise UnknownInstruction(f"The Dockerfile has {keyword}: teach tests/proof/image it.")
    return [Instruction(keyword=keyword, text=text.strip()) for keyword, text in found]


def stages(text: str) -> tuple[dict[str, str], list[Stage]]:
    """Return the defaults of the ARGs before the first stage, and the stages."""
    defaults: dict[str, str] = {}
    made: list[Stage] = []
    for one in instructions(text):
        if one.keyword == "FROM":
            base, *rest = one.arguments
            made.append(Stage(base=base, name=rest[-1] if rest else "", instructions=()))
        elif made:
            made[-1] = attrs.evolve(made[-1], instructions=(*made[-1].instructions, one))
        else:
            name, _, value = one.text.partition("=")
            defaults[name] = value
    return defaults, made


def ignored(path: str, patterns: list[str]) -> bool:
    """Return whether .dockerignore excludes a file of the checkout from the build."""
    is_out = False
    parents = [path, *(str(one) for one in Path(path).parents)]
    for pattern in patterns:
        bare = pattern.removeprefix("!")
        # `**/name` also matches at the top.
        forms = {bare, bare.removeprefix("**/")}
        if any(fnmatch.fnmatchcase(one, form) for one in parents for form in forms):
            is_out = not pattern.startswith("!")
    return is_out


def ignore_patterns(text: str) -> list[str]:
    """Return the patterns of a .dockerignore."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
