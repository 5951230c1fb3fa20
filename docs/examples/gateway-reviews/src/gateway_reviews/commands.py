"""The table of commands. `gateway --help` runs it alone, so it imports nothing."""

COMMANDS = {"reviews": ("gateway_reviews.show:reviews", "Show how buyers rate each endpoint.")}
