// The purchase of this tab, so that a reload never pays twice. Your purchases keeps it as well.
import * as kept from "./kept";
import { page } from "./page";
import type { Authorization, Terms } from "./payment";
import type { Transfer } from "./transfers";

export interface Purchase {
  /** The header `Idempotency-Key`. */
  key: string;
  /** The request, but for `fileBase64` where the file is too large to be kept. */
  body: Record<string, string>;
  file: { name: string; sha256: string } | null;
  terms: Terms;
  /** The header with the signed payment, and what was signed. */
  payment: string;
  authorization: Authorization;
  /** Who may have paid under this key already: another account would pay a second time. */
  payer?: string | undefined;
  /** Set for a plain transfer, which nobody signs: `payment` is empty then. */
  transfer?: Transfer;
  /** Set once the gateway has taken the payment. */
  statusUrl?: string;
  transaction?: string;
}

const NAME = `purchase:${page.slug}`;

/**
 * Keep a purchase, and make it this tab's. Throws where the browser keeps nothing at all: then
 * nothing must be sent.
 */
export function save(purchase: Purchase): void {
  const isKept = kept.keep(withoutFile(purchase));
  try {
    sessionStorage.setItem(NAME, JSON.stringify(purchase));
  } catch {
    // Browsers keep about 5 MB. The hash of the file is enough to continue with the same file; all
    // else is kept, because the payment is good for exactly this request.
    try {
      sessionStorage.setItem(NAME, JSON.stringify(withoutFile(purchase)));
    } catch (error) {
      if (!isKept) throw error;
      // Otherwise a reload would go on with the purchase before.
      setAside();
    }
  }
}

/** Return a purchase without the content of its file. */
export function withoutFile(purchase: Purchase): Purchase {
  const { fileBase64: _, ...body } = purchase.body;
  return { ...purchase, body };
}

/** Whether a purchase can be sent as it is: without a file, or with one that is kept. */
export function isWhole(purchase: Purchase): boolean {
  return !purchase.file || "fileBase64" in purchase.body;
}

export function load(): Purchase | null {
  try {
    return JSON.parse(sessionStorage.getItem(NAME) ?? "null") as Purchase | null;
  } catch {
    return null;
  }
}

/** Let this tab begin another purchase; the one before stays under Your purchases. */
export function setAside(): void {
  try {
    sessionStorage.removeItem(NAME);
  } catch {
    // Nothing was kept.
  }
}

/** Forget a purchase by which certainly nothing was paid, and no other one. */
export function forget(purchase: Purchase): void {
  kept.forget(purchase.key);
  if (load()?.key === purchase.key) setAside();
}
