/**
 * Buy a picture with the official x402 client: npm ci, in this folder.
 *
 * Without variables the script buys from a running `gateway demo` with its play money.
 */

import { createHash, randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";

import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const { values, positionals } = parseArgs({
  options: { help: { type: "boolean", short: "h" } },
  allowPositionals: true,
});
if (values.help || positionals.length > 1) {
  console.log("Usage: node buy.mjs [PROMPT]");
  process.exit(values.help ? 0 : 2);
}
const [PROMPT = "a lighthouse above a stormy sea at night"] = positionals;
const GATEWAY = process.env.GATEWAY ?? "http://127.0.0.1:8402";
// The demo funds this key, which is public: never send real money to it.
const PLAY_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
// Base; the demo's chain has the id of Base Sepolia.
const NETWORK = process.env.BUYER_KEY ? "eip155:8453" : "eip155:84532";

// 1. A client that pays every 402 up to the limit.
const account = privateKeyToAccount(process.env.BUYER_KEY ?? PLAY_KEY);
const payingFetch = wrapFetchWithPaymentFromConfig(fetch, {
  schemes: [{ network: NETWORK, client: new ExactEvmScheme(account) }],
  spendControls: { maxAmountPerPayment: "$0.10" },
});

// 2. Buy. If the response is lost, run this again with the same key and prompt: it pays only once.
const key = process.env.IDEMPOTENCY_KEY || randomUUID();
console.log(`IDEMPOTENCY_KEY=${key}`);
const paid = await payingFetch(`${GATEWAY}/api/x402/sandbox-image`, {
  method: "POST",
  headers: { "Content-Type": "application/json", "Idempotency-Key": key },
  body: JSON.stringify({ prompt: PROMPT }),
});
if (!paid.ok) throw new Error(`${paid.status} ${await paid.text()}`);
const { statusUrl } = await paid.json();

// 3. Poll. Each response comes when the task is done, or after 30 seconds.
let task;
do task = await (await fetch(`${GATEWAY}${statusUrl}?wait=30`)).json();
while (task.done === false);
if (task.status !== "completed") {
  throw new Error(`${task.error} (${task.details}), refund: ${JSON.stringify(task.refund)}`);
}
console.log(task.status, "paid by", task.payment.transaction);

// 4. Save.
const [output] = task.result.outputs;
const picture = Buffer.from(await (await fetch(output.url)).arrayBuffer());
if (createHash("sha256").update(picture).digest("hex") !== output.sha256) {
  throw new Error("The file does not match its SHA-256.");
}
await writeFile("bought.png", picture);
console.log("bought.png", picture.length, "bytes");
