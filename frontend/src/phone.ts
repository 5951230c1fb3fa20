// Links that open a page in the browser of a phone's wallet, where the wallet is at hand.

interface App {
  name: string;
  open(address: string): string;
}

// Each as the vendor documents it, Rainbow's as its source reads it. All open https only.
const APPS: App[] = [
  { name: "MetaMask", open: (address) => `https://link.metamask.io/dapp/${address.replace("https://", "")}` },
  { name: "Base or Coinbase Wallet", open: (address) => `https://go.cb-w.com/dapp?cb_url=${encodeURIComponent(address)}` },
  { name: "Rainbow", open: (address) => `https://rnbwapp.com/dapp?url=${encodeURIComponent(address)}` },
  {
    name: "Trust Wallet",
    open: (address) => `https://link.trustwallet.com/open_url?coin_id=60&url=${encodeURIComponent(address)}`,
  },
];

/** Return names and links of the apps for a page; none for a page without https. */
export function phoneLinks(address: string): [string, string][] {
  return address.startsWith("https://") ? APPS.map(({ name, open }) => [name, open(address)]) : [];
}
