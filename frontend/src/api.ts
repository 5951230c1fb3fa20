// The gateway's routes: ask for the price, pay, follow the task.
import { pause } from "./common";
import { page, url } from "./page";
import { isByNewAccount, readTerms, type Terms, type TransferTerms } from "./payment";

export interface Output {
  url: string | null;
  mimeType: string;
  bytes: number;
  width?: number;
  height?: number;
  seconds?: number;
}

export interface Task {
  taskId: string;
  slug: string;
  status: "queued" | "processing" | "completed" | "failed";
  done: boolean;
  progress: number | null;
  attempt: number;
  maxAttempts: number;
  createdAt: string;
  completedAt: string | null;
  expiresAt: string | null;
  payment: { state: string; amount: number; transaction: string | null };
  result: { outputs: Output[]; text: string | null } | null;
  error: string | null;
  details: string | null;
  /** `message` is the state in words. */
  refund: { state: string; amount: number; transaction: string | null; message: string } | null;
}

/** An answer that is no success; the message is a sentence for the buyer. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
    /** Whether the payment was used before, perhaps for this very purchase. */
    readonly isSpent = false,
    /** Whether the gateway says that this payment took nothing. */
    readonly isUncharged = false,
    /** The gateway's code of the error, such as `TX_NOT_FOUND`. */
    readonly code = "",
  ) {
    super(message);
  }

  /** Whether the gateway judged what was sent; else the same payment may be sent again. */
  get isFinal(): boolean {
    return JUDGED.includes(this.status);
  }
}

export type Notify = (sentence: string) => void;

const HEADERS = { "Content-Type": "application/json" };
const MOST_WAITS = 20;
// Other refusals, such as of a proxy, or 404 of an endpoint that is switched off, judge no payment.
const JUDGED = [400, 402, 409, 413];
// The gateway writes these words only if it has looked the payment up.
const UNCHARGED = /nothing was charged/i;
// What a failed check of /api/ready stops, if it stops signed payments.
const STOPS = ["everything", "paid routes", "x402"];
let clockOffset = 0;

/** The gateway's clock in Unix seconds, as its last answer told it. */
export function gatewayNow(): number {
  return Math.floor(Date.now() / 1000 + clockOffset);
}

/** Ask for the price of a request, which costs nothing. */
export async function askPrice(body: string, key: string, notify: Notify): Promise<Terms> {
  const headers = { ...HEADERS, "Idempotency-Key": key };
  const answer = await send(url, { method: "POST", headers, body }, notify);
  if (answer.status !== 402) throw await refusal(answer);
  const { transfer } = (await answer.json().catch(() => ({}))) as { transfer?: TransferTerms };
  return readTerms(answer.headers.get("PAYMENT-REQUIRED"), transfer);
}

export interface Started {
  statusUrl: string;
  transaction: string;
}

/** Send a request with its payment; the same payment may be sent again and pays once. */
export async function pay(
  body: string,
  key: string,
  payment: string,
  notify: Notify,
): Promise<Started> {
  const headers = { ...HEADERS, "Idempotency-Key": key, "PAYMENT-SIGNATURE": payment };
  const answer = await send(url, { method: "POST", headers, body }, notify);
  if (!answer.ok) throw await refusal(answer, isByNewAccount(payment));
  const { statusUrl } = (await answer.json()) as { statusUrl: string };
  return { statusUrl, transaction: readReceipt(answer.headers.get("PAYMENT-RESPONSE")) };
}

/** Return a task as it is now. */
export async function readTask(statusUrl: string, notify: Notify): Promise<Task> {
  const answer = await send(statusUrl, {}, notify);
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()) as Task;
}

/** Follow a task to its end, and call `show` with each state. */
export async function follow(statusUrl: string, show: (task: Task) => void, notify: Notify) {
  for (let seconds = 1; ; seconds = Math.min(seconds + 1, 10)) {
    const task = await readTask(`${statusUrl}?wait=${seconds}`, notify);
    show(task);
    if (task.done) return task;
  }
}

/** Throw a sentence if the gateway says that it cannot be paid by a signature now. */
export async function checkSelling(): Promise<void> {
  const answer = await attempt("/api/ready", {});
  if (!answer) throw new Error("The gateway does not answer now, so nothing was signed. Try again later.");
  const { selling, checks } = (await answer.json().catch(() => ({}))) as Partial<Ready>;
  if (!selling || selling === "everything") return;
  const why = (checks ?? []).filter((one) => !one.ok && STOPS.includes(one.stops)).map((one) => one.problem);
  const way = selling === "transfers" ? page.transfers ? "A transfer works: choose another way to pay." : "A plain USDC transfer works: the code for curl shows how." : "Try again later.";
  throw new Error(["Nothing was signed, because the gateway cannot take this payment now.", why[0], way].filter(Boolean).join(" "));
}

interface Ready {
  selling: "everything" | "transfers" | "nothing";
  checks: { ok: boolean; stops: string; problem: string | null }[];
}

/** Send a request; a lost answer and "too many requests" are tried again, and told. */
export async function send(path: string, request: RequestInit, notify: Notify): Promise<Response> {
  for (let tries = 1; ; tries += 1) {
    const answer = await attempt(path, request);
    if (answer && answer.status !== 429 && answer.status !== 503) return answer;
    if (tries === MOST_WAITS) {
      if (answer) return answer;
      throw new Refusal("The gateway does not answer. Try again later; this never pays twice.", 0);
    }
    const seconds = answer ? Number(answer.headers.get("Retry-After") ?? 2) : Math.min(tries, 5);
    notify(
      answer
        ? `Too many requests right now. Trying again in ${seconds} s.`
        : `No answer. Trying again in ${seconds} s; the same payment never pays twice.`,
    );
    await pause(seconds);
    notify("");
  }
}

/** Send a request once; null without an answer. Sets the gateway's clock. */
export async function attempt(path: string, request: RequestInit): Promise<Response | null> {
  try {
    const answer = await fetch(path, { ...request, cache: "no-store" });
    const date = Date.parse(answer.headers.get("Date") ?? "");
    if (date) clockOffset = (date - Date.now()) / 1000;
    return answer;
  } catch {
    return null;
  }
}

const SPENT = "nonce_already_used";
const SIGNATURE = "payload_signature";
/** What the way to pay by a transfer is called. */
export const BY_CODE = "Any wallet, by QR code";
// What x402 calls the reasons of a refused payment.
const REASONS: [string, string][] = [
  ["insufficient_balance", "This account holds too little. Add funds, or choose another wallet."],
  ["authorization_valid_before", "The signature is too old. Sign again."],
  ["authorization_valid_after", "The clock of this device is wrong. Set it, and sign again."],
  [SIGNATURE, "The signature does not fit the account. Choose the account again."],
];

// The gateway's own words once the day's new wallets are deployed.
const NO_MORE = "no more new smart wallets";
const OTHER_ACCOUNT = `Choose ${page.transfers ? `“${BY_CODE}”` : "another wallet"}, or an account that was used before.`;

/** Return what an answer that is no success says; `isNew`: it is to the signature of a new account. */
export async function refusal(answer: Response, isNew = false): Promise<Refusal> {
  let said = "";
  let code = "";
  let charged: boolean | undefined;
  try {
    const body = (await answer.json()) as { error?: string; details?: string; code?: string; charged?: boolean };
    said = [body.error, body.details].filter(Boolean).join(" ");
    charged = body.charged;
    code = body.code ?? "";
  } catch {
    said = `The gateway answered ${answer.status}.`;
  }
  if (answer.status !== 402) return new Refusal(said, answer.status, false, UNCHARGED.test(said), code);
  if (said.includes(SPENT)) {
    // The gateway finds what an account has paid under the purchase's key.
    const way = "Sign again with the same account: it never pays twice for this purchase.";
    return new Refusal(`This signature was used before, perhaps for this purchase. ${way}`, 402, true);
  }
  const known = REASONS.find(([reason]) => said.includes(reason))?.[1];
  const words = isNew ? explainNewAccount(said) : null;
  const taken = charged === false ? " Nothing was taken." : "";
  return new Refusal(`${words ?? known ?? said}${taken}`, 402, false, charged === false, code);
}

/** Return why the gateway does not deploy the wallet of a new account; null if that is not the reason. */
function explainNewAccount(said: string): string | null {
  const isLimit = said.includes(NO_MORE);
  if (!isLimit && !said.includes(SIGNATURE)) return null;
  // The page promises it no more.
  page.deploysWallets = false;
  return `This gateway opens no ${isLimit ? "more new accounts today" : "new account of this kind"}. ${OTHER_ACCOUNT}`;
}

function readReceipt(header: string | null): string {
  try {
    return (JSON.parse(atob(header ?? "")) as { transaction: string }).transaction;
  } catch {
    // The task names the transaction as well.
    return "";
  }
}
