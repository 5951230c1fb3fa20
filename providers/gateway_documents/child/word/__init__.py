"""Word files, rewritten before anydoc reads them."""
