// Audits the shop as x402scan does before it lists one, and prints the findings as JSON.

import * as discovery from "@agentcash/discovery";

const shop = process.env.SHOP_URL;
const unwrap = (result) => (result && typeof result.isOk === "function" ? result.value : result);
const findings = [];
const add = (where, issues) => {
  for (const issue of issues) findings.push(`${issue.code} (${where})`);
};

const document = unwrap(await discovery.getOpenAPI(shop));
add("openapi.json", discovery.getWarningsForOpenAPI(document));
add("favicon", unwrap(await discovery.getWarningsForFavicon(shop)));
const legacy = unwrap(await discovery.probeLegacyWellKnown(shop));
add("legacy", discovery.getWarningsForLegacyWellKnown(legacy));
const found = await discovery.discoverOriginSchema({ target: shop, guidance: "always" });
if (!found.found) throw new Error("nothing was discovered");
if (!found.guidance) findings.push("no guidance");

const priced = found.endpoints.filter((one) => one.protocols?.includes("x402"));
if (!priced.length) findings.push("no endpoint takes x402");
for (const one of priced) {
  const answer = await fetch(shop + one.path, { method: one.method });
  const header = answer.headers.get("PAYMENT-REQUIRED");
  const challenge = JSON.parse(Buffer.from(header, "base64").toString());
  const checked = discovery.validatePaymentRequiredDetailed(challenge);
  add(`402 of ${one.path}`, checked.issues);
  const endpoint = await discovery.checkEndpointSchema({ url: shop + one.path, probe: true });
  const advisory = endpoint.advisories?.find((each) => each.method === one.method);
  if (advisory?.authMode !== "paid") findings.push(`${one.path} is not known as paid`);
  if (!advisory?.inputSchema) findings.push(`${one.path} has no input schema`);
}
console.log(JSON.stringify({ findings, said: `${priced.length} endpoints with x402` }));
