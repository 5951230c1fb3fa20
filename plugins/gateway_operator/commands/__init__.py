"""The operator's commands of `gateway`."""

COMMANDS = {
    "actions": (
        "gateway_operator.commands.actions:actions",
        "List the audit log: who did what, when and why.",
    ),
    "alarms": (
        "gateway_operator.commands.alarms:alarms",
        "List and mute alarms, and test the alarm channels.",
    ),
    "books": (
        "gateway_operator.commands.books:books",
        "Print income, refunds and costs.",
    ),
    "codes": (
        "gateway_operator.commands.codes:codes",
        "Turn off two-factor login.",
    ),
    "endpoints": (
        "gateway_operator.commands.endpoints:endpoints",
        "List, pause and price endpoints.",
    ),
    "hash-password": (
        "gateway_operator.commands.hash_password:hash_password",
        "Print the argon2 hash of a password.",
    ),
    "payers": (
        "gateway_operator.commands.payers:payers",
        "List payers that are barred from x402, and unbar them.",
    ),
    "refunds": (
        "gateway_operator.commands.refunds:refunds",
        "List, approve, reject and pay refunds for failed tasks.",
    ),
    "tasks": (
        "gateway_operator.commands.tasks:tasks",
        "List the newest tasks with their payments and jobs.",
    ),
    "tokens": (
        "gateway_operator.commands.tokens:tokens",
        "Create, list and revoke tokens of the JSON API.",
    ),
    "transfers": (
        "gateway_operator.commands.transfers:transfers",
        "List unused transfers to the wallet.",
    ),
}
