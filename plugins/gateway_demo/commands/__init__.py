"""The command `gateway demo`."""

COMMANDS = {
    "demo": (
        "gateway_demo.commands.demo:demo",
        "Buy a picture and a parsed document with play money.",
    ),
}
