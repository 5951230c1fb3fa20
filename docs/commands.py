"""Check the commands that pages and messages name: `gateway …` and `make …`.

    python docs/commands.py   # prints each unknown command with its place, and exits with 1

Checked are the names of commands, of their options, of make's targets and of make's variables.
"""

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pkgutil import resolve_name

import click
import links

from gateway.cli import main as gateway

_SHELLS = {"", "sh", "bash", "console", "shell"}
_FENCED = re.compile(r"^[ ]*```(\w*).*?\n(.*?)^[ ]*```[ ]*$", re.DOTALL | re.MULTILINE)
_SPANS = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VARIABLE = re.compile(r"([A-Z][A-Z0-9_]*)=")


def main() -> int:
    """Return the process's exit code."""
    files = links.tracked(links.ROOT)
    makefile = Makefile((links.ROOT / "Makefile").read_text("utf-8"))
    findings = [
        f"{file}:{line}: {fault}"
        for file in sorted(files)
        if _is_checked(file)
        for line, words in commands(file, (links.ROOT / file).read_text("utf-8"))
        if (fault := makefile.fault(words) if words[0] == "make" else gateway_fault(words))
    ]
    sys.stderr.writelines(f"{finding}\n" for finding in findings)
    return 1 if findings else 0


def _is_checked(file: str) -> bool:
    # The changelog may name commands that are gone.
    if file.startswith(("static/pages/", "tests/")) or file == "CHANGELOG.md":
        return file == "tests/README.md"
    return file.endswith((".md", ".py", ".txt.j2")) or file == "static/llms.txt"


def commands(file: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and words of each command in shell blocks and code spans."""
    if not file.endswith(".py"):
        for block in _FENCED.finditer(text):
            if block[1] in _SHELLS:
                start = text.count("\n", 0, block.start()) + 2
                lines = block[2].replace("\\\n", " ").splitlines()
                for number, line in enumerate(lines, start):
                    yield from ((number, words) for words in _in_shell(line))
        text = _FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)
    for span in _SPANS.finditer(text):
        line = text.count("\n", 0, span.start()) + 1
        yield from ((line, words) for words in _in_shell(" ".join(span[1].split())))


def _in_shell(line: str) -> Iterator[list[str]]:
    """Yield the calls of `gateway` and `make` in a line, without what precedes the program."""
    for part in re.split(r"&&|\|\||[;|]", re.sub(r"(^|\s)#.*", "", line)):
        try:
            words = shlex.split(part)
        except ValueError:  # an apostrophe: no command
            continue
        while words and (words[0] == "$" or _VARIABLE.match(words[0])):
            words.pop(0)
        if words and words[0].rpartition("/")[2] in ("gateway", "make"):
            yield [words[0].rpartition("/")[2], *words[1:]]
        elif words and words[0] in ("docker", "sudo", "uvx", "fly"):
            # `docker run IMAGE gateway check`: the last `gateway` is the program.
            names = [word.rpartition("/")[2] for word in words]
            at = len(names) - 1 - names[::-1].index("gateway") if "gateway" in names else len(names)
            if _NAME.fullmatch("".join(words[at + 1 : at + 2])):
                yield ["gateway", *words[at + 1 :]]


def gateway_fault(words: list[str]) -> str | None:
    """Return the first name that `gateway` does not know, in a sentence."""
    command: click.Command = gateway
    context = click.Context(gateway)
    path = "gateway"
    for raw in words[1:]:
        word = raw.strip("[]()…,.")
        if word.startswith("--"):
            option = word.partition("=")[0]
            known = {name for each in command.get_params(context) for name in each.opts}
            known |= {name for each in command.get_params(context) for name in each.secondary_opts}
            if option not in known and option != "--":
                return f"`{path}` has no option {option}."
        elif isinstance(command, click.Group):
            if not _NAME.fullmatch(word):
                return None  # a placeholder
            found = command.get_command(context, word)
            if found is None and command is gateway and word in _examples():
                return None
            if found is None:
                return f"there is no command `{path} {word}`."
            command, path = found, f"{path} {word}"
    return None


@cache
def _examples() -> set[str]:
    """Return the commands of the example plugins, which are not installed."""
    names = set()
    for project in links.ROOT.glob("docs/examples/*/pyproject.toml"):
        points = tomllib.loads(project.read_text("utf-8"))["project"]["entry-points"]
        sys.path.append(str(project.parent / "src"))
        for table in points.get("gateway.commands", {}).values():
            names |= set(resolve_name(table))
    return names


class Makefile:
    """The targets and variables of a Makefile."""

    def __init__(self, text: str) -> None:
        rules = re.findall(r"^([a-z][\w -]*):(?!=)", text, re.MULTILINE)
        self._targets = {name for rule in rules for name in rule.split()}
        self._variables = set(re.findall(r"\$[({](?:if \$\()?([A-Z][A-Z0-9_]*)\b", text))

    def fault(self, words: list[str]) -> str | None:
        """Return the first target or variable that the Makefile does not have, in a sentence."""
        for word in words[1:]:
            if variable := _VARIABLE.match(word):
                if variable[1] not in self._variables:
                    return f"the Makefile has no variable {variable[1]}."
            elif _NAME.fullmatch(word) and word not in self._targets:
                return f"there is no target `make {word}`."
        return None


if __name__ == "__main__":
    sys.exit(main())
