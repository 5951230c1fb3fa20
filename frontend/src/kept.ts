// Your purchases: ids and receipts in `localStorage`, an entry each, so that tabs do not overwrite
// each other. What was signed is kept with them only until the gateway has answered.
import type { Task } from "./api";
import { page, usdc } from "./page";
import type { Purchase } from "./saved";

export interface Kept {
  /** The purchase's key, or the task's id if it was bought elsewhere. */
  id: string;
  slug: string;
  title: string;
  /** Unix milliseconds. */
  at: number;
  /** Such as "0.02 USDC". */
  price: string;
  network: string;
  /** Null until the gateway has answered. */
  taskId: string | null;
  transaction: string | null;
  status: Task["status"] | null;
  refund: Task["refund"];
  unfinished?: Purchase | undefined;
}

const PREFIX = "bought:";

/** Keep a purchase, without the content of its file; returns whether the browser did. */
export function keep(purchase: Purchase): boolean {
  const taskId = purchase.statusUrl?.split("/").at(-1) ?? null;
  const known = find(purchase.key);
  return write({
    id: purchase.key,
    slug: page.slug,
    title: page.title,
    at: known?.at ?? Date.now(),
    price: usdc(purchase.transfer?.units ?? purchase.terms.amount),
    network: page.network.label,
    taskId,
    transaction: purchase.transaction || (known?.transaction ?? null),
    status: known?.status ?? null,
    refund: known?.refund ?? null,
    unfinished: taskId ? undefined : purchase,
  });
}

/** Keep a task that was bought elsewhere, such as by a program. */
export function adopt(task: Task): boolean {
  const { amount, transaction } = task.payment;
  const { taskId, slug, status, refund } = task;
  return write({
    id: taskId,
    slug,
    title: page.title,
    at: Date.parse(task.createdAt),
    price: `${amount} ${page.network.money}`,
    network: page.network.label,
    taskId,
    transaction,
    status,
    refund,
  });
}

/** Note the state of a task, if its purchase is kept here. */
export function note(task: Task): void {
  const known = findTask(task.taskId);
  if (!known) return;
  const { status, refund } = task;
  write({ ...known, status, refund, transaction: task.payment.transaction ?? known.transaction });
}

/** Return all purchases, the newest first. */
export function list(): Kept[] {
  const found: Kept[] = [];
  try {
    for (const name of Object.keys(localStorage)) {
      const kept = name.startsWith(PREFIX) ? find(name.slice(PREFIX.length)) : null;
      if (kept) found.push(kept);
    }
  } catch {
    // This browser keeps nothing.
  }
  return found.sort((one, other) => other.at - one.at);
}

export function find(id: string): Kept | null {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + id) ?? "null") as Kept | null;
  } catch {
    return null;
  }
}

export function findTask(taskId: string): Kept | null {
  return list().find((one) => one.taskId === taskId) ?? null;
}

/** Return the purchases of this page's offer that the gateway has not answered. */
export function unfinished(): Kept[] {
  return list().filter((one) => one.unfinished && one.slug === page.slug);
}

/** Whether money of this purchase may still be on its way, to the gateway or back. */
export function isOpen(kept: Kept): boolean {
  const isDone = kept.status === "completed" || kept.status === "failed";
  return !isDone || ["refund_due", "refunding"].includes(kept.refund?.state ?? "");
}

/** Forget a purchase. Only a buyer's wish, or the certainty that nothing was paid, may do that. */
export function forget(id: string): void {
  try {
    localStorage.removeItem(PREFIX + id);
  } catch {
    // Nothing was kept.
  }
}

/** Return the purchases as JSON for a file: ids and receipts, nothing that was signed. */
export function exported(purchases: Kept[]): string {
  const rows = purchases.map(({ id: _, unfinished, at, taskId, ...row }) => ({
    ...row,
    at: new Date(at).toISOString(),
    taskId,
    page: taskId && `${page.baseUrl}/task/${taskId}`,
    isFinished: !unfinished,
  }));
  return JSON.stringify({ gateway: page.baseUrl, purchases: rows }, null, 2);
}

function write(kept: Kept): boolean {
  try {
    localStorage.setItem(PREFIX + kept.id, JSON.stringify(kept));
    return true;
  } catch {
    return false;
  }
}
