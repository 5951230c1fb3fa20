"""docs/commands.py: which commands it reads on a page, and which of them it knows."""

import importlib.util
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
sys.path.append(str(DOCS))
try:
    SPEC = importlib.util.spec_from_file_location("named_commands", DOCS / "commands.py")
    named = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(named)
finally:
    sys.path.remove(str(DOCS))

NIX = "there is no command `gateway nix`."
MAKEFILE = named.Makefile("a-b c: install\n\tif $(OLD)\n\t$(if $(ONLY),x)\nNAME := 1\n")


def faults(text: str, file: str = "page.md") -> list[tuple[int, str]]:
    return [
        (line, fault)
        for line, words in named.commands(file, text)
        if (fault := MAKEFILE.fault(words) if words[0] == "make" else named.gateway_fault(words))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "`gateway check` and `gateway refunds approve TASK`, `gateway check --live`",
        "`gateway` sells, `gateway …` too, `gateway_shop` and `gateway/cli` are code",
        "`make a-b c OLD=1 ONLY=x`, `make -j 2`",
        "```python\ngateway = nothing()\n```\n",
        "```sh\nexport GATEWAY_WALLET=0x1\n.venv/bin/gateway check   # gateway nothing\n```\n",
        "```sh\ndocker compose run --rm gateway gateway check\ndocker logs gateway\n```\n",
        "The gateway nothings, and make room.",
    ],
)
def test_commands_that_exist_and_other_words_pass(text):
    assert faults(text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("`gateway chek`", (1, "there is no command `gateway chek`.")),
        ("`gateway refunds\nforget TASK`", (1, "there is no command `gateway refunds forget`.")),
        ("`gateway check --lve`", (1, "`gateway check` has no option --lve.")),
        ("`gateway check` (`make d`)", (1, "there is no target `make d`.")),
        ("`make c NEW=1`", (1, "the Makefile has no variable NEW.")),
        ("```sh\ncd x && A=1 .venv/bin/gateway nix\n```\n", (2, NIX)),
        ("```\n$ true | gateway nix\n```\n", (2, NIX)),
        ("```sh\ndocker run \\\n  image gateway nix\n```\n", (2, NIX)),
        ("```sh\nuvx --from 'x[demo]' gateway nix\n```\n", (2, NIX)),
    ],
)  # fmt: skip
def test_a_dead_command_is_found_with_its_line(text, fault):
    assert faults(text) == [fault]


def test_messages_in_code_are_read_too():
    text = 'ERROR = "Wrong. Run `gateway chek`: it reports more."\n'
    assert faults(text, "module.py") == [(1, "there is no command `gateway chek`.")]
