"""Word, PowerPoint, OpenDocument, rich text and EPUB, by anydoc."""
