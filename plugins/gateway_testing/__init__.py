"""The test kit for authors of plugins; its public names are in `gateway.testing`."""
