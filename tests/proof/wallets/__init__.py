"""Smart wallets that pay by x402: EIP-1271, EIP-7702, ERC-6492."""
