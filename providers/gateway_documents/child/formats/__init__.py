"""One module per format; each turns the bytes of a file into a `Parsed` document."""
