// The facts that the server wrote into a page.

export interface Network {
  label: string;
  isPlay: boolean;
  isTest: boolean;
  money: string;
  chainId: number;
  caip2: string;
  token: string;
  explorer: string | null;
}

export interface Page {
  /** Empty on a page about no endpoint. */
  slug: string;
  title: string;
  name: string;
  baseUrl: string;
  /** The operator's e-mail address; may be empty. */
  contact: string;
  network: Network;
  /** What is promised if the generation fails, as a sentence. */
  refund: string;
  /** Why a task failed, in words, by the code in its `details`. */
  reasons: Record<string, string>;
  // All below: only if the endpoint exists.
  wallet: string;
  playKey: string | null;
  /** Whether the page asks for a transfer: it pays without a signature, and the money is real. */
  transfers: boolean;
  /** Whether an account that does not exist yet can pay: its wallet is deployed in the settlement. */
  deploysWallets: boolean;
  schema: { properties: Record<string, { maxLength?: number; enum?: string[]; default?: string }> };
  required: string[];
  extensions: string[];
  /** What a sentence calls the file: a document or a picture. */
  fileNoun: string;
  /** The address of a file for a visitor who has none at hand. */
  sample: string | null;
}

export const page: Page = JSON.parse(document.getElementById("page")?.textContent ?? "{}");
export const url = `/api/x402/${page.slug}`;

/** An amount in units of 10⁻⁶ USDC, as a person reads it. */
export function usdc(units: string | number): string {
  // As gateway_shop/prices.py: 0.60, 0.005 and 2.
  const text = (Number(units) / 1e6).toFixed(6).replace(/0{1,4}$/, "").replace(/\.00$/, "");
  return `${text} ${page.network.money}`;
}

export function short(hex: string): string {
  return `${hex.slice(0, 6)}…${hex.slice(-4)}`;
}
