// The price, and the authorization that pays it (x402 v2, EIP-3009).
import { page } from "./page";

/** One offer of a 402, from the header `PAYMENT-REQUIRED`. */
export interface Terms {
  scheme: string;
  network: string;
  asset: string;
  amount: string;
  payTo: string;
  maxTimeoutSeconds: number;
  /** Name and version of the token's EIP-712 domain, and facts that nobody signs. */
  extra: { name: string; version: string };
  /** Whether only a plain transfer can pay now. */
  onlyTransfer?: boolean;
}

export interface Authorization {
  from: string;
  to: string;
  value: string;
  validAfter: string;
  validBefore: string;
  nonce: string;
}

export interface TypedData {
  domain: { name: string; version: string; chainId: number; verifyingContract: string };
  types: Record<string, { name: string; type: string }[]>;
  primaryType: "TransferWithAuthorization";
  message: Authorization;
}

/** Whoever signs: a wallet of the browser, or the purse. */
export interface Signer {
  name: string;
  address: string;
  sign(data: TypedData): Promise<string>;
}

const FIELDS = [
  ["from", "address"],
  ["to", "address"],
  ["value", "uint256"],
  ["validAfter", "uint256"],
  ["validBefore", "uint256"],
  ["nonce", "bytes32"],
];
const DOMAIN = [
  ["name", "string"],
  ["version", "string"],
  ["chainId", "uint256"],
  ["verifyingContract", "address"],
];

// The end of such a signature.
const NEW_ACCOUNT = "6492".repeat(16);
const NO_SIGNATURE = { scheme: "transfer", maxTimeoutSeconds: 0, extra: { name: "", version: "" }, onlyTransfer: true };

interface Challenge {
  error: string;
  accepts: Terms[];
}

/** The price of a transfer, in the body of a 402 while no signature can be settled. */
export type TransferTerms = Pick<Terms, "amount" | "payTo" | "asset" | "network">;

/** Read the offer of a 402; throws where there is none, or it is not what this page says. */
export function readTerms(header: string | null, transfer?: TransferTerms): Terms {
  if (!header) throw new Error("The gateway named no price. Load this page again.");
  const challenge = JSON.parse(new TextDecoder().decode(bytes(header))) as Challenge;
  const offered = challenge.accepts.find(
    (one) => one.scheme === "exact" && one.network === page.network.caip2,
  );
  // Nothing can be settled now. The sentence says so, and how to pay by a transfer.
  if (!challenge.accepts.length && !(transfer && page.transfers)) throw new Error(challenge.error);
  const terms = challenge.accepts.length ? offered : { ...NO_SIGNATURE, ...transfer! };
  const isOurs =
    terms?.asset.toLowerCase() === page.network.token.toLowerCase() &&
    terms.payTo.toLowerCase() === page.wallet.toLowerCase();
  if (!terms || !isOurs)
    throw new Error("The price names another payee or token than this page. Load the page again.");
  return terms;
}

/** Return what a signer signs; `now` is the gateway's clock in seconds. */
export function authorize(terms: Terms, from: string, now: number): TypedData {
  const { name, version } = terms.extra;
  return {
    // Only what the token's domain has: `extra` says more, and wallets refuse what has no type.
    domain: { name, version, chainId: page.network.chainId, verifyingContract: terms.asset },
    types: {
      EIP712Domain: DOMAIN.map(([name, type]) => ({ name: name!, type: type! })),
      TransferWithAuthorization: FIELDS.map(([name, type]) => ({ name: name!, type: type! })),
    },
    primaryType: "TransferWithAuthorization",
    message: {
      from,
      to: terms.payTo,
      value: terms.amount,
      validAfter: "0",
      validBefore: String(now + terms.maxTimeoutSeconds),
      nonce: `0x${randomHex(32)}`,
    },
  };
}

/** Return the value of the header `PAYMENT-SIGNATURE`. */
export function paymentHeader(terms: Terms, authorization: Authorization, signature: string): string {
  const payment = { x402Version: 2, accepted: terms, payload: { signature, authorization } };
  return btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(payment))));
}

/** Whether a payment is signed by an account that does not exist yet (ERC-6492). */
export function isByNewAccount(header: string): boolean {
  try {
    const { payload } = JSON.parse(new TextDecoder().decode(bytes(header))) as { payload: { signature: string } };
    return payload.signature.endsWith(NEW_ACCOUNT);
  } catch {
    return false;
  }
}

// `crypto.randomUUID` is missing where a page comes by http from another machine.
export function randomHex(length: number): string {
  return [...crypto.getRandomValues(new Uint8Array(length))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

function bytes(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
