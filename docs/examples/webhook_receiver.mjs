/**
 * Receive a gateway's webhooks instead of polling: npm ci, in this folder.
 *
 * Buy with "callbackUrl": "https://your.example.com/hook" in the body. The response to the purchase
 * has "callbackSecret": add it to secrets.json, as {"the taskId": "whsec_..."}. Run this server behind
 * that URL; it prints each event of a task once.
 */

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

import { Webhook } from "standardwebhooks";

const { values } = parseArgs({ options: { help: { type: "boolean", short: "h" } } });
if (values.help) {
  console.log("Usage: SECRETS=secrets.json PORT=8403 node webhook_receiver.mjs");
  process.exit();
}
const SECRETS = process.env.SECRETS ?? "secrets.json";
const PORT = Number(process.env.PORT ?? "8403");
const MAX_BYTES = 32_000_000;
const seen = new Set();

/** Return the event in a request; throws if its signature is wrong. */
async function readEvent(body, headers) {
  // Each task has its own secret, and webhook-id ends in the task's id.
  const secrets = new Map(Object.entries(JSON.parse(await readFile(SECRETS, "utf8"))));
  const secret = secrets.get(headers["webhook-id"]?.split("_").pop());
  if (secret === undefined) throw new Error("no task of ours");
  return new Webhook(secret).verify(body, headers);
}

async function receive(request, response) {
  const pieces = [];
  let length = 0;
  for await (const piece of request) {
    length += piece.length;
    if (length > MAX_BYTES) return response.writeHead(413, { Connection: "close" }).end();
    pieces.push(piece);
  }
  let event;
  try {
    event = await readEvent(Buffer.concat(pieces).toString(), request.headers);
  } catch {
    return response.writeHead(401).end();
  }
  // The gateway repeats an event until it gets a 2xx; the id stays the same.
  const id = request.headers["webhook-id"];
  if (!seen.has(id)) {
    seen.add(id);
    console.log(event.type, event.data.taskId, event.data.status);
  }
  response.writeHead(204).end();
}

const server = createServer((request, response) =>
  receive(request, response).catch(() => response.destroy()),
);
server.listen(PORT, "127.0.0.1", () =>
  console.log(`Listening on http://127.0.0.1:${server.address().port}`),
);
