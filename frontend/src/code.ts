// The buyer's own request in the code to copy; gateway_shop/purchase_code.py writes it first.
import { page } from "./page";

/** Put a request into each place of the code that holds one. */
export function showInCode(body: Record<string, string>): void {
  if (page.required.some((name) => name !== "fileBase64" && !body[name])) return;
  const name = body.fileName;
  const request = name ? { ...body, fileBase64: "" } : body;
  const direct = { slug: page.slug, txHash: "0x…", payerSignature: "0x…", ...request };
  const texts: Record<string, string> = {
    python: literal(request, `base64.b64encode(open(${JSON.stringify(name)}, "rb").read()).decode()`),
    typescript: literal(request, `readFileSync(${JSON.stringify(name)}, "base64")`),
    curl: shell(request, name),
    "curl-direct": shell(direct, name),
  };
  for (const place of document.querySelectorAll<HTMLElement>("[data-body]"))
    place.textContent = texts[place.dataset.body!] ?? place.textContent;
}

// A literal of JSON's strings means the same in Python and in TypeScript.
function literal(body: Record<string, string>, file: string): string {
  const rows = Object.entries(body).map(
    ([name, value]) =>
      `${JSON.stringify(name)}: ${name === "fileBase64" ? file : JSON.stringify(value)}`,
  );
  return `{${rows.join(", ")}}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function shell(body: Record<string, string>, name: string | undefined): string {
  const text = quote(JSON.stringify(body));
  if (!name) return text;
  return text.replace('"fileBase64":""', () => `"fileBase64":"'"$(base64 < ${quote(name)} | tr -d '\\n')"'"`);
}
