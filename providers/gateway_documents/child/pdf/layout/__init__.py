"""The layout of a PDF's page: blocks, headings, tables and running lines."""
