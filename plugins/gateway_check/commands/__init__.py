"""The table of the commands; imports nothing, because `gateway --help` reads it."""

COMMANDS = {
    "check": (
        "gateway_check.commands.check:check",
        "Check settings, chain, wallet, gas, plugins and disk.",
    ),
    "encrypt-key": (
        "gateway_check.commands.encrypt_key:encrypt_key",
        "Encrypt a private key into the keystore FILE.",
    ),
    "plugins": (
        "gateway_check.commands.plugins:plugins",
        "List plugins, or create a new one.",
    ),
}
