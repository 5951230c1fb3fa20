// The facts that the server wrote into the page of one endpoint.

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
  slug: string;
  title: string;
  baseUrl: string;
  wallet: string;
  network: Network;
  /** What is promised if the generation fails, as a sentence. */
  refund: string;
  playKey: string | null;
  /** The operator's e-mail address. */
  contact: string | null;
  /** Why a task failed, in words, by the code in its `details`. */
  reasons: Record<string, string>;
  schema: { properties: Record<string, { maxLength?: number; enum?: string[] }> };
  required: string[];
  extensions: string[];
  /** What a sentence calls the file: a document or a picture. */
  fileNoun: string;
  /** The address of a picture for a visitor who has none at hand. */
  samplePicture: string | null;
}

export const page: Page = JSON.parse(document.getElementById("page")?.textContent ?? "{}");
export const url = `/api/x402/${page.slug}`;

/** An amount in units of 10⁻⁶ USDC, as a person reads it. */
export function usdc(units: string | number): string {
  const text = (Number(units) / 1e6).toFixed(6).replace(/\.?0+$/, "");
  return `${text} ${page.network.money}`;
}

export function short(hex: string): string {
  return `${hex.slice(0, 6)}…${hex.slice(-4)}`;
}
