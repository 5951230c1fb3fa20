"""The table of commands. `gateway --help` loads only this module, so it imports nothing."""

COMMANDS = {"reviews": ("gateway_reviews.show:reviews", "Show how buyers rate each endpoint.")}
