"""The command `gateway demo`."""

COMMANDS = {
    "demo": (
        "gateway_demo.commands.demo:demo",
        "Make four purchases with play money.",
    ),
}
