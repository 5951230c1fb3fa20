"""The command `gateway buy`."""

COMMANDS = {
    "buy": (
        "gateway_buyer.commands.buy:buy",
        "Buy a generation from a gateway and save it.",
    ),
}
