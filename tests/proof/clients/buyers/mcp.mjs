// Buys one picture by a tool, with the official MCP client of TypeScript and an x402 wallet.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { x402Client } from "@x402/core/client";
import { registerExactEvmScheme } from "@x402/evm/exact/client";
import { privateKeyToAccount } from "viem/accounts";

const wallet = new x402Client();
registerExactEvmScheme(wallet, { signer: privateKeyToAccount(process.env.PRIVATE_KEY) });
const client = new Client({ name: "buyer", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(`${process.env.SHOP_URL}/mcp`)));
const { tools } = await client.listTools();
if (!tools.some((tool) => tool.name === "sandbox_image")) throw new Error("no such tool");

const call = { name: "sandbox_image", arguments: { prompt: "a boat" } };
const price = await client.callTool(call);
const payment = await wallet.createPaymentPayload(price.structuredContent);
let shown = await client.callTool({ ...call, _meta: { "x402/payment": payment } });
const receipt = shown._meta["x402/payment-response"];
while (!shown.structuredContent.done) {
  const waits = { taskId: shown.structuredContent.taskId, wait: 30 };
  shown = await client.callTool({ name: "get_task", arguments: waits });
}
if (!shown.content.some((block) => block.type === "resource_link")) throw new Error("no picture");
await client.close();
const { status } = shown.structuredContent;
console.log(JSON.stringify({ status, transaction: receipt.transaction }));
