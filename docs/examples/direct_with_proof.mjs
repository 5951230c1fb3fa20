/**
 * Buy a picture by a plain USDC transfer, and prove who sent it: npm ci, in this folder.
 *
 * Without variables the script buys from a running `gateway demo` with its play money.
 */

import { createHash, randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";

import {
  createWalletClient,
  encodeFunctionData,
  erc20Abi,
  http,
  keccak256,
  parseUnits,
  publicActions,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { base, baseSepolia } from "viem/chains";

const { values, positionals } = parseArgs({
  options: { help: { type: "boolean", short: "h" } },
  allowPositionals: true,
});
if (values.help || positionals.length > 1) {
  console.log("Usage: node direct_with_proof.mjs [PROMPT]");
  process.exit(values.help ? 0 : 2);
}
const [PROMPT = "a lighthouse above a stormy sea at night"] = positionals;
const GATEWAY = process.env.GATEWAY ?? "http://127.0.0.1:8402";
const RPC = process.env.RPC ?? "http://127.0.0.1:8545";
const BASE = ["base", base, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"];
// The demo's chain has the name, the chain id and the USDC address of Base Sepolia.
const DEMO = ["base-sepolia", baseSepolia, "0x036CbD53842c5426634e7929541eC2318f3dCF7e"];
const [NETWORK, CHAIN, USDC] = process.env.BUYER_KEY ? BASE : DEMO;
// The demo funds this key, which is public: never send real money to it.
const PLAY_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const SLUG = "sandbox-image";
// The limit per purchase, in units of a millionth USDC.
const MAX_UNITS = 100_000n;
// How often the paid request is sent, and the milliseconds between.
const ATTEMPTS = 10;
const PAUSE_MS = 3000;

/** Return the response to the paid request, with retries while it may still succeed. */
async function send(body, key) {
  let failure;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (attempt) await pause(PAUSE_MS);
    let status;
    try {
      const answer = await fetch(`${GATEWAY}/api/proxy-generate`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "Idempotency-Key": key },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(60_000),
      });
      if (answer.ok) return await answer.json();
      status = answer.status;
      failure = `${status} ${await answer.text()}`;
    } catch (error) {
      failure = String(error);
      continue;
    }
    // The gateway's RPC endpoint may see the transfer later than ours.
    const isLate = failure.includes("TX_NOT_FOUND") || status === 429;
    if (!isLate && status < 500) break;
  }
  const again = `IDEMPOTENCY_KEY=${key} TX_HASH=${body.txHash}`;
  throw new Error(`${failure}\nThe transfer is made. To continue, run this again with ${again}`);
}

const account = privateKeyToAccount(process.env.BUYER_KEY ?? PLAY_KEY);
const chain = createWalletClient({ account, chain: CHAIN, transport: http(RPC) }).extend(
  publicActions,
);
const manifest = await (await fetch(`${GATEWAY}/.well-known/agent-manifest.json`)).json();
const { network, walletAddress: wallet } = manifest.identity;
if (network !== NETWORK) {
  throw new Error(`The gateway sells on ${network}, but this script pays on ${NETWORK} only.`);
}
const chainId = await chain.getChainId();
if (chainId !== CHAIN.id) {
  throw new Error(
    `RPC is an endpoint of chain ${chainId}, but ${CHAIN.name} (${CHAIN.id}) is needed.`,
  );
}
const { price } = manifest.availableEndpoints.find((offer) => offer.slug === SLUG);
const units = parseUnits(String(price), 6);
if (units > MAX_UNITS) {
  throw new Error(`${SLUG} costs ${price} USDC, which is more than the limit.`);
}

// 1. Transfer the price, and wait until it is mined. Running this again with both variables and
// the same prompt continues with the same transfer.
const key = process.env.IDEMPOTENCY_KEY || randomUUID();
let txHash = process.env.TX_HASH;
if (!txHash) {
  const call = { abi: erc20Abi, functionName: "transfer", args: [wallet, units] };
  const transaction = await chain.prepareTransactionRequest({
    to: USDC,
    data: encodeFunctionData(call),
  });
  const serializedTransaction = await chain.signTransaction(transaction);
  txHash = keccak256(serializedTransaction);
  console.log(`IDEMPOTENCY_KEY=${key} TX_HASH=${txHash}`);
  await chain.sendRawTransaction({ serializedTransaction });
}
const receipt = await chain.waitForTransactionReceipt({ hash: txHash });
if (receipt.status !== "success") {
  throw new Error(`The transfer ${txHash} failed: nothing was paid.`);
}

// 2. Sign the request that the transfer pays for: all fields except slug, txHash and
// payerSignature, sorted by name, as JSON without spaces.
const request = { aspect_ratio: "1:1", prompt: PROMPT };
const requestHash = createHash("sha256").update(JSON.stringify(request)).digest("hex");
const payerSignature = await account.signTypedData({
  domain: {
    name: "Generation Gateway",
    version: "1",
    chainId: CHAIN.id,
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

// 3. Send the request. The same body with the same Idempotency-Key may be sent again.
const { statusUrl } = await send({ ...request, slug: SLUG, txHash, payerSignature }, key);
let task;
do task = await (await fetch(`${GATEWAY}${statusUrl}?wait=30`)).json();
while (task.done === false);
if (task.status !== "completed") throw new Error(`${task.error} (${task.details})`);
console.log(task.status, "paid by", task.payment.transaction);

const picture = Buffer.from(await (await fetch(task.result.outputs[0].url)).arrayBuffer());
await writeFile("bought.png", picture);
console.log("bought.png", picture.length, "bytes");
