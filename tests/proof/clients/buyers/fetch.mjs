// Buys one picture with `@x402/fetch` 2.x.

import { ExactEvmScheme } from "@x402/evm";
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const shop = process.env.SHOP_URL;
const account = privateKeyToAccount(process.env.PRIVATE_KEY);
const pay = wrapFetchWithPaymentFromConfig(fetch, {
  schemes: [{ network: "eip155:8453", client: new ExactEvmScheme(account) }],
});

const answer = await pay(`${shop}/api/x402/sandbox-image`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ prompt: "a boat" }),
});
if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
const receipt = decodePaymentResponseHeader(answer.headers.get("PAYMENT-RESPONSE"));
const where = `${shop}${(await answer.json()).statusUrl}?wait=20`;
let task;
do task = await (await fetch(where)).json();
while (!["completed", "failed"].includes(task.status));
console.log(JSON.stringify({ status: task.status, transaction: receipt.transaction }));
