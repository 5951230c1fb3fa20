// Buys one picture as Cloudflare's `agents` do: the price from `_meta`, the payment in Base64.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { x402Client } from "@x402/core/client";
import { registerExactEvmScheme } from "@x402/evm/exact/client";
import { privateKeyToAccount } from "viem/accounts";

const wallet = new x402Client();
registerExactEvmScheme(wallet, { signer: privateKeyToAccount(process.env.PRIVATE_KEY) });
const client = new Client({ name: "buyer", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(`${process.env.SHOP_URL}/mcp`)));

const call = { name: "sandbox_image", arguments: { prompt: "a boat" } };
const price = (await client.callTool(call))._meta["x402/error"];
const payment = btoa(JSON.stringify(await wallet.createPaymentPayload(price)));
let shown = await client.callTool({ ...call, _meta: { "x402/payment": payment } });
const { transaction } = shown._meta["x402/payment-response"];
while (!shown.structuredContent.done) {
  const waits = { taskId: shown.structuredContent.taskId, wait: 30 };
  shown = await client.callTool({ name: "get_task", arguments: waits });
}
await client.close();
console.log(JSON.stringify({ status: shown.structuredContent.status, transaction }));
