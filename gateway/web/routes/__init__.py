"""The buyers' routes and the documents by which agents find them."""
