// A USDC transfer as a link that wallets read (EIP-681), and its hash as a person pastes it.

/** Return the link of one transfer of `units` of a token; addresses are used as they are given. */
export function transferUri(token: string, chainId: number, payTo: string, units: string): string {
  return `ethereum:${token}@${chainId}/transfer?address=${payTo}&uint256=${units}`;
}

/** Return a transaction hash in lower case; throws a sentence about anything else. */
export function readHash(text: string): string {
  const found = text.trim().match(/(?:^|\/tx\/)(0x[0-9a-fA-F]{64})(?:[/?#].*)?$/);
  if (!found) throw new Error("A transaction hash is 0x and 64 digits or letters from a to f. Copy it from your wallet's activity.");
  return found[1]!.toLowerCase();
}
