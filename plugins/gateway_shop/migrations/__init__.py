"""The tables of this plugin."""
