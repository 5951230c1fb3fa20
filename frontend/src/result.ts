// What a finished task shows: the picture or the text, and the receipt.
import type { Output, Task } from "./api";
import { copyButton, h } from "./common";
import { page, short } from "./page";

// Beyond this, laying a document out would hold the page for seconds.
const MOST_RENDERED_CHARS = 200_000;
const PAID: Record<string, string> = {
  reserved: "not settled yet",
  settling: "not settled yet",
};

/** Return the elements of a result. */
export async function showResult(task: Task): Promise<HTMLElement[]> {
  const outputs = task.result?.outputs ?? [];
  const text = task.result?.text;
  const parts = outputs.filter((one) => one.url && one.mimeType.startsWith("image/")).map(picture);
  const file = outputs.at(-1);
  if (text !== null && text !== undefined)
    parts.push(file?.mimeType === "application/json" ? json(text, file) : await markdown(text, outputs));
  return [...parts, receipt(task)];
}

/** An output's address as this page reaches it: the gateway may have several names. */
function reach(url: string): string {
  return url.startsWith(`${page.baseUrl}/`) ? url.slice(page.baseUrl.length) : url;
}

function picture(output: Output): HTMLElement {
  const source = reach(output.url!);
  const alt = "The picture that you bought";
  const size = `${output.width} × ${output.height}, ${Math.ceil(output.bytes / 1000)} KB`;
  return h(
    "figure",
    { class: "stage bought" },
    h("img", { src: source, alt, width: String(output.width), height: String(output.height) }),
    h("figcaption", {}, size, h("a", { href: source, download: "", class: "button" }, "Download")),
  );
}

function json(text: string, file: Output): HTMLElement {
  const tools = h("p", { class: "tools" }, copyButton(() => text, "Copy JSON"), download(file));
  return h("div", { class: "document" }, tools, h("pre", { class: "text", tabindex: "0" }, text));
}

function download(file: Output | undefined): HTMLElement | null {
  return file?.url ? h("a", { href: reach(file.url), download: "", class: "button" }, "Download") : null;
}

async function markdown(text: string, outputs: Output[]): Promise<HTMLElement> {
  const plain = h("pre", { class: "text", tabindex: "0" }, text);
  const tools = h(
    "p",
    { class: "tools" },
    copyButton(() => text, "Copy Markdown"),
    download(outputs.find((one) => one.url)),
  );
  if (text.length > MOST_RENDERED_CHARS) return h("div", { class: "document" }, tools, plain);
  const rendered = h("div", { class: "prose", tabindex: "0" });
  rendered.innerHTML = (await import("./markdown")).render(text);
  const toggle = h("button", { type: "button" }, "Show Markdown");
  toggle.addEventListener("click", () => {
    const isRaw = plain.isConnected;
    (isRaw ? plain : rendered).replaceWith(isRaw ? rendered : plain);
    toggle.textContent = isRaw ? "Show Markdown" : "Show it laid out";
  });
  tools.prepend(toggle);
  return h("div", { class: "document" }, tools, rendered);
}

/** Return the receipt of a task, whether it worked or not. */
export function receipt(task: Task): HTMLElement {
  const { amount, transaction, state } = task.payment;
  const money = `${amount} ${page.network.money}`;
  const rows: [string, Node | string][] = [
    ["Paid", state === "released" ? "nothing" : PAID[state] ? `${money}, ${PAID[state]}` : money],
    ["Transaction", transaction ? link(transaction) : "not known yet"],
    ["Task", h("a", { href: `/api/task/${task.taskId}` }, short(task.taskId))],
  ];
  if (task.refund) {
    rows.push(["Refund", `${task.refund.amount} ${page.network.money}. ${task.refund.message}`]);
    if (task.refund.transaction) rows.push(["Refund sent by", link(task.refund.transaction)]);
  }
  return facts(rows, "receipt");
}

function link(transaction: string): Node {
  const { explorer, isPlay } = page.network;
  if (explorer)
    return h("a", { href: `${explorer}/tx/${transaction}`, rel: "noopener", target: "_blank" }, short(transaction));
  const where = isPlay ? " on the embedded chain" : "";
  return h("span", { title: transaction }, h("code", {}, short(transaction)), where);
}

/** Say why a task failed, and whom to ask. */
export function failure(task: Task): HTMLElement[] {
  const why = [task.error ?? "The generation failed.", page.reasons[task.details ?? ""] ?? ""].join(" ");
  const shown = [h("p", { class: "message bad", role: "alert" }, why)];
  if (page.contact) {
    const mail = `mailto:${page.contact}?subject=${encodeURIComponent(`Task ${task.taskId}`)}`;
    shown.push(h("p", { class: "hint" }, "Questions? Write to the operator: ", h("a", { href: mail }, page.contact)));
  }
  return shown;
}

export function facts(rows: [string, Node | string][], name: string): HTMLElement {
  const list = h("dl", { class: `terms ${name}` });
  for (const [term, value] of rows)
    list.append(h("div", {}, h("dt", {}, term), h("dd", {}, value)));
  return list;
}
