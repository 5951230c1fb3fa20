// Paying by a plain transfer: an amount of this buyer alone, the transfer it finds, the purchase.
import { pause, pauseUntilShown } from "./common";
import { attempt, gatewayNow, type Refusal, refusal, send, type Notify, type Started } from "./api";
import { page } from "./page";

/** The amount that this page may buy with, and until when to pay it. */
export interface Transfer {
  units: string;
  /** Unix seconds. */
  payBy: number;
  /** The transaction, once it is known. */
  hash?: string;
  /** Whether the gateway found it, so that it is the transfer of this amount. */
  isFound?: boolean;
}

// The server looks for a transfer this long after its time.
const LATE_S = 600;
// The transaction is not in a block, or not seen yet by the gateway's node.
const UNSEEN = "TX_NOT_FOUND";
const TRIES = 8;
const AGAIN_S = 3;

/** Reserve an amount above a price for the holder of `key`, who alone can buy with it. */
export async function reserveAmount(units: string, key: string, notify: Notify): Promise<Transfer> {
  const path = `/pay/amount?${new URLSearchParams({ slug: page.slug, units })}`;
  const answer = await send(path, { method: "POST", headers: { "Idempotency-Key": key } }, notify);
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()) as Transfer;
}

/** Whether it is too late to send a transfer. */
export function isOver(transfer: Transfer): boolean {
  return gatewayNow() > transfer.payBy;
}

/**
 * Wait for the transfer while `isWanted`; null if none came until its time was over. If it is over
 * already, one that came late is looked for.
 */
export async function findTransfer(key: string, transfer: Transfer, isWanted: () => boolean): Promise<string | null> {
  const until = transfer.payBy + (isOver(transfer) ? LATE_S : 0);
  // At least once, however long the page was hidden.
  for (let isAsked = false; isWanted() && !(isAsked && gatewayNow() > until); await pauseUntilShown(AGAIN_S)) {
    if (document.hidden) continue;
    const answer = await attempt("/pay/transfer", { headers: { "Idempotency-Key": key } });
    const found = answer?.ok ? ((await answer.json().catch(() => null)) as { transaction: string | null } | null) : null;
    if (found?.transaction) return found.transaction;
    isAsked = true;
  }
  return null;
}

/** Whether a transaction that was refused may still turn up. */
export function isUnseen(error: Refusal): boolean {
  return error.code === UNSEEN;
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
    const error = await refusal(answer);
    if (!isUnseen(error) || tries === TRIES) throw error;
    notify("The transfer is not in a block yet. Looking again.");
    await pause(AGAIN_S * 2);
    notify("");
  }
}
