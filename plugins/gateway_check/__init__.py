"""Commands for setting up: `gateway check`, `gateway plugins` and `gateway encrypt-key`."""
