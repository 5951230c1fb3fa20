// Buys one picture with `x402-fetch` 1.x: the URL asks for x402 version 1.

import { createSigner, decodeXPaymentResponse, wrapFetchWithPayment } from "x402-fetch";

const shop = process.env.SHOP_URL;
const pay = wrapFetchWithPayment(fetch, await createSigner("base", process.env.PRIVATE_KEY));

const answer = await pay(`${shop}/api/x402/sandbox-image`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ prompt: "a boat" }),
});
if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
const receipt = decodeXPaymentResponse(answer.headers.get("X-PAYMENT-RESPONSE"));
const where = `${shop}${(await answer.json()).statusUrl}?wait=20`;
let task;
do task = await (await fetch(where)).json();
while (!["completed", "failed"].includes(task.status));
console.log(JSON.stringify({ status: task.status, transaction: receipt.transaction }));
