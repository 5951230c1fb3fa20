// Buys one picture by a tool as clients of revision 2025-03-26 do: they know texts and pictures.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { x402Client } from "@x402/core/client";
import { registerExactEvmScheme } from "@x402/evm/exact/client";
import { privateKeyToAccount } from "viem/accounts";

const wallet = new x402Client();
registerExactEvmScheme(wallet, { signer: privateKeyToAccount(process.env.PRIVATE_KEY) });
const client = new Client({ name: "buyer", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(`${process.env.SHOP_URL}/mcp/`)));
await client.listTools();

const read = (result) => JSON.parse(result.content[0].text);
const call = { name: "sandbox_image", arguments: { prompt: "a boat" } };
const payment = await wallet.createPaymentPayload(read(await client.callTool(call)));
let shown = await client.callTool({ ...call, _meta: { "x402/payment": payment } });
const receipt = shown._meta["x402/payment-response"];
while (!read(shown).done) {
  const waits = { taskId: read(shown).taskId, wait: 30 };
  shown = await client.callTool({ name: "get_task", arguments: waits });
}
const texts = shown.content.filter((block) => block.type === "text").map((block) => block.text);
if (!texts[1]?.includes("/files/")) throw new Error("no link to the picture");
await client.close();
console.log(JSON.stringify({ status: read(shown).status, transaction: receipt.transaction }));
