// A USDC transfer as a link that wallets read (EIP-681).

/** Return the link of one transfer of `units` of a token; addresses are used as they are given. */
export function transferUri(token: string, chainId: number, payTo: string, units: string): string {
  return `ethereum:${token}@${chainId}/transfer?address=${payTo}&uint256=${units}`;
}
