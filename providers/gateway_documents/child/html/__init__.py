"""HTML pages, by markdownify."""
