// What to send by a transfer, as text and QR code, and a field for its hash. Loaded when needed.
import { copyButton, h, writeDeadline } from "./common";
import { readHash, transferUri } from "./eip681";
import { page, usdc } from "./page";
import type { Terms } from "./payment";
import { drawQr } from "./qr";
import { facts } from "./result";
import { address } from "./reviewparts";
import type { Transfer } from "./transfers";

/** Return what to send; `given` is called with a hash that the buyer types. */
export function describeTransfer(terms: Terms, transfer: Transfer, given: (hash: string) => unknown): HTMLElement[] {
  const uri = transferUri(terms.asset, page.network.chainId, terms.payTo, transfer.units);
  const amount = usdc(transfer.units);
  const code = drawQr(uri, `QR code of a transfer of ${amount} to ${terms.payTo}`);
  const rows: [string, Node | string][] = [
    ["Amount", copied(h("b", { id: "send-amount" }, amount), amount.split(" ")[0]!, "Copy the amount")],
    ["Payee", copied(address(terms.payTo), terms.payTo, "Copy the payee")],
    ["Token", address(terms.asset)],
    ["Network", page.network.label],
    ["For", `${page.title}: one result`],
  ];
  return [
    h(
      "div",
      { class: "scan" },
      h("div", { class: "qr-box" }, code),
      h(
        "div",
        {},
        h("p", {}, "Scan it with your wallet."),
        h("p", {}, h("a", { href: uri, id: "open-wallet", class: "button" }, "Open a wallet on this device")),
        h("p", { class: "hint" }, `Send it by ${writeDeadline(transfer.payBy * 1000)}, in one transfer. Your wallet pays a little gas. Not from an exchange: a refund goes to the sender.`),
      ),
    ),
    facts(rows, "review"),
    h("p", { class: "message" }, "The last digits make this amount yours: nobody else can buy with it. This page finds your transfer by itself."),
    hashField(given),
  ];
}

/** Return what to do once the time is over: nothing is to be sent any more. */
export function describeLate(transfer: Transfer, given: (hash: string) => unknown): HTMLElement[] {
  const field = hashField(given);
  field.open = true;
  return [
    h("p", {}, `The amount ${usdc(transfer.units)} was yours until ${writeDeadline(transfer.payBy * 1000)}. Do not send it any more.`),
    h("p", { class: "message" }, "If you have sent it, do not pay again: give its transaction hash, which your wallet shows."),
    field,
  ];
}

function copied(shown: HTMLElement, text: string, label: string): HTMLElement {
  const copy = copyButton(() => text);
  copy.setAttribute("aria-label", label);
  return h("span", { class: "copied" }, shown, copy);
}

function hashField(given: (hash: string) => unknown): HTMLDetailsElement {
  const field = h("input", { id: "hash", type: "text", autocomplete: "off", spellcheck: "false", placeholder: "0x…" });
  const problem = h("p", { class: "form-error", role: "alert" });
  const use = (event: Event) => {
    event.preventDefault();
    try {
      given(readHash(field.value));
    } catch (error) {
      problem.textContent = (error as Error).message;
    }
  };
  const inputs = [h("label", { class: "label", for: "hash" }, "Transaction hash"), field, problem];
  const submit = h("button", { class: "button", id: "use-hash" }, "Buy with this transfer");
  return h("details", { class: "by-hand" }, h("summary", {}, "I have the transaction hash"), h("form", { onsubmit: use }, ...inputs, submit));
}
