"""Log lines, signals and spans, without secrets."""
