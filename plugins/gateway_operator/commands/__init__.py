"""The operator's commands of `gateway`."""
