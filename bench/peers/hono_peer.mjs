// Hono with the official x402 middleware; tasks in a Map.
import { readFileSync } from "node:fs";
import { Hono } from "hono";
import { serve } from "@hono/node-server";
import { paymentMiddleware, x402ResourceServer } from "@x402/hono";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { HTTPFacilitatorClient } from "@x402/core/server";

const [port, facilitator] = process.argv.slice(2);
const terms = JSON.parse(readFileSync(new URL("terms.json", import.meta.url)));
const tasks = new Map([[terms.task.taskId, terms.task]]);
const { price, network, payTo, description } = terms;
const routes = {
  [terms.route]: { accepts: { scheme: "exact", price, network, payTo }, description },
};
const server = new x402ResourceServer(new HTTPFacilitatorClient({ url: facilitator }));
server.register(network, new ExactEvmScheme());

const app = new Hono();
app.use(paymentMiddleware(routes, server));
app.get("/api/health", (c) => c.json({ status: "ok" }));
app.post("/api/x402/instant", async (c) => {
  const { prompt } = await c.req.json();
  return c.json({ taskId: terms.task.taskId, prompt });
});
app.get("/api/task/:id", (c) => {
  const task = tasks.get(c.req.param("id"));
  return task ? c.json(task) : c.notFound();
});
serve({ fetch: app.fetch, port: Number(port), hostname: "127.0.0.1" });
