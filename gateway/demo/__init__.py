"""The demo: an embedded chain with play money, a throw-away wallet and a guided purchase."""
