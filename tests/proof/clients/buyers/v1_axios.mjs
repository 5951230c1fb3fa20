// Buys one picture with `x402-axios` of x402 version 1.

import axios from "axios";
import { createSigner, decodeXPaymentResponse, withPaymentInterceptor } from "x402-axios";

const shop = process.env.SHOP_URL;
const signer = await createSigner("base", process.env.PRIVATE_KEY);
const http = withPaymentInterceptor(axios.create({ baseURL: shop }), signer);

const answer = await http.post("/api/x402/sandbox-image", { prompt: "a boat" });
const receipt = decodeXPaymentResponse(answer.headers["x-payment-response"]);
let task;
do task = (await http.get(`${answer.data.statusUrl}?wait=20`)).data;
while (!["completed", "failed"].includes(task.status));
console.log(JSON.stringify({ status: task.status, transaction: receipt.transaction }));
