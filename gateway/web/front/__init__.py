"""What every request passes: limits, body memory, headers, log line, errors."""
