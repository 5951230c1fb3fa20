// Asks the command `agentcash` what it finds, and prints what is missing as JSON.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const shop = process.env.SHOP_URL;
const command = fileURLToPath(new URL("node_modules/.bin/agentcash", import.meta.url));
const ask = (...words) => {
  const ran = spawnSync(command, words, { encoding: "utf8" });
  if (ran.status !== 0) throw new Error(`agentcash ${words[0]}: ${ran.stdout}${ran.stderr}`);
  return JSON.parse(ran.stdout).data;
};

const findings = [];
const found = ask("discover", shop, "--format", "json");
const paid = (found.endpoints ?? []).filter((one) => one.protocols?.includes("x402"));
if (found.source !== "openapi") findings.push(`discovered by ${found.source}`);
if (!paid.length) findings.push("discover: no endpoint takes x402");
for (const one of paid) {
  if (one.authMode !== "paid" || !one.price) findings.push(`discover: ${one.path} has no price`);
  const checked = JSON.stringify(ask("check", shop + one.path, "--format", "json"));
  if (!checked.includes('"properties"')) findings.push(`check: ${one.path} has no schema`);
  if (!checked.includes('"paid"')) findings.push(`check: ${one.path} is not paid`);
}
console.log(JSON.stringify({ findings, said: `discover and check, ${paid.length} endpoints` }));
