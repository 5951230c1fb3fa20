"""The operator's commands of `gateway`."""

COMMANDS = {
    "actions": (
        "gateway_operator.commands.actions:actions",
        "List what operators did, newest first: who, when, why.",
    ),
    "alarms": (
        "gateway_operator.commands.alarms:alarms",
        "List what needs you now, mute it, and test how you are told.",
    ),
    "books": (
        "gateway_operator.commands.books:books",
        "Print what was earned, given back and spent.",
    ),
    "codes": (
        "gateway_operator.commands.codes:codes",
        "Switch off the codes of the admin login.",
    ),
    "endpoints": (
        "gateway_operator.commands.endpoints:endpoints",
        "List what is on sale, and what is switched off.",
    ),
    "hash-password": (
        "gateway_operator.commands.hash_password:hash_password",
        "Print the argon2 hash of a password.",
    ),
    "payers": (
        "gateway_operator.commands.payers:payers",
        "List payers that are barred from x402, and lift the bar.",
    ),
    "refunds": (
        "gateway_operator.commands.refunds:refunds",
        "List, approve, reject and pay refunds for failed tasks.",
    ),
    "tasks": (
        "gateway_operator.commands.tasks:tasks",
        "List the newest tasks, their payments and their jobs.",
    ),
    "tokens": (
        "gateway_operator.commands.tokens:tokens",
        "Make, list and revoke tokens of the JSON API.",
    ),
    "transfers": (
        "gateway_operator.commands.transfers:transfers",
        "Look at what came into the wallet.",
    ),
}
