// Buys one picture with `@x402/axios` 2.x.

import { decodePaymentResponseHeader, wrapAxiosWithPaymentFromConfig } from "@x402/axios";
import { ExactEvmScheme } from "@x402/evm";
import axios from "axios";
import { privateKeyToAccount } from "viem/accounts";

const shop = process.env.SHOP_URL;
const account = privateKeyToAccount(process.env.PRIVATE_KEY);
const http = wrapAxiosWithPaymentFromConfig(axios.create({ baseURL: shop }), {
  schemes: [{ network: "eip155:8453", client: new ExactEvmScheme(account) }],
});

const answer = await http.post("/api/x402/sandbox-image", { prompt: "a boat" });
const receipt = decodePaymentResponseHeader(answer.headers["payment-response"]);
let task;
do task = (await http.get(`${answer.data.statusUrl}?wait=20`)).data;
while (!["completed", "failed"].includes(task.status));
console.log(JSON.stringify({ status: task.status, transaction: receipt.transaction }));
