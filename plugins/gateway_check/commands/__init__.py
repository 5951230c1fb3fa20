"""The table of the commands; imports nothing, because `gateway --help` reads it."""

COMMANDS = {
    "check": (
        "gateway_check.commands.check:check",
        "Check settings, chain, wallet, gas, plugins and disk.",
    ),
}
