/**
 * Buy a picture by a plain USDC transfer, and prove who sent the transfer: npm ci, in this folder.
 *
 * Without any variable set the script buys from a running `gateway demo`, with the demo's play money.
 */

import { createHash, randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";

import { createWalletClient, erc20Abi, http, parseUnits, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { base } from "viem/chains";

const GATEWAY = process.env.GATEWAY ?? "http://127.0.0.1:8402";
const RPC = process.env.RPC ?? "http://127.0.0.1:8545";
// USDC has this address on Base and on the demo's chain.
const USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
// The demo funds this key, which is public: never send real money to it.
const PLAY_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const PROMPT = process.argv[2] ?? "a lighthouse above a stormy sea at night";
const SLUG = "sandbox-image";
// The most that one purchase may cost, in units of a millionth USDC.
const MAX_UNITS = 100_000n;

const account = privateKeyToAccount(process.env.BUYER_KEY ?? PLAY_KEY);
const chain = createWalletClient({ account, chain: base, transport: http(RPC) }).extend(
  publicActions,
);
const manifest = await (await fetch(`${GATEWAY}/.well-known/agent-manifest.json`)).json();
const wallet = manifest.identity.walletAddress;
const { price } = manifest.availableEndpoints.find((offer) => offer.slug === SLUG);
const units = parseUnits(String(price), 6);
if (units > MAX_UNITS) throw new Error(`${SLUG} costs ${price} USDC`);

// 1. Transfer the price, and wait until it is mined.
const transfer = { address: USDC, abi: erc20Abi, functionName: "transfer", args: [wallet, units] };
const txHash = await chain.writeContract(transfer);
const receipt = await chain.waitForTransactionReceipt({ hash: txHash });
if (receipt.status !== "success") throw new Error(`The transfer ${txHash} failed.`);

// 2. Sign what the transfer pays for: this request and no other. All fields but slug, txHash and
// payerSignature count, sorted by name, as JSON without spaces.
const request = { aspect_ratio: "1:1", prompt: PROMPT };
const requestHash = createHash("sha256").update(JSON.stringify(request)).digest("hex");
const payerSignature = await account.signTypedData({
  domain: {
    name: "Generation Gateway",
    version: "1",
    chainId: base.id,
    verifyingContract: wallet,
  },
  types: {
    PayerProof: [
      { name: "txHash", type: "bytes32" },
      { name: "slug", type: "string" },
      { name: "requestHash", type: "bytes32" },
    ],
  },
  primaryType: "PayerProof",
  message: { txHash, slug: SLUG, requestHash: `0x${requestHash}` },
});

// 3. Send the request. If the answer is lost, the same body with the same Idempotency-Key may be
// sent again.
const paid = await fetch(`${GATEWAY}/api/proxy-generate`, {
  method: "POST",
  headers: { "Content-Type": "application/json", "Idempotency-Key": randomUUID() },
  body: JSON.stringify({ ...request, slug: SLUG, txHash, payerSignature }),
});
if (!paid.ok) throw new Error(`${paid.status} ${await paid.text()}`);
const { statusUrl } = await paid.json();
let task;
do task = await (await fetch(`${GATEWAY}${statusUrl}?wait=30`)).json();
while (!task.done);
if (task.status !== "completed") throw new Error(`${task.error} (${task.details})`);
console.log(task.status, "paid by", task.payment.transaction);

const picture = Buffer.from(await (await fetch(task.result.outputs[0].url)).arrayBuffer());
await writeFile("bought.png", picture);
console.log("bought.png", picture.length, "bytes");
