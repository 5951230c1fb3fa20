"""For authors of stores and plugins: contracts as tests. Needs pytest; the server never imports it."""
