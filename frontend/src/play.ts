// The page of one endpoint: request, price, wallet, signature, task, result.
import { askPrice, checkSelling, follow, gatewayNow, pay, readTask, Refusal, type Task } from "./api";
import { showInCode } from "./code";
import { type Child, enhance, find, h, pause } from "./common";
import * as form from "./form";
import { page, short, usdc } from "./page";
import { authorize, paymentHeader, randomHex, type Signer, type Terms, type TypedData } from "./payment";
import { facts, failure, receipt, showResult } from "./result";
import { forget, isWhole, load, type Purchase, save, withoutFile } from "./saved";
import { discover, purse, type Wallet } from "./wallets";

const BASE = 8453;
const UNDER_WAY = ["refund_due", "refunding"];
const MAY_BE_PAID =
  "Continuing never pays twice for this purchase. If you give up, a result that is paid already is lost to you.";
const UNCHARGED = "Continuing sends the same payment again, which pays once. If you give up, you lose nothing.";
const flow = find("flow")!;
const untouched = [...flow.childNodes];
const wallets: Wallet[] = [];
/** Counts what is shown, so that a late answer to an earlier step, such as a wallet's, is left out. */
let step = 0;
const notice = h("p", { class: "message", role: "status", hidden: true });

/** A request with its price, before anything is signed. */
interface Offer {
  request: form.Request;
  key: string;
  terms: Terms;
  payer?: Purchase["payer"];
}

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

function startAgain(): void {
  step += 1;
  forget();
  form.lock(false);
  flow.replaceChildren(...untouched);
  find("ask")!.focus();
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
    const terms = await askPrice(JSON.stringify(request.body), key, form.complain);
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
  const own = purse();
  if (own) add(own);
  wallets.forEach(add);
  list.addEventListener("found", (event) => add((event as CustomEvent<Wallet>).detail));
  show(
    "2",
    "Pay",
    h("p", { class: "total" }, h("b", {}, usdc(priced.terms.amount)), ` on ${page.network.label}`),
    h("p", { class: "hint" }, "Choose what signs. You see every detail before you sign."),
    list,
    own || wallets.length ? null : noWallet(),
    problem ? h("p", { class: "message bad", role: "alert" }, problem) : null,
    h("p", { class: "tools" }, button("Change the request", startAgain, "quiet")),
  );
}

function walletButton(wallet: Wallet, choose: () => void): HTMLButtonElement {
  const icon = wallet.icon
    ? h("img", { src: wallet.icon, alt: "", width: "28", height: "28" })
    : h("span", { class: "purse", "aria-hidden": "true" }, "◈");
  const about = wallet.id !== "purse" ? "" : page.network.isPlay ? "filled with play USDC" : "a new key, for test USDC";
  const name = h("span", {}, h("b", {}, wallet.name), about ? h("small", {}, about) : null);
  return h("button", { type: "button", class: "wallet", "data-wallet": wallet.id, onclick: choose }, icon, name);
}

function noWallet(): HTMLElement {
  const text = "This browser has no wallet. Install one as an extension, or buy by the code below.";
  return h("p", { class: "message", id: "no-wallet" }, text);
}

function playWarning(): HTMLElement {
  const text =
    page.network.chainId === BASE
      ? "The embedded chain calls itself Base, so this signature would be valid on Base, too. Use the play purse, or an account without real USDC."
      : "Play money: this signature is worth nothing on Base. It pays here only if the demo gave this account play USDC.";
  return h("p", { class: "message warn" }, text);
}

// -- 3: what is signed

async function connect(wallet: Wallet, priced: Offer): Promise<void> {
  const asked = step;
  notify(wallet.id === "purse" ? "" : `Confirm in ${wallet.name}.`);
  try {
    const signer = await wallet.connect();
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
  const until = new Date(Number(data.message.validBefore) * 1000);
  const confirm = button(`Sign and pay ${usdc(priced.terms.amount)}`, () => sign(signer, priced, data, confirm), "primary wide");
  confirm.id = "pay";
  show(
    "2",
    "You sign this payment",
    facts(
      [
        ["Amount", h("b", {}, usdc(data.message.value))],
        ["Payee", address(data.message.to)],
        ["From", address(data.message.from)],
        ["Network", page.network.label],
        ["Valid until", `${until.toLocaleTimeString()} (${Math.round(priced.terms.maxTimeoutSeconds / 60)} minutes)`],
        ["For", `${page.title}: one result`],
      ],
      "review",
    ),
    page.network.isTest && signer.name === "Test purse" ? faucet(signer.address) : null,
    page.network.isPlay && signer.name !== "Play purse" ? playWarning() : null,
    confirm,
    h("p", { class: "hint center" }, "No gas, and nothing beyond this amount. It pays once."),
    h("p", { class: "hint center" }, `You are charged first. ${page.refund}`),
    h("p", { class: "tools" }, button("Another wallet", () => offer(priced), "quiet")),
  );
  confirm.focus({ preventScroll: true });
}

function address(value: string): Node {
  return h("code", { title: value, class: "address" }, value);
}

function faucet(account: string): HTMLElement {
  const site = h("a", { href: "https://faucet.circle.com", rel: "noopener", target: "_blank" }, "faucet.circle.com");
  return h("p", { class: "message" }, "Send this purse test USDC first, from ", site, ` to ${account}. The purse is gone when you leave this page.`);
}

async function sign(signer: Signer, priced: Offer, data: TypedData, confirm: HTMLButtonElement): Promise<void> {
  const asked = step;
  confirm.disabled = true;
  try {
    notify("Asking whether the gateway can take it now.");
    await checkSelling();
    if (asked !== step) return;
    notify(signer.name.endsWith("purse") ? "Signing." : `Confirm in ${signer.name}.`);
    const signature = await signer.sign(data);
    // The buyer went on without it: sent now, it would be a second payment.
    if (asked !== step) return;
    const { request, key, terms, payer } = priced;
    const payment = paymentHeader(terms, data.message, signature);
    const purchase: Purchase = { key, ...request, terms, payment, authorization: data.message, payer };
    // Before anything is sent: a reload from now on sends the same payment.
    save(purchase);
    await settle(purchase);
  } catch (error) {
    if (asked === step) offer(priced, say(error));
  }
}

// -- 4: the payment is sent, and the task followed

async function settle(purchase: Purchase): Promise<void> {
  form.lock(true);
  show("3", "Paying", steps("pay"), h("p", { class: "hint" }, "The payment is being settled on the chain."));
  try {
    const started = await pay(JSON.stringify(purchase.body), purchase.key, purchase.payment, notify);
    save({ ...withoutFile(purchase), ...started });
    await track(started.statusUrl);
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
  if (error.status === 402 && !payer) forget();
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
    h("p", { class: "tools" }, button("Give up", startAgain, "quiet")),
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

async function track(statusUrl: string): Promise<void> {
  form.lock(true);
  const line = h("p", { class: "hint" }, "The gateway has your payment.");
  const bar = h("progress", { max: "1", "aria-label": "Progress" });
  const list = steps("pay");
  show("3", "In work", list, bar, line);
  try {
    const told = (seen: Task) => {
      if (list.isConnected && !isHeld(seen)) list.replaceWith(steps("make"));
      describe(seen, line, bar);
    };
    const task = await follow(statusUrl, told, notify);
    await finish(task);
  } catch (error) {
    if (error instanceof Refusal && error.status === 404)
      ended(`The gateway does not know this task any more. Ask its operator about the transaction ${load()?.transaction || "by your account"}.`);
    else interrupted(say(error), () => track(statusUrl));
  }
}

/** Whether a task still waits for its payment to be settled. */
function isHeld(task: Task): boolean {
  return ["reserved", "settling"].includes(task.payment.state);
}

function describe(task: Task, line: HTMLElement, bar: HTMLProgressElement): void {
  if (task.progress !== null) bar.value = task.progress;
  const again = task.attempt > 1 ? ` Attempt ${task.attempt} of ${task.maxAttempts}.` : "";
  if (isHeld(task)) line.textContent = "The payment is still being settled on the chain. There is nothing more to sign.";
  else
    line.textContent =
      task.status === "queued" ? `Paid. Your task waits for its turn.${again}` : `Your result is being made.${again}`;
}

async function finish(task: Task): Promise<void> {
  const again = button("Buy another", startAgain, "primary");
  again.id = "again";
  if (task.status === "completed") {
    show("✓", "Yours", ...(await showResult(task)), h("p", { class: "tools" }, again));
    return;
  }
  const shown = receipt(task);
  show("!", "It did not work", ...failure(task), shown, h("p", { class: "tools" }, again));
  await watchRefund(task, shown);
}

/** Show each change of a refund on the receipt, until it has ended or the visitor goes on. */
async function watchRefund(task: Task, shown: HTMLElement): Promise<void> {
  const asked = step;
  for (let seconds = 2; task.refund && UNDER_WAY.includes(task.refund.state); seconds = Math.min(seconds + 1, 15)) {
    await pause(seconds);
    if (asked !== step) return;
    const seen = await readTask(`/api/task/${task.taskId}`);
    if (asked !== step) return;
    if (!seen || JSON.stringify(seen.refund) === JSON.stringify(task.refund)) continue;
    task = seen;
    const fresh = receipt(task);
    shown.replaceWith(fresh);
    shown = fresh;
  }
}

function steps(current: "pay" | "make"): HTMLElement {
  const names: [string, string][] = [["sign", "Signed"], ["pay", "Paid"], ["make", "Made"]];
  const at = names.findIndex(([name]) => name === current);
  const list = h("ol", { class: "track" });
  names.forEach(([, label], index) => {
    const state = index < at ? "done" : index === at ? "now" : "";
    list.append(h("li", { class: state, "aria-current": index === at ? "step" : "false" }, label));
  });
  return list;
}

function say(error: unknown): string {
  return error instanceof Error ? error.message : "Something went wrong. Nothing more was sent.";
}

// -- after a reload

/** Go on with the purchase that this tab has begun. */
async function resume(purchase: Purchase): Promise<void> {
  form.restore(purchase.body);
  if (purchase.statusUrl) return track(purchase.statusUrl);
  return isWhole(purchase) ? settle(purchase) : chooseAgain(purchase);
}

/** A large file is not kept: the buyer chooses it again, and the same payment goes with it. */
function chooseAgain(purchase: Purchase, problem = ""): void {
  const name = purchase.file?.name ?? "the same file";
  form.lock("all but the document");
  show(
    "2",
    "Go on with your payment",
    h("p", { class: "message" }, `You signed ${usdc(purchase.terms.amount)} to ${short(purchase.authorization.to)} for ${name}. Choose that file again and continue: it is the same payment.`),
    problem ? h("p", { class: "message bad", role: "alert" }, problem) : null,
    button("Continue", () => continueWithFile(purchase), "primary wide"),
    h("p", { class: "tools" }, button("Give up", startAgain, "quiet")),
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
    await settle({ ...purchase, body: { ...purchase.body, fileBase64: document.base64 } });
  } catch (error) {
    if (asked === step) chooseAgain(purchase, say(error));
  }
}

enhance();
discover((wallet) => {
  wallets.push(wallet);
  find("no-wallet")?.remove();
  find("wallets")?.dispatchEvent(new CustomEvent("found", { detail: wallet }));
});
form.enhanceForm(() => {
  form.complain("");
  showInCode(form.fields());
}, () => void ask());
const begun = load();
if (begun) void resume(begun);
