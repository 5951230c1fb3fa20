"""For authors of stores: contracts as tests. Needs pytest; the server never imports it."""
