// Ways to pay without a wallet in this browser: a phone's wallet, a passkey, a transfer by QR code.
import { askPrice, BY_CODE, Refusal } from "./api";
import { find, h } from "./common";
import * as form from "./form";
import { makeLink } from "./links";
import { page, usdc } from "./page";
import type { Terms } from "./payment";
import { phoneLinks } from "./phone";
import type { Desk, Offer } from "./play";
import { facts, showTransaction } from "./result";
import { forget, type Purchase, save, withoutFile } from "./saved";
import { steps, writeTo } from "./track";
import { buyByTransfer, findTransfer, isOver, isUnseen, reserveAmount, type Transfer } from "./transfers";
import { baseAccount, type Wallet } from "./wallets";

const IS_PHONE = "(pointer: coarse), (max-width: 46rem)";
const LATE = "No transfer came in time. If you sent it, give its hash.";
const UNUSED =
  "The gateway found your transfer, and cannot use it for this purchase. Do not send another one. Ask the operator by this transaction to send the money back.";

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
  if (passkey) add(passkey, page.deploysWallets ? "a passkey, no extension" : "an account that was used before", () => introduce(passkey, priced, desk));
  // An account that may have paid already must sign again: a transfer would pay a second time.
  if (page.transfers && !priced.payer)
    add({ id: "transfer", name: BY_CODE, icon: null }, "you send a transfer", () => begin(priced, desk));
  return list.childElementCount ? list : null;
}

/** Load Base Account before its button is pressed: a window opens only in answer to a press. */
function introduce(wallet: Wallet, priced: Offer, desk: Desk): void {
  const go = desk.button("Open Base Account", () => desk.connect(wallet, priced), "primary wide");
  go.id = "open-account";
  go.disabled = true;
  const about = page.deploysWallets ? "A new account needs no gas." : "It must have been used before: this gateway opens no new accounts now.";
  const what =
    "A wallet behind a passkey, such as your fingerprint. It opens in a window of Coinbase, keys.coinbase.com, which learns the address of this page.";
  desk.show(
    "2",
    "Base Account",
    h("p", {}, what),
    h("p", { class: "hint" }, `It must hold ${usdc(priced.terms.amount)} on ${page.network.label}. ${about}`),
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
  try {
    await reserve(priced, desk);
  } catch (error) {
    if (asked === desk.step()) desk.offer(priced, desk.say(error));
  }
}

/** Reserve an amount for a purchase, and wait for its transfer. */
async function reserve({ request, key, terms }: Offer, desk: Desk): Promise<void> {
  const asked = desk.step();
  desk.notify("Asking for an amount of your own.");
  const transfer = await reserveAmount(terms.amount, key, desk.notify);
  if (asked !== desk.step()) return;
  const purchase: Purchase = { key, ...request, terms, payment: "", authorization: unsigned(terms, transfer), transfer };
  // Before anything is paid: after a reload the same key finds and uses the transfer.
  desk.begin(purchase);
  await wait(purchase, transfer, desk);
}

/** Ask for another amount at today's price. The same key buys with the one before as well. */
async function renew(purchase: Purchase, transfer: Transfer, desk: Desk): Promise<void> {
  const asked = desk.step();
  const { key, body, file } = purchase;
  try {
    const terms = await askPrice(JSON.stringify(body), key, desk.notify);
    if (asked === desk.step()) await reserve({ request: { body, file }, key, terms }, desk);
  } catch (error) {
    if (asked === desk.step()) await wait(purchase, transfer, desk, { message: desk.say(error) });
  }
}

/** What stands for an authorization where nobody signs one: payee and amount. */
function unsigned(terms: Terms, transfer: Transfer): Purchase["authorization"] {
  const times = { validAfter: "0", validBefore: String(transfer.payBy) };
  return { from: "", to: terms.payTo, value: transfer.units, nonce: "", ...times };
}

/** Go on with a transfer that this page has asked for. */
export function resumeTransfer(purchase: Purchase, transfer: Transfer, desk: Desk): Promise<void> {
  return transfer.hash ? claim(purchase, transfer, desk) : wait(purchase, transfer, desk);
}

/** What was wrong, and the hash that the gateway has refused for good, if it was one. */
interface Problem {
  message: string;
  hash?: string;
}

/** Show what to send, and wait for it. */
async function wait(purchase: Purchase, transfer: Transfer, desk: Desk, problem?: Problem): Promise<void> {
  form.lock(true);
  const { describeLate, describeTransfer } = await import("./transferparts");
  const isLate = isOver(transfer);
  const typed = find<HTMLInputElement>("hash")?.value ?? "";
  const given = (hash: string) => claim(purchase, { ...transfer, hash }, desk);
  const again = desk.button("Ask for a new amount", () => renew(purchase, transfer, desk));
  again.id = "renew";
  desk.show(
    "2",
    isLate ? "The time to send it is over" : "Send exactly this amount",
    problem ? h("p", { class: "message bad", role: "alert" }, problem.message) : null,
    ...(isLate ? describeLate(transfer, given) : describeTransfer(purchase.terms, transfer, given)),
    isLate ? h("p", { class: "tools" }, "If you have not sent it: ", again) : null,
    h("p", { class: "hint" }, `You are charged first. ${page.refund}`),
    h("p", { class: "tools" }, desk.button("Another way to pay", () => leave(purchase, transfer, desk), "quiet")),
  );
  if (typed) find<HTMLInputElement>("hash")!.value = typed;
  const shown = desk.step();
  const hash = await findTransfer(purchase.key, transfer, () => shown === desk.step());
  if (shown !== desk.step()) return;
  if (hash && hash === problem?.hash) showUnused(purchase, { ...transfer, hash, isFound: true }, problem.message, desk);
  else if (hash) await claim(purchase, { ...transfer, hash, isFound: true }, desk);
  else if (!isLate) await wait(purchase, transfer, desk, problem);
  else desk.notify(LATE);
}

/** Buy with a transfer of a known hash, which is kept first, so that a reload does the same. */
async function claim(purchase: Purchase, transfer: Transfer, desk: Desk): Promise<void> {
  form.lock(true);
  desk.show("3", "Paying", steps("pay"), h("p", { class: "hint" }, "The gateway reads your transfer."));
  const { hash = "", isFound, ...amount } = transfer;
  const found = { ...purchase, transfer };
  try {
    save(found);
    const started = await buyByTransfer(purchase.body, purchase.key, hash, desk.notify);
    save({ ...withoutFile(found), ...started });
    await desk.track(started);
  } catch (error) {
    if (!(error instanceof Refusal && error.isFinal) || (isFound && isUnseen(error)))
      return desk.interrupted(desk.say(error), () => claim(purchase, transfer, desk));
    if (isFound) return showUnused(purchase, transfer, error.message, desk);
    // This transaction does not pay; another one may.
    const before = { ...purchase, transfer: amount };
    save(before);
    await wait(before, amount, desk, { message: error.message, ...(isUnseen(error) ? {} : { hash }) });
  }
}

/** Say what to do about a transfer that was found and does not pay: asked for again, it would be a second payment. */
function showUnused(purchase: Purchase, transfer: Transfer, problem: string, desk: Desk): void {
  const hash = transfer.hash!;
  const about = [`Transaction: ${hash}`, `Amount: ${usdc(transfer.units)}`, `The gateway says: ${problem}`];
  desk.show(
    "!",
    "This transfer bought nothing",
    h("p", { class: "message bad", role: "alert" }, problem),
    h("p", {}, UNUSED),
    facts([["Transaction", showTransaction(hash)], ["Hash", h("code", { class: "address", id: "unused-hash" }, hash)], ["Amount", usdc(transfer.units)]], "review"),
    writeTo("A transfer that bought nothing", about, "this transaction"),
    desk.button("Try this transfer again", () => claim(purchase, transfer, desk), "wide"),
    h("p", { class: "tools" }, desk.button("Finish it later", desk.startAgain, "quiet")),
  );
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
