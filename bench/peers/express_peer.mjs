// Express with the official x402 middleware; tasks in a Map.
import { readFileSync } from "node:fs";
import express from "express";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
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

const app = express();
app.use(paymentMiddleware(routes, server));
app.get("/api/health", (_, answer) => answer.json({ status: "ok" }));
app.post("/api/x402/instant", express.json(), (request, answer) =>
  answer.json({ taskId: terms.task.taskId, prompt: request.body.prompt }),
);
app.get("/api/task/:id", (request, answer) => {
  const task = tasks.get(request.params.id);
  return task ? answer.json(task) : answer.sendStatus(404);
});
app.listen(Number(port), "127.0.0.1");
