// Paying by a plain transfer: an amount of this buyer alone, the transfer it finds, the purchase.
import { pause } from "./common";
import { refusal, Refusal, send, type Notify, type Started } from "./api";
import { page } from "./page";

/** The amount that this page may buy with, and until when to pay it. */
export interface Transfer {
  units: string;
  /** Unix seconds. */
  payBy: number;
  /** The transaction, once it is known. */
  hash?: string;
}

// The server looks for a transfer this long after its time.
const LATE_S = 600;
const TRIES = 8;
const AGAIN_S = 3;

/** Reserve an amount above a price for the holder of `key`, who alone can buy with it. */
export async function reserveAmount(units: string, key: string, notify: Notify): Promise<Transfer> {
  const path = `/pay/amount?${new URLSearchParams({ slug: page.slug, units })}`;
  const answer = await send(path, { method: "POST", headers: { "Idempotency-Key": key } }, notify);
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()) as Transfer;
}

/** Wait for the transfer while `isWanted`; null if none came in time. */
export async function findTransfer(key: string, transfer: Transfer, isWanted: () => boolean): Promise<string | null> {
  while (isWanted() && Date.now() / 1000 < transfer.payBy + LATE_S) {
    if (!document.hidden) {
      const answer = await fetch("/pay/transfer", { headers: { "Idempotency-Key": key }, cache: "no-store" }).catch(() => null);
      const { transaction } = answer?.ok ? ((await answer.json()) as { transaction: string | null }) : { transaction: null };
      if (transaction) return transaction;
    }
    await pause(AGAIN_S);
  }
  return null;
}

/** Buy with a transfer; one that is not mined yet is tried again. Throws a `Refusal`. */
export async function buyByTransfer(body: Record<string, string>, key: string, hash: string, notify: Notify): Promise<Started> {
  const request = {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify({ ...body, slug: page.slug, txHash: hash }),
  };
  for (let tries = 1; ; tries += 1) {
    const answer = await send("/api/proxy-generate", request, notify);
    if (answer.ok) return { ...((await answer.json()) as { statusUrl: string }), transaction: hash };
    const copy = answer.clone();
    const error = await refusal(answer);
    const { code } = (await copy.json().catch(() => ({}))) as { code?: string };
    if (code !== "TX_NOT_FOUND" || tries === TRIES) throw new Refusal(error.message, error.status);
    notify("The transfer is not in a block yet. Looking again.");
    await pause(AGAIN_S * 2);
    notify("");
  }
}
