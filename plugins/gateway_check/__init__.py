"""`gateway check`: settings, chain, wallet, prices, vendors, listing and one live order."""
