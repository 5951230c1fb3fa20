// What a finished task shows: the picture or the text, and the receipt.
import { type Output, readTask, type Task } from "./api";
import { copyButton, h, isInUse, pause } from "./common";
import * as kept from "./kept";
import { page, short } from "./page";

// Beyond this, laying a document out would hold the page for seconds.
const MOST_RENDERED_CHARS = 200_000;
// A difference of two ratios, as a logarithm.
const SAME_SHAPE = 0.02;
const PAID: Record<string, string> = {
  reserved: "not settled yet",
  settling: "not settled yet",
};

const EXPIRED = "The gateway kept this result as long as it promised, and has deleted it. The receipt stays.";
// A refund is often sent within a minute; a decision of the operator takes longer.
const REFUND_PAUSES_S = [...Array<number>(20).fill(3), ...Array<number>(40).fill(15)];
const LAST_PAUSE_S = 120;

/** Return the elements of a result; `sent` is the buyer's picture, if this page still has it. */
export async function showOutputs(task: Task, sent: File | null = null): Promise<HTMLElement[]> {
  const outputs = task.result?.outputs ?? [];
  const text = task.result?.text;
  const pictures = outputs.filter((one) => one.url && one.mimeType.startsWith("image/"));
  const parts = pictures.map((one) => picture(one, pictures.length === 1 ? sent : null));
  parts.push(...outputs.filter((one) => one.url && /^(audio|video)\//.test(one.mimeType)).map(player));
  const file = outputs.at(-1);
  if (text !== null && text !== undefined)
    parts.push(file && file.mimeType !== "text/markdown" ? plain(text, file) : await markdown(text, outputs));
  else if (!parts.length && file?.url) parts.push(h("p", { class: "tools" }, file.mimeType, download(file)));
  else if (outputs.length && !outputs.some((one) => one.url)) parts.push(h("p", { class: "message" }, EXPIRED));
  return parts;
}

/** An output's address as this page reaches it: the gateway may have several names. */
function reach(url: string): string {
  return url.startsWith(`${page.baseUrl}/`) ? url.slice(page.baseUrl.length) : url;
}

function picture(output: Output, sent: File | null): HTMLElement {
  const source = reach(output.url!);
  const alt = "The picture that you bought";
  const size = `${output.width} × ${output.height}, ${Math.ceil(output.bytes / 1000)} KB`;
  const bought = h("img", { src: source, alt, width: String(output.width), height: String(output.height) });
  const figure = h(
    "figure",
    { class: "stage bought" },
    bought,
    h("figcaption", {}, size, h("a", { href: source, download: "", class: "button" }, "Download")),
  );
  if (sent) compare(bought, sent);
  return figure;
}

/** Lay the picture that was sent over the one that was bought, with a slider between them. */
function compare(bought: HTMLImageElement, sent: File): void {
  const source = URL.createObjectURL(sent);
  const before = h("img", { src: source, alt: "The picture that you sent", class: "before" });
  before.addEventListener("load", () => {
    URL.revokeObjectURL(source);
    const ratio = Number(bought.getAttribute("width")) / Number(bought.getAttribute("height"));
    // One of another shape would not lie on it.
    if (Math.abs(Math.log(before.naturalWidth / before.naturalHeight / ratio)) > SAME_SHAPE) return;
    const pair = h("div", { class: "pair" });
    const label = "How much of the picture that you sent is shown";
    const slider = h("input", { type: "range", min: "0", max: "100", value: "50", "aria-label": label });
    slider.addEventListener("input", () => pair.style.setProperty("--before", `${slider.value}%`));
    bought.replaceWith(pair, slider);
    pair.append(bought, before);
  });
}

function player(output: Output): HTMLElement {
  const source = reach(output.url!);
  const length = output.seconds ? `${output.seconds.toFixed(1)} s, ` : "";
  return h(
    "figure",
    { class: "stage bought" },
    h(output.mimeType.startsWith("video/") ? "video" : "audio", { src: source, controls: "" }),
    h("figcaption", {}, `${length}${Math.ceil(output.bytes / 1000)} KB`, h("a", { href: source, download: "", class: "button" }, "Download")),
  );
}

/** Show JSON, or a text that is no Markdown, such as subtitles. */
function plain(text: string, file: Output): HTMLElement {
  const name = file.mimeType === "application/json" ? "JSON" : "text";
  const tools = h("p", { class: "tools" }, copyButton(() => text, `Copy ${name}`), download(file));
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

/** Return the receipt of a task, which follows a refund until it has arrived. */
export function receipt(task: Task): HTMLElement {
  const place = h("div", { class: "slip", "aria-live": "polite" }, writeReceipt(task));
  void followRefund(task, place);
  return place;
}

async function followRefund(begun: Task, place: HTMLElement): Promise<void> {
  const pauses = [...REFUND_PAUSES_S];
  let task = begun;
  while (task.refund && ["refund_due", "refunding"].includes(task.refund.state)) {
    await pause(pauses.shift() ?? LAST_PAUSE_S);
    if (!place.isConnected) return;
    // The long pauses of a refund that waits for the operator may last for days.
    if (document.hidden || (!pauses.length && !isInUse())) continue;
    const seen = await readTask(`/api/task/${task.taskId}`, () => {}).catch(() => task);
    kept.note(seen);
    if (JSON.stringify(seen.refund) !== JSON.stringify(task.refund)) place.replaceChildren(writeReceipt(seen));
    task = seen;
  }
}

function writeReceipt(task: Task): HTMLElement {
  const { amount, transaction, state } = task.payment;
  const money = `${amount} ${page.network.money}`;
  const rows: [string, Node | string][] = [
    ["Paid", state === "released" ? "nothing" : PAID[state] ? `${money}, ${PAID[state]}` : money],
    ["Transaction", transaction ? showTransaction(transaction) : "not known yet"],
    ["Task", h("a", { href: `/task/${task.taskId}` }, short(task.taskId))],
  ];
  if (task.refund) {
    rows.push(["Refund", `${task.refund.amount} ${page.network.money}. ${task.refund.message}`]);
    if (task.refund.transaction) rows.push(["Refund sent by", showTransaction(task.refund.transaction)]);
  }
  return facts(rows, "receipt");
}

/** Return a transaction's hash, as a link to the explorer if there is one. */
export function showTransaction(transaction: string): Node {
  const { explorer, isPlay } = page.network;
  if (explorer)
    return h("a", { href: `${explorer}/tx/${transaction}`, rel: "noopener", target: "_blank" }, short(transaction));
  const where = isPlay ? " on the embedded chain" : "";
  return h("span", { title: transaction }, h("code", {}, short(transaction)), where);
}

export function facts(rows: [string, Node | string][], name: string): HTMLElement {
  const list = h("dl", { class: `terms ${name}` });
  for (const [term, value] of rows)
    list.append(h("div", {}, h("dt", {}, term), h("dd", {}, value)));
  return list;
}
