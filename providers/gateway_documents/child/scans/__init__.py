"""Scanned pages: from recognised lines to a PDF with a text layer, which `formats.pdf` reads."""
