// The page of one endpoint: request, price, wallet, signature, task, result.
import { askPrice, checkSelling, gatewayNow, pay, Refusal, type Started } from "./api";
import { showInCode } from "./code";
import { type Child, enhance, find, h, isInUse, pause, writeDeadline } from "./common";
import { confirmed } from "./dialog";
import * as form from "./form";
import * as kept from "./kept";
import { fillFromLink, leaveLink, note, noteUnfinished, offerLink } from "./notes";
import { page, short, usdc } from "./page";
import { authorize, paymentHeader, randomHex, type Signer, type Terms, type TypedData } from "./payment";
import { forget, isWhole, load, type Purchase, save, setAside, withoutFile } from "./saved";
import { discover, purse, type Wallet } from "./wallets";

const CHECK_S = 5;
const MAY_BE_PAID =
  "Continuing never pays twice for this purchase. It may be paid already, so it stays under Your purchases until it is finished.";
const UNCHARGED = "Continuing sends the same payment again, which pays once. If you never do, you lose nothing.";
const ONLY_TRANSFER = "Wallets cannot sign for this gateway now. A transfer from any wallet pays.";
const flow = find("flow")!;
const untouched = [...flow.childNodes];
const wallets: Wallet[] = [];
/** Counts what is shown, so that a late answer to an earlier step, such as a wallet's, is left out. */
let step = 0;
let later: typeof import("./later");
const notice = h("p", { class: "message", role: "status", hidden: true });
const LOST = "It may be paid, and this browser has no room to keep it. Its result and receipt cannot be opened here again.";
const KEPT_NOTE = () => h("span", {}, "The purchase before is kept under ", h("a", { href: "/purchases" }, "Your purchases"), ".");

/** A request with its price, before anything is signed. */
export interface Offer {
  request: form.Request;
  key: string;
  terms: Terms;
  payer?: Purchase["payer"];
}

/** What steps in other modules need of this page. */
const desk = {
  show,
  notify,
  button,
  offer,
  connect,
  begin,
  startAgain,
  track,
  interrupted,
  say,
  walletButton,
  step: () => step,
};
export type Desk = typeof desk;

function notify(sentence: string): void {
  notice.textContent = sentence;
  notice.hidden = !sentence;
}

/** Show one step of the purchase, in place of the one before. */
function show(number: string, title: string, ...children: Child[]): void {
  step += 1;
  const head = h("h2", { tabindex: "-1" }, h("span", { class: "number" }, number), ` ${title}`);
  notify("");
  flow.replaceChildren(h("section", { class: "panel-card" }, head, ...children, notice));
  head.focus({ preventScroll: true });
  const { top } = flow.getBoundingClientRect();
  // On a phone the form stands above.
  if (top < 0 || matchMedia("(max-width: 54rem)").matches)
    flow.scrollIntoView({ behavior: "smooth", block: "start" });
}

function button(label: string, action: () => unknown, kind = ""): HTMLButtonElement {
  return h("button", { type: "button", class: `button ${kind}`, onclick: () => void action() }, label);
}

/** Begin another purchase. The one before stays under Your purchases, or the buyer is asked. */
async function startAgain(): Promise<void> {
  const before = load();
  const isKept = before && kept.find(before.key) !== null;
  if (before && !isKept && !(await confirmed("Lose this purchase?", LOST, "Lose it"))) return;
  step += 1;
  setAside();
  note(isKept ? KEPT_NOTE() : null);
  form.lock(false);
  fillFromLink(form.restore, changed);
  flow.replaceChildren(...untouched);
  find("ask")!.focus();
}

async function loadLater(): Promise<void> {
  later ??= await import("./later").catch(() => {
    throw new Error("A part of this page cannot be loaded. Check the connection and try again.");
  });
}

// -- 1 and 2: the request and its price

async function ask(): Promise<void> {
  form.complain("");
  const begun = load();
  if (begun) return continueWithFile(begun);
  const waiting = find<HTMLButtonElement>("ask")!;
  const asked = step;
  waiting.disabled = true;
  try {
    const request = await form.read();
    const key = randomHex(16);
    const [terms] = await Promise.all([askPrice(JSON.stringify(request.body), key, form.complain), loadLater()]);
    if (asked === step) offer({ request, key, terms });
  } catch (error) {
    form.complain(say(error));
  }
  waiting.disabled = false;
}

function offer(priced: Offer, problem = ""): void {
  form.lock(true);
  const list = h("ul", { class: "wallets", id: "wallets" });
  const choose = (wallet: Wallet) => () => void connect(wallet, priced);
  const add = (wallet: Wallet) => list.append(h("li", {}, walletButton(wallet, choose(wallet))));
  const signs = !priced.terms.onlyTransfer;
  const own = signs && purse();
  if (own) add(own);
  if (signs) wallets.forEach(add);
  if (signs) list.addEventListener("found", (event) => add((event as CustomEvent<Wallet>).detail));
  show(
    "2",
    "Pay",
    h("p", { class: "total" }, h("b", {}, usdc(priced.terms.amount)), ` on ${page.network.label}`),
    h("p", { class: "hint" }, signs ? "Choose how to pay. You see every detail before you do." : ONLY_TRANSFER),
    list,
    signs && !own && !wallets.length ? later.noWallet(priced.request.body) : null,
    later.otherWays(priced, desk),
    problem ? h("p", { class: "message bad", role: "alert" }, problem) : null,
    h("p", { class: "tools" }, button("Change the request", startAgain, "quiet")),
  );
}

function walletButton(wallet: Pick<Wallet, "id" | "name" | "icon">, choose: () => void, note = ""): HTMLButtonElement {
  const icon = wallet.icon
    ? h("img", { src: wallet.icon, alt: "", width: "28", height: "28" })
    : h("span", { class: "purse", "aria-hidden": "true" }, "◈");
  const about = wallet.id !== "purse" ? note : page.network.isPlay ? "filled with play USDC" : "a new key, for test USDC";
  const name = h("span", {}, h("b", {}, wallet.name), about ? h("small", {}, about) : null);
  return h("button", { type: "button", class: "wallet", "data-wallet": wallet.id, onclick: choose }, icon, name);
}

// -- 3: what is signed

async function connect(wallet: Wallet, priced: Offer): Promise<void> {
  const asked = step;
  notify(wallet.id === "purse" ? "" : `Confirm in ${wallet.name}.`);
  try {
    const signer = await wallet.connect();
    await checkSelling();
    if (asked !== step) return;
    const { payer } = priced;
    if (payer && payer.toLowerCase() !== signer.address.toLowerCase())
      throw new Error(`Choose the account ${payer}: another account would pay a second time.`);
    review(signer, priced);
  } catch (error) {
    if (asked === step) offer(priced, say(error));
  }
}

function review(signer: Signer, priced: Offer): void {
  const data = authorize(priced.terms, signer.address, gatewayNow());
  const until = Number(data.message.validBefore) * 1000;
  const confirm = button(`Sign and pay ${usdc(priced.terms.amount)}`, () => sign(signer, priced, data, confirm), "primary wide");
  confirm.id = "pay";
  show(
    "2",
    "You sign this payment",
    later.facts(
      [
        ["Amount", h("b", {}, usdc(data.message.value))],
        ["Payee", later.address(data.message.to)],
        ["From", later.address(data.message.from)],
        ["Network", page.network.label],
        ["Valid until", `${writeDeadline(until)} (${Math.round(priced.terms.maxTimeoutSeconds / 60)} minutes)`],
        ["For", `${page.title}: one result`],
      ],
      "review",
    ),
    page.network.isTest && signer.name === "Test purse" ? later.faucet(signer.address) : null,
    page.network.isPlay && signer.name !== "Play purse" ? later.playWarning() : null,
    confirm,
    h("p", { class: "hint center" }, "No gas, and nothing beyond this amount. It pays once."),
    h("p", { class: "hint center" }, `You are charged first. ${page.refund}`),
    h("p", { class: "tools" }, button("Another wallet", () => offer(priced), "quiet")),
  );
  confirm.focus({ preventScroll: true });
  void watchSelling(confirm);
}

/**
 * Let the buyer sign only while the gateway can be paid. It is not asked after the press: browsers
 * open a wallet's window only in answer to that.
 */
async function watchSelling(confirm: HTMLButtonElement): Promise<void> {
  const asked = step;
  for (let problem = ""; ; ) {
    await pause(CHECK_S);
    if (asked === step && !isInUse()) continue;
    const found = await checkSelling().then(() => "", say);
    if (asked !== step || (confirm.disabled && !problem)) return;
    problem = found;
    confirm.disabled = Boolean(problem);
    notify(problem);
  }
}

async function sign(signer: Signer, priced: Offer, data: TypedData, confirm: HTMLButtonElement): Promise<void> {
  const asked = step;
  confirm.disabled = true;
  notify(signer.name.endsWith("purse") ? "Signing." : `Confirm in ${signer.name}.`);
  try {
    const signature = await signer.sign(data);
    // The buyer went on without it: sent now, it would be a second payment.
    if (asked !== step) return;
    const { request, key, terms, payer } = priced;
    const payment = paymentHeader(terms, data.message, signature);
    const purchase: Purchase = { key, ...request, terms, payment, authorization: data.message, payer };
    // Before anything is sent: a reload from now on sends the same payment.
    begin(purchase);
    leaveLink();
    await settle(purchase);
  } catch (error) {
    if (asked === step) offer(priced, say(error));
  }
}

// -- 4: the payment is sent, and the task followed

async function settle(purchase: Purchase): Promise<void> {
  form.lock(true);
  show("3", "Paying", later.steps("pay"), h("p", { class: "hint" }, "The payment is being settled on the chain."));
  try {
    const started = await pay(JSON.stringify(purchase.body), purchase.key, purchase.payment, notify);
    save({ ...withoutFile(purchase), ...started });
    await track(started);
  } catch (error) {
    if (error instanceof Refusal && error.isFinal) await refused(purchase, error);
    else {
      const isUncharged = error instanceof Refusal && error.isUncharged;
      interrupted(say(error), () => settle(purchase), isUncharged ? UNCHARGED : MAY_BE_PAID);
    }
  }
}

/**
 * The gateway took nothing by this signature. The next one goes under the same key, so that the
 * gateway finds what this account may have paid already, and takes nothing more.
 */
async function refused(purchase: Purchase, error: Refusal): Promise<void> {
  if (error.status === 409)
    return ended("You began this purchase with another request, so this signature took nothing.");
  const payer = error.isSpent ? purchase.authorization.from : purchase.payer;
  // Only here is it certain that nothing was paid by what is kept.
  if (error.status === 402 && error.isUncharged && !payer) forget(purchase);
  const { key, body, file } = purchase;
  try {
    // The price may be what has changed.
    const terms = await askPrice(JSON.stringify(body), key, notify);
    offer({ request: { body, file }, key, terms, payer }, error.message);
  } catch (problem) {
    interrupted(`${error.message} ${say(problem)}`, () => refused(purchase, error));
  }
}

function interrupted(problem: string, again: () => unknown, hint = MAY_BE_PAID): void {
  show(
    "3",
    "Not finished yet",
    h("p", { class: "message bad", role: "alert" }, problem),
    h("p", { class: "hint" }, hint),
    button("Continue", again, "primary wide"),
    h("p", { class: "tools" }, button("Finish it later", startAgain, "quiet")),
  );
}

/** There is nothing to go on with. */
function ended(problem: string): void {
  show(
    "!",
    "This purchase has ended",
    h("p", { class: "message bad", role: "alert" }, problem),
    h("p", { class: "hint" }, "Starting again is another purchase, with a payment of its own."),
    button("Start again", startAgain, "primary wide"),
  );
}

async function track(started: Started): Promise<void> {
  form.lock(true);
  try {
    const task = await later.showProgress(started.statusUrl, show, notify);
    const again = button("Buy another", startAgain, "primary");
    again.id = "again";
    const open = h("a", { href: `/task/${task.taskId}`, class: "button" }, "Open its own page");
    await later.showEnd(task, show, h("p", { class: "tools" }, again, open), later.receipt(task), form.picture());
  } catch (error) {
    if (error instanceof Refusal && error.status === 404)
      ended(`The gateway does not know this task any more. Ask its operator about the transaction ${started.transaction || "by your account"}.`);
    else interrupted(say(error), () => track(started));
  }
}

function say(error: unknown): string {
  return error instanceof Error ? error.message : "Something went wrong. Nothing more was sent.";
}

// -- after a reload

/** Make a purchase this tab's. Another one is not offered any more while this one runs. */
function begin(purchase: Purchase): void {
  save(purchase);
  note(null);
}

/** Go on with the purchase that this tab has begun. */
async function resume(purchase: Purchase): Promise<void> {
  // A late answer to an earlier step is left out.
  const asked = ++step;
  form.restore(purchase.body);
  try {
    await loadLater();
  } catch (error) {
    return interrupted(say(error), () => resume(purchase));
  }
  if (asked !== step) return;
  const { statusUrl, transaction = "" } = purchase;
  if (statusUrl) return track({ statusUrl, transaction });
  return isWhole(purchase) ? proceed(purchase) : chooseAgain(purchase);
}

function proceed(purchase: Purchase): Promise<void> {
  return purchase.transfer ? later.resumeTransfer(purchase, purchase.transfer, desk) : settle(purchase);
}

/** A large file is not kept: the buyer chooses it again, and the same payment goes with it. */
function chooseAgain(purchase: Purchase, problem = ""): void {
  const name = purchase.file?.name ?? "the same file";
  form.lock("all but the document");
  show(
    "2",
    "Go on with your payment",
    h("p", { class: "message" }, `You ${purchase.transfer ? "were paying" : "signed"} ${usdc(purchase.transfer?.units ?? purchase.terms.amount)} to ${short(purchase.authorization.to)} for ${name}. Choose that file again and continue: it is the same payment.`),
    problem ? h("p", { class: "message bad", role: "alert" }, problem) : null,
    button("Continue", () => continueWithFile(purchase), "primary wide"),
    h("p", { class: "tools" }, button("Finish it later", startAgain, "quiet")),
  );
}

/** Send what was signed for: the file is compared, all else is as it was kept, its name too. */
async function continueWithFile(purchase: Purchase): Promise<void> {
  const asked = step;
  try {
    const document = await form.readDocument();
    if (asked !== step) return;
    if (!document) throw new Error(`Choose the ${page.fileNoun} first.`);
    if (document.sha256 !== purchase.file?.sha256) throw new Error(`This is another file than ${purchase.file?.name}.`);
    await proceed({ ...purchase, body: { ...purchase.body, fileBase64: document.base64 } });
  } catch (error) {
    if (asked === step) chooseAgain(purchase, say(error));
  }
}

/** Return the purchase that this tab has begun, or that Your purchases has sent here by its key. */
function findBegun(): Purchase | null {
  const sent = kept.find(location.hash.slice(1));
  if (!sent?.unfinished || sent.slug !== page.slug) return load();
  save(sent.unfinished);
  leaveLink();
  return sent.unfinished;
}

function changed(): void {
  form.complain("");
  showInCode(form.fields());
  refreshLink();
}

enhance();
discover((wallet) => {
  wallets.push(wallet);
  find("no-wallet")?.remove();
  find("wallets")?.dispatchEvent(new CustomEvent("found", { detail: wallet }));
});
form.enhanceForm(changed, () => void ask());
const refreshLink = offerLink(form.fields);
const begun = findBegun();
// A link opened on purpose comes before a purchase that the gateway has, and that is kept.
if (begun && !(begun.statusUrl && location.search && kept.find(begun.key))) void resume(begun);
else {
  setAside();
  fillFromLink(form.restore, changed);
  noteUnfinished((purchase) => {
    begin(purchase);
    void resume(purchase);
  });
}
