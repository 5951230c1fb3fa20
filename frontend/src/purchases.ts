// Your purchases: the list that this browser keeps, with export and forget.
import { readTask } from "./api";
import { enhance, find, h, pause, writeTime } from "./common";
import { confirmed } from "./dialog";
import * as kept from "./kept";
import { page, short } from "./page";

const place = find("purchases")!;
const SHOWN = 100;
// The gateway answers five reads a second; the states of old tasks do not change.
const MOST_READ = 20;
const READ_PAUSE_S = 0.4;
const REFUNDS: Record<string, string> = {
  refund_due: "Failed, refund due",
  refunding: "Failed, refund on its way",
  refunded: "Failed, refunded",
  refund_failed: "Failed, refund not sent",
};
let shown = SHOWN;

function render(): void {
  const all = kept.list();
  if (!all.length) {
    const text = "Nothing is kept in this browser. What you buy here appears in this list.";
    return place.replaceChildren(h("p", { class: "empty" }, text), h("p", { class: "actions" }, h("a", { href: "/", class: "button primary" }, "See what is on offer")));
  }
  const list = h("ul", { class: "purchases" }, ...all.slice(0, shown).map(row));
  const more = button(`Show older ones (${all.length - shown})`, () => {
    shown += SHOWN;
    render();
  });
  place.replaceChildren(
    h("p", { class: "tools" }, button("Export as a file", () => download(all)), button("Forget all", () => forgetAll(all))),
    list,
    ...(all.length > shown ? [h("p", { class: "tools" }, more)] : []),
  );
}

function row(purchase: kept.Kept): HTMLElement {
  const [word, kind] = state(purchase);
  const href = purchase.taskId ? `/task/${purchase.taskId}` : `/play/${purchase.slug}#${purchase.id}`;
  const facts = [writeTime(purchase.at), purchase.taskId ? `task ${short(purchase.taskId)}` : ""];
  return h(
    "li",
    {},
    h("div", {}, h("a", { href, class: "what" }, purchase.title), h("small", {}, facts.filter(Boolean).join(" · "))),
    h("span", { class: "price-paid" }, purchase.price),
    h("span", { class: `tag ${kind}` }, word),
    h("p", { class: "tools" }, h("a", { href, class: "button" }, purchase.taskId ? "Open" : "Continue"), forgetButton(purchase)),
  );
}

function state({ taskId, status, refund }: kept.Kept): [string, string] {
  if (!taskId) return ["Not finished", "warn"];
  if (status === "completed") return ["Done", "ok"];
  if (status === "failed") return [REFUNDS[refund?.state ?? ""] ?? "Failed", refund?.state === "refunded" ? "ok" : "bad"];
  return ["In work", ""];
}

function button(label: string, action: () => unknown): HTMLButtonElement {
  return h("button", { type: "button", class: "button", onclick: () => void action() }, label);
}

function forgetButton(purchase: kept.Kept): HTMLButtonElement {
  const one = button("Forget", async () => {
    if (!(await confirmed("Forget this purchase?", consequence([purchase]), "Forget it"))) return;
    kept.forget(purchase.id);
    render();
  });
  one.setAttribute("aria-label", `Forget ${purchase.title}`);
  return one;
}

async function forgetAll(all: kept.Kept[]): Promise<void> {
  const title = all.length === 1 ? "Forget this purchase?" : `Forget all ${all.length} purchases?`;
  if (!(await confirmed(title, consequence(all), "Forget all"))) return;
  for (const one of all) kept.forget(one.id);
  render();
}

/** What is lost, the worst first. */
function consequence(purchases: kept.Kept[]): string {
  const unfinished = purchases.filter((one) => one.unfinished).length;
  const open = purchases.filter(kept.isOpen).length - unfinished;
  const name = (count: number) => (purchases.length === 1 ? "It" : `${count} of them`);
  const said = [];
  if (unfinished) said.push(`${name(unfinished)} may be paid without an answer so far. Only this list can still get the result.`);
  if (open) said.push(`${name(open)} may still get a result or a refund.`);
  said.push("The gateway forgets nothing by this, but only the link opens a task then. Export the list first to keep the links.");
  return said.join(" ");
}

function download(all: kept.Kept[]): void {
  const address = URL.createObjectURL(new Blob([kept.exported(all)], { type: "application/json" }));
  h("a", { href: address, download: `purchases-${location.hostname}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Read the states that may have changed, the newest first. */
async function refresh(): Promise<void> {
  const open = kept.list().filter((one) => one.taskId && kept.isOpen(one)).slice(0, MOST_READ);
  for (const { taskId } of open) {
    const task = await readTask(`/api/task/${taskId}`, () => {}).catch(() => null);
    if (task) {
      kept.note(task);
      render();
    }
    await pause(READ_PAUSE_S);
  }
}

enhance();
render();
window.addEventListener("storage", render);
if (page.baseUrl) void refresh();
