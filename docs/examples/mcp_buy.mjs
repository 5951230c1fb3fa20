/**
 * Buy a picture over MCP: npm ci, in this folder.
 *
 * Without variables the script buys from a running `gateway demo` with its play money.
 * An agent does the same: it calls a tool, reads the price, signs it, and calls the tool again.
 */

import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { x402Client } from "@x402/core/client";
import { ExactEvmScheme } from "@x402/evm";
import { privateKeyToAccount } from "viem/accounts";

const { values, positionals } = parseArgs({
  options: { help: { type: "boolean", short: "h" } },
  allowPositionals: true,
});
if (values.help || positionals.length > 1) {
  console.log("Usage: node mcp_buy.mjs [PROMPT]");
  process.exit(values.help ? 0 : 2);
}
const [PROMPT = "a lighthouse above a stormy sea at night"] = positionals;
const GATEWAY = process.env.GATEWAY ?? "http://127.0.0.1:8402";
// The demo funds this key, which is public: never send real money to it.
const PLAY_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
// Base; the demo's chain has the id of Base Sepolia.
const NETWORK = process.env.BUYER_KEY ? "eip155:8453" : "eip155:84532";

const account = privateKeyToAccount(process.env.BUYER_KEY ?? PLAY_KEY);
const wallet = x402Client.fromConfig({
  schemes: [{ network: NETWORK, client: new ExactEvmScheme(account) }],
  spendControls: { maxAmountPerPayment: "$0.10" },
});
const gateway = new Client({ name: "buyer", version: "1.0.0" });
await gateway.connect(new StreamableHTTPClientTransport(new URL(`${GATEWAY}/mcp`)));

// 1. The first response is the price.
const call = { name: "sandbox_image", arguments: { prompt: PROMPT } };
const { structuredContent: price } = await gateway.callTool(call);

// 2. Sign it, and call again. If the response is lost, the same payment may be sent again.
const payment = await wallet.createPaymentPayload(price);
const bought = await gateway.callTool({ ...call, _meta: { "x402/payment": payment } });

// 3. Poll.
let task = bought.structuredContent;
while (task.done === false) {
  const look = { name: "get_task", arguments: { taskId: task.taskId, wait: 30 } };
  task = (await gateway.callTool(look)).structuredContent;
}
await gateway.close();
if (task.status !== "completed") throw new Error(`${task.error} (${task.details})`);
console.log(task.status, "paid by", task.payment.transaction);
const picture = Buffer.from(await (await fetch(task.result.outputs[0].url)).arrayBuffer());
await writeFile("bought.png", picture);
console.log("bought.png", picture.length, "bytes");
