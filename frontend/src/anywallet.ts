// Ways to pay without a wallet in this browser: a phone's wallet, a passkey, a transfer by QR code.
import { Refusal } from "./api";
import { h } from "./common";
import * as form from "./form";
import { makeLink } from "./links";
import { page, usdc } from "./page";
import type { Terms } from "./payment";
import { phoneLinks } from "./phone";
import type { Desk, Offer } from "./play";
import { forget, type Purchase, save, withoutFile } from "./saved";
import { steps } from "./track";
import { buyByTransfer, findTransfer, reserveAmount, type Transfer } from "./transfers";
import { baseAccount, type Wallet } from "./wallets";

const IS_PHONE = "(pointer: coarse), (max-width: 46rem)";

/** Say what to do without a wallet: on a phone, open this page in the wallet's own browser. */
export function noWallet(body: Record<string, string>): HTMLElement {
  const links = matchMedia(IS_PHONE).matches ? phoneLinks(makeLink(body)) : [];
  const text = links.length
    ? "Open this page in your wallet's app, with your request:"
    : "This browser has no wallet extension. Choose a way below, or buy by the code.";
  const apps = links.map(([name, href]) => h("a", { class: "button", href, rel: "noopener" }, name));
  return h("div", { class: "message", id: "no-wallet" }, text, links.length ? h("p", { class: "apps" }, ...apps) : null);
}

/** Return the ways that need no wallet here: a passkey, and a transfer from any wallet. */
export function otherWays(priced: Offer, desk: Desk): HTMLElement | null {
  const list = h("ul", { class: "wallets" });
  const add = (wallet: Pick<Wallet, "id" | "name" | "icon">, about: string, choose: () => unknown) =>
    list.append(h("li", {}, desk.walletButton(wallet, () => void choose(), about)));
  const passkey = priced.terms.onlyTransfer ? null : baseAccount();
  if (passkey) add(passkey, "a passkey, no extension", () => introduce(passkey, priced, desk));
  // An account that may have paid already must sign again: a transfer would pay a second time.
  if (page.transfers && !priced.payer)
    add({ id: "transfer", name: "Any wallet, by QR code", icon: null }, "you send a transfer", () => begin(priced, desk));
  return list.childElementCount ? list : null;
}

/** Load Base Account before its button is pressed: a window opens only in answer to a press. */
function introduce(wallet: Wallet, priced: Offer, desk: Desk): void {
  const go = desk.button("Open Base Account", () => desk.connect(wallet, priced), "primary wide");
  go.id = "open-account";
  go.disabled = true;
  const about =
    "A wallet behind a passkey, such as your fingerprint. It opens in a window of Coinbase, keys.coinbase.com, which learns the address of this page.";
  desk.show(
    "2",
    "Base Account",
    h("p", {}, about),
    h("p", { class: "hint" }, `It must hold ${usdc(priced.terms.amount)} on ${page.network.label}. A new account needs no gas.`),
    go,
    h("p", { class: "tools" }, desk.button("Another way to pay", () => desk.offer(priced), "quiet")),
  );
  const shown = desk.step();
  import("./base-account").then(
    () => (go.disabled = false),
    () => {
      if (shown === desk.step()) desk.offer(priced, "Base Account cannot be loaded. Check the connection, or choose another way.");
    },
  );
}

// -- a transfer from a wallet elsewhere

async function begin(priced: Offer, desk: Desk): Promise<void> {
  const asked = desk.step();
  const { request, key, terms } = priced;
  desk.notify("Asking for an amount of your own.");
  try {
    const transfer = await reserveAmount(terms.amount, key, desk.notify);
    if (asked !== desk.step()) return;
    const purchase: Purchase = { key, ...request, terms, payment: "", authorization: unsigned(terms, transfer), transfer };
    // Before anything is paid: after a reload the same key finds and uses the transfer.
    save(purchase);
    await wait(purchase, transfer, desk);
  } catch (error) {
    if (asked === desk.step()) desk.offer(priced, desk.say(error));
  }
}

/** What stands for an authorization where nobody signs one: payee and amount. */
function unsigned(terms: Terms, transfer: Transfer): Purchase["authorization"] {
  const times = { validAfter: "0", validBefore: String(transfer.payBy) };
  return { from: "", to: terms.payTo, value: transfer.units, nonce: "", ...times };
}

/** Go on with a transfer that this page has asked for. */
export function resumeTransfer(purchase: Purchase, transfer: Transfer, desk: Desk): Promise<void> {
  return transfer.hash ? claim(purchase, transfer, transfer.hash, desk) : wait(purchase, transfer, desk);
}

/** Show what to send, and wait for it. */
async function wait(purchase: Purchase, transfer: Transfer, desk: Desk, problem = ""): Promise<void> {
  form.lock(true);
  const { describeTransfer } = await import("./transferparts");
  desk.show(
    "2",
    "Send exactly this amount",
    problem ? h("p", { class: "message bad", role: "alert" }, problem) : null,
    ...describeTransfer(purchase.terms, transfer, (hash) => claim(purchase, transfer, hash, desk)),
    h("p", { class: "hint" }, `You are charged first. ${page.refund}`),
    h("p", { class: "tools" }, desk.button("Another way to pay", () => leave(purchase, transfer, desk), "quiet")),
  );
  const shown = desk.step();
  const hash = await findTransfer(purchase.key, transfer, () => shown === desk.step());
  if (shown !== desk.step()) return;
  if (hash) await claim(purchase, transfer, hash, desk);
  else desk.notify("No transfer came in time. If you sent it, give its hash.");
}

/** Buy with a transfer. Its hash is kept first, so that a reload does the same. */
async function claim(purchase: Purchase, transfer: Transfer, hash: string, desk: Desk): Promise<void> {
  form.lock(true);
  desk.show("3", "Paying", steps("pay"), h("p", { class: "hint" }, "The gateway reads your transfer."));
  const found = { ...purchase, transfer: { ...transfer, hash } };
  try {
    save(found);
    const started = await buyByTransfer(purchase.body, purchase.key, hash, desk.notify);
    save({ ...withoutFile(found), ...started });
    await desk.track(started.statusUrl);
  } catch (error) {
    if (!(error instanceof Refusal && error.isFinal))
      return desk.interrupted(desk.say(error), () => claim(purchase, transfer, hash, desk));
    // This transaction does not pay; another one may.
    save(purchase);
    await wait(purchase, transfer, desk, error.message);
  }
}

/** A transfer that is under way would be lost with its key. */
function leave(purchase: Purchase, transfer: Transfer, desk: Desk): void {
  const { key, body, file, terms } = purchase;
  const nothing = () => {
    forget(purchase);
    desk.offer({ request: { body, file }, key, terms });
  };
  desk.show(
    "2",
    "Have you sent the transfer?",
    h("p", {}, `If you have sent ${usdc(transfer.units)}, go back: only this page can buy with it. It may take a minute to arrive.`),
    desk.button("I sent it: go back", () => wait(purchase, transfer, desk), "primary wide"),
    h("p", { class: "tools" }, desk.button("I sent nothing", nothing, "quiet")),
  );
}
