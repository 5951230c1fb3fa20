"""Data found in a document's Markdown by fixed rules."""
