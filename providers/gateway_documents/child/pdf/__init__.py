"""PDF files, by liteparse and PDFium."""
