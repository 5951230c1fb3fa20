"""The command about HTTP endpoints."""

COMMANDS = {
    "http": (
        "gateway_http.commands.http:http",
        "Try the HTTP APIs that are declared in files.",
    ),
}
