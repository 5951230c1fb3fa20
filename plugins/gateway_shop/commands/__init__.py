"""The shop's commands of `gateway`."""

COMMANDS = {
    "examples": (
        "gateway_shop.commands.examples:examples",
        "Make an example result of each offer for the shop.",
    ),
}
